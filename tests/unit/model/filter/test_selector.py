"""Selectors: their grammar, three truth values, the names of JMS and of RabbitMQ, refusals."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_010, FAMILY_1_0_SECTIONS, Message
from harebell.front.convert import EDITOR, composed, converted
from harebell.model.filter.condition import compile_filter, compile_selector
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject
from harebell.model.limits import FILTER_DEPTH, SELECTOR_CHARACTERS, SELECTOR_TERMS
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import data_section, encode_sections, parse_properties
from harebell.wire.v1.values import Byte, Timestamp, ULong

HEADERS = {
    "color": "red",
    "weight": 2500,
    "half": 0.5,
    "big": 2**62,
    "yes": True,
    "no": False,
    "text5": "5",
    "quote": "it's",
    "percent": "100%",
    "my.name": "dots",
    "x-tries": 3,
    "$cash": 1,
    "line": "a\nb",
    "JMSXGroupID": "g",
    "list": [1],
}
PROPERTIES: dict[str, Any] = {
    "message_id": "ID:7",
    "correlation_id": "c",
    "type": "order",
    "delivery_mode": 2,
    "timestamp": datetime(2026, 1, 31, tzinfo=UTC),
    "user_id": "ann",
    "reply_to": "answers",
    "expiration": "1000",
}


def subject(**properties: Any) -> Subject:
    message = composed("shop", "key", b'{"total": 7}', {"headers": HEADERS, **properties})
    message.timestamp = 5_000
    return _looked(message)


def _looked(message: Message) -> Subject:
    looked = Subject(EDITOR)
    looked.now = 9_000
    looked.is_now(message, 3, 2, "ready", redelivered=True)
    return looked


def truth(text: str, of: Subject | None = None) -> bool | None:
    of = of or subject(**PROPERTIES)
    number = compile_selector(text).condition.test(of.message, of)
    return {1: True, 0: False, -1: None}[number]


T, F, U = "yes", "no", "missing"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{T} AND {T}", True), (f"{T} AND {F}", False), (f"{T} AND {U}", None),
        (f"{F} AND {T}", False), (f"{F} AND {F}", False), (f"{F} AND {U}", False),
        (f"{U} AND {T}", None), (f"{U} AND {F}", False), (f"{U} AND {U}", None),
        (f"{T} OR {T}", True), (f"{T} OR {F}", True), (f"{T} OR {U}", True),
        (f"{F} OR {T}", True), (f"{F} OR {F}", False), (f"{F} OR {U}", None),
        (f"{U} OR {T}", True), (f"{U} OR {F}", None), (f"{U} OR {U}", None),
        (f"NOT {T}", False), (f"NOT {F}", True), (f"NOT {U}", None),
        (f"{U} = 1", None), (f"1 <> {U}", None), (f"{U} + 1 > 0", None), (f"-{U} < 0", None),
        (f"{U} LIKE '%'", None), (f"{U} NOT LIKE '%'", None), (f"{U} IN ('a')", None),
        (f"{U} BETWEEN 1 AND 2", None), (f"{U} IS NULL", True), (f"{U} IS NOT NULL", False),
        (f"weight IN (1, {U})", None), (f"weight IN (2500, {U})", True),
        (f"weight NOT IN (1, {U})", None), ("NULL = NULL", None), ("weight / 0 > 1", None),
        ("weight % 0 = 0", None), ("list = 1", False), ("list IS NULL", False),
    ],
)  # fmt: skip
def test_and_or_and_not_know_three_truth_values(text: str, value: bool | None) -> None:
    assert truth(text) is value


@pytest.mark.parametrize(
    "text",
    [
        # NOT binds weaker than a comparison, and stronger than AND.
        "NOT weight = 1 AND color = 'red'",
        "NOT no OR no AND no",
        "no AND no OR yes",
        "NOT (no OR no) AND yes",
        "1 + 2 * 3 = 7 AND (1 + 2) * 3 = 9 AND 7 - 2 - 1 = 4 AND 8 / 4 / 2 = 1",
        "-weight = 0 - 2500 AND - -weight = +weight AND weight*-1 = -2500",
        "weight-500 = 2000 AND weight -500 = 2000",
        "(weight > 2000) = yes",
        "weight BETWEEN 1 + 1 AND 5000 / 2 AND NOT weight BETWEEN 5 AND 6",
        "1 = 1.0 AND half = .5 AND 7. = 7 AND 1E3 = 1000 AND 57L = 57 AND 1.5f = 1.5",
        "0x1F = 31 AND 010 = 8 AND 0 = 00",
        "5.E2 = 500 AND -5.e-2 = -.5E-1 AND 5. = 5",
        "(weight IN (1, 2500)) IN (no, yes) AND weight + 1 IN (weight, 2501)",
        "weight - 500 BETWEEN 2000 AND half * 4000 AND NOT (weight BETWEEN 9999 AND missing)",
        "big + big + big + big > big AND big * 100 > big AND -big < 0",
        "7 / 2 = 3.5 AND 7 % 3 = 1 AND -7 % 3 = -1",
        "quote = 'it''s' AND quote LIKE '%''s'",
        "color LIKE 'r_d' AND color LIKE 'red' AND NOT color LIKE 'R_D' AND color NOT LIKE 'e%'",
        "percent LIKE '100!%' ESCAPE '!' AND NOT color LIKE '!%' ESCAPE '!'",
        r"color LIKE '%' AND NOT color LIKE '\%'",
        "line LIKE 'a_b' AND line LIKE 'a%'",
        "color in ('blue', 'red') and color NOT IN ('blue') And Color is null",
        "text5 = '5' AND color > 'blue' AND color <= \"red\"",
        "[my.name] = 'dots' AND [x-tries] = 3 AND headers['x-tries'] = 3 AND $cash = 1",
        "application_properties.color = 'red' AND a.color = 'red' AND a.[x-tries] = 3",
        "properties.message_id = 'ID:7' AND p.subject = 'order' AND amqp.user_id = 'ann'",
        "properties.creation_time = 1769817600000 AND properties.group_id = 'g'",
        "properties.absolute_expiry_time = 6000 AND JMSExpiration = 6000",
        "header.priority = 4 AND h.priority = 4 AND JMSPriority = 4 AND priority IS NULL",
        "JMSMessageID = 'ID:7' AND JMSCorrelationID = 'c' AND JMSType = 'order'",
        "JMSDeliveryMode = 'PERSISTENT' AND JMSTimestamp = 1769817600000",
        "JMSReplyTo = 'answers' AND JMSDestination = 'key' AND JMSXUserID = 'ann'",
        "JMSRedelivered AND JMSXDeliveryCount = 3 AND JMSXGroupID = 'g'",
        "UTC() = 9000 AND UTC() - 1000 < 9000",
        "body.total = 7 AND message.routing_key = 'key' AND message.offset = 3",
        "color RLIKE '^r' AND NOT color RLIKE 'x'",
        "color == 'red' AND color != 'blue' AND color <> 'blue'",
        "`color` = 'red' AND TRUE AND NOT false",
    ],
)
def test_these_selectors_select_the_message(text: str) -> None:
    assert truth(text) is True


OF_1_0 = {
    "message_id": ULong(999),
    "user_id": b"ann",
    "to": "/exchanges/a%20b/c",
    "subject": "\N{CARROT}",
    "reply_to": "/queues/answers",
    "correlation_id": UUID(int=1),
    "content_type": "text/plain",
    "absolute_expiry_time": Timestamp(1311999988888),
    "creation_time": Timestamp(1311704463521),
    "group_id": "g",
    "group_sequence": 2**32 - 1,
}


@pytest.mark.parametrize(
    "text",
    [
        "p.message_id = 999 AND p.message_id % 2 = 1 AND NOT p.message_id = '999'",
        "p.user_id = 'ann' AND p.to LIKE '/exch_nges/a=%20b/%' ESCAPE '=' AND JMSXUserID = 'ann'",
        "p.subject = '\N{CARROT}' AND JMSType LIKE '_' AND p.reply_to LIKE '/queues/%'",
        "p.correlation_id = 'urn:uuid:00000000-0000-0000-0000-000000000001'",
        "p.content_type = 'text/plain' AND p.content_encoding IS NULL",
        "p.absolute_expiry_time = 1311999988888 AND JMSExpiration = 1311999988888",
        "p.creation_time = 1311704463521 AND JMSTimestamp - 1311704463000 = 521",
        "p.group_id = 'g' AND JMSXGroupID = 'g' AND p.app_id = 'g'",
        "p.group_sequence = 4294967295 AND JMSXGroupSeq > 0 AND p.reply_to_group_id IS NULL",
        "h.priority = 200 AND JMSPriority = 200 AND p.type IS NULL",
        "-1.0 = key AND nothing IS NULL",
    ],
)
def test_properties_of_a_message_of_1_0_are_as_it_has_them(text: str) -> None:
    raw = encode_sections(
        header=c.Header(priority=200),
        properties=c.Properties(**OF_1_0),
        application_properties={"key": Byte(-1), "nothing": None},
    )
    assert truth(text, _looked(Message("", "key", parse_properties(raw), b"x"))) is True


def test_a_filter_sees_the_properties_of_a_message_of_1_0_as_spark_and_browsers_do() -> None:
    raw = encode_sections(properties=c.Properties(**OF_1_0))
    looked = _looked(Message("", "key", parse_properties(raw), b"x"))
    for text in (
        "message_id LIKE '99%' AND reply_to = 'answers' AND correlation_id LIKE 'urn:uuid:%'",
        "properties.timestamp = '2011-07-26T18:21:03Z' AND app_id = 'g'",
        "properties.subject = '\N{CARROT}' AND properties.group_id = 'g'",
    ):
        assert compile_filter(text).selects(looked), text


def test_a_body_of_sections_is_looked_at_as_basic_has_it() -> None:
    body = data_section(b'{"total":') + data_section(b" 7}")
    properties = parse_properties(encode_sections(), FAMILY_1_0_SECTIONS)
    looked = _looked(Message("", "key", properties, body))
    assert truth("body.total = 7 AND message.size = 12", looked) is True
    assert truth("message.value = '{\"total\": 7}'", looked) is True


def test_a_message_is_decoded_once_for_all_that_look_at_it() -> None:
    asked: list[Message] = []

    def exact_of(message: Message) -> dict[str, Any]:
        asked.append(message)
        return EDITOR.exact_of(message)

    looked = Subject(msgspec.structs.replace(EDITOR, exact_of=exact_of))
    first, second = (
        converted(subject().message, FAMILY_010),
        converted(subject().message, FAMILY_010),
    )
    for message in (first, first, second, first):
        looked.is_now(message, 0, 0, "ready", redelivered=False)
        assert truth("p.message_id IS NULL AND JMSCorrelationID IS NULL", looked) is True
    assert asked == [first, second, first]


@pytest.mark.parametrize(
    "text",
    [
        *["(" * 40 + "x" + " IN (NULL, 1))" * 40, "(" * 40 + "x" + " BETWEEN NULL AND 1)" * 40],
        "NOT (" * 20 + "x" + " IN (NULL, 1, NULL))" * 20,
    ],
)
def test_what_stands_before_in_or_between_is_evaluated_once(text: str) -> None:
    # Twice at each level would not end.
    assert truth(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "text5 = 5", "text5 <> 5", "weight = '2500'", "weight > 'a'", "yes = 'true'", "yes = 1",
        "yes > no", "color = TRUE", "NOT color = 'red'", "list <> 5",
    ],
)  # fmt: skip
def test_values_of_unlike_types_are_never_equal_nor_unequal(text: str) -> None:
    assert truth(text) is False


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("color = ", "selector is wrong at character 9: the selector ends where a column"),
        ("color = 'red", "character 9: the text that begins with ' does not end"),
        ("color == == 1", "character 10: a column or a value is missing before '=='"),
        ("color LIKE red", "character 12: a pattern in quotes is missing"),
        ("color LIKE 'a' ESCAPE 'ab'", "character 23: ESCAPE takes one character in quotes"),
        ("color.shade = 1", "character 1: 'color' has no parts"),
        ("properties.colour = 1", "character 1: there is no property 'colour'"),
        ("message.size2 = 1", "character 1: a message has no 'size2': did you mean 'size'?"),
        ("color IN ()", "character 11: a column or a value is missing before ')'"),
        ("color NOT 1", "character 11: IN, BETWEEN, LIKE or RLIKE is missing after NOT"),
        ("weight = 089", "character 10: 089 is no octal number"),
        ("weight = 1 2", "character 12: 2 is not expected here"),
        ("'red'", "character 1: 'red' is no condition"),
        ("UTC( = 1", "character 6: ) is missing after UTC("),
        ("weight = 1 +" + " +" * 60 + "1", f"nested at most {FILTER_DEPTH} times"),
        ("weight = 1" + " + 1" * 60, f"at most {FILTER_DEPTH} operators follow each other"),
        ("a = 1 OR " * SELECTOR_TERMS + "a = 1", f"at most {SELECTOR_TERMS} columns and values"),
        (" " * (SELECTOR_CHARACTERS + 1), f"at most {SELECTOR_CHARACTERS} are allowed"),
    ],
)
def test_a_wrong_selector_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(FilterError) as refused:
        compile_selector(text)
    assert error in str(refused.value)


WORDS = (
    *("a", "b", "'x'", "1", "2.5", "(", ")", ",", ".", "[", "]", "=", "<>", "<", ">=", "+", "-"),
    *("*", "/", "%", "NOT", "AND", "OR", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE"),
    *("UTC", "properties.type", "JMSPriority", "[n]", "`", '"', "'", "0x1", "07", "$"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_words_are_a_selector_or_refused_as_one(words: list[str]) -> None:
    with contextlib.suppress(FilterError):
        assert truth(" ".join(words)) in (True, False, None)


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused_as_one(text: str) -> None:
    with contextlib.suppress(FilterError):
        assert truth(text) in (True, False, None)
