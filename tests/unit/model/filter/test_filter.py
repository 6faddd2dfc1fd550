"""The filter language: what selects a message, what is refused and where, and what it may cost."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harebell.front.convert import EDITOR, composed
from harebell.model.filter.columns import PROPERTIES
from harebell.model.filter.condition import compile_filter
from harebell.model.filter.errors import FilterError
from harebell.model.filter.matching import like
from harebell.model.filter.subject import Subject
from harebell.model.limits import (
    FILTER_CHARACTERS,
    FILTER_DEPTH,
    FILTER_JSON_BYTES,
    FILTER_PATTERN_CHARACTERS,
    FILTER_TERMS,
    FILTER_TEXT_CHARACTERS,
)

NOW = 1_800_000_000_000
DEATH = {"reason": "rejected", "queue": "orders", "count": 3, "routing-keys": ["a", "b"]}
HEADERS = {"x-death": [DEATH], "tenant": "acme", "tries": 4, "ok": True, "my header": "x", "f": 1.5}
PROPERTIES_OF_IT: dict[str, Any] = {
    "content_type": "application/json",
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c-1",
    "message_id": "m-1",
    "type": "order",
    "app_id": "shop",
    "user_id": "ann",
    "expiration": "60000",
    "timestamp": datetime(2026, 1, 31, 12, tzinfo=UTC),
}
BODY = b'{"order": {"amount": 12.5, "id": 7, "lines": [{"sku": "a"}, {"sku": "b"}]}, "paid": false}'


def subject(
    body: bytes = BODY,
    headers: Mapping[str, Any] | None = HEADERS,
    properties: Mapping[str, Any] = PROPERTIES_OF_IT,
    key: str = "orders.new",
) -> Subject:
    """A message in a queue, as a filter sees it."""
    given = dict(properties) if headers is None else {**properties, "headers": dict(headers)}
    message = composed("shop", key, body, given)
    message.timestamp = NOW - 90_000
    found = Subject(EDITOR)
    found.now = NOW
    found.is_now(message, 41, 2, "ready", redelivered=True)
    return found


def selects(text: str, of: Subject | None = None) -> bool:
    return compile_filter(text).selects(of or subject())


@pytest.mark.parametrize(
    "text",
    [
        "exchange = 'shop'",
        "routing_key LIKE 'orders.%' AND routing_key LIKE '%.n_w'",
        "routing_key RLIKE '^orders[.](new|old)$'",
        "routing_key IN ('a', 'orders.new') AND NOT routing_key IN ('a')",
        "content_type = 'application/json' AND properties.content_type = content_type",
        "delivery_mode = 2 AND priority >= 7 AND priority BETWEEN 5 AND 9",
        "correlation_id = 'c-1' AND message_id = 'm-1' AND type = 'order' AND app_id = 'shop'",
        "user_id <> 'bob' AND user_id != 'bob' AND user_id == 'ann'",
        "expiration = 60000 AND expiration > '5' AND expiration <= 60000.0",
        "reply_to IS NULL AND correlation_id IS NOT NULL",
        "redelivered AND NOT (delivery_count > 2) AND delivery_count = 2 AND redelivered = true",
        f"size = {len(BODY)} AND offset = 41 AND state = 'ready'",
        "age = 90 AND age > '1m' AND age < '2m' AND age >= '90s' AND age < '1h' AND age < '1d'",
        "timestamp > '2027-01-15' AND timestamp < '2027-01-15T07:59:00Z'",
        "properties.timestamp = '2026-01-31T12:00:00Z' AND properties.timestamp = 1769860800",
        "properties.timestamp = '2026-01-31T13:00:00+01:00'",
        "headers.x-death[0].reason = 'rejected' AND headers['x-death'][0]['count'] = 3",
        "headers.x-death[0].routing-keys[1] = 'b' AND headers.x-death[1].reason IS NULL",
        "headers.tenant = 'acme' AND headers.`my header` = 'x' AND headers['my header'] = \"x\"",
        "headers.tries = 4 AND headers.tries = '4' AND headers.f > 1 AND headers.ok",
        "headers.ok = 'true' AND headers.missing IS NULL AND headers.missing.deeper IS NULL",
        "body.order.amount > 10 AND body.order.amount = 12.5 AND body.order.id = 7",
        "body.order.lines[1].sku = 'b' AND body.order.lines[2] IS NULL AND NOT body.paid",
        "value LIKE '%\"amount\"%' AND value RLIKE 'amount.: 1[0-9]'",
        "body.order.id = headers.missing OR body.order.id < size",
        "size + 1 > size AND (size - 1) * 2 = size * 2 - 2 AND -size < 0 AND size % 2 < 2",
        "headers.tries IN (1, priority - 3) AND headers.tries / 8 = 0.5",
        "routing_key LIKE 'orders.n!_w' ESCAPE '!' OR routing_key LIKE 'orders._e_' ESCAPE '!'",
        "application_properties.tenant = 'acme' AND [my header] = 'x' AND JMSType = 'order'",
        "timestamp < UTC() AND header.priority = 7",
        "TRUE and not false",
        "(((true)))",
    ],
)
def test_these_conditions_select_the_message(text: str) -> None:
    assert selects(text)


@pytest.mark.parametrize(
    "text",
    [
        "headers.missing = 1",
        "NOT headers.missing = 1",
        "headers.missing <> 1",
        "NOT headers.missing IN (1, 2)",
        "headers.missing LIKE '%' OR NOT headers.missing LIKE '%'",
        "reply_to = NULL OR reply_to <> NULL OR NULL",
        "headers.tenant > 5 OR NOT headers.tenant > 5",
        "headers.tries = true OR headers.ok = 1 OR headers.ok > 0",
        "body = 5 OR body.order > 1 OR body.order.lines > 1 OR body.order LIKE '%'",
        "headers.tenant OR headers.tries",
        "FALSE",
    ],
)
def test_an_unknown_value_selects_the_message_neither_directly_nor_negated(text: str) -> None:
    assert not selects(text)


@pytest.mark.parametrize("expiration", ["\u00b2", "\u0663", "soon", "-1", "1_000", ""])
def test_an_expiration_that_is_no_number_expires_never(expiration: str) -> None:
    it = subject(properties={"expiration": expiration})
    assert selects("JMSExpiration IS NULL OR JMSExpiration = 0", it)


def test_every_property_of_a_message_is_a_column() -> None:
    for name in PROPERTIES:
        selects(f"properties.{name} IS NULL")
    alone = subject(properties={}, headers=None)
    for name in PROPERTIES:
        assert selects(f"properties.{name} IS NULL", alone)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the filter is empty: write a condition, such as redelivered"),
        (
            "rotuing_key = 'a'",
            "wrong at character 1: there is no column 'rotuing_key': did you mean 'routing_key'?",
        ),
        ("size > 1 AND", "character 13: the filter ends where a column or a value is missing"),
        ("size > > 1", "character 8: a column or a value is missing before '>'"),
        ("size > 1 size < 2", "character 10: 'size' is not expected here: write AND or OR"),
        ("size > 1 ADN size < 2", "character 10: 'ADN' is not expected here: did you mean AND?"),
        ("(size > 1", "character 10: ) is missing at the end of the condition in brackets"),
        ("size > 1)", "character 9: there is no ( for this )"),
        ("size > 'a", "character 8: the text that begins with ' does not end: close it"),
        ("size + > 2", "character 8: a column or a value is missing before '>'"),
        ("redelivered & size > 2", "character 13: '&' is not known: write AND, OR or NOT"),
        ("routing_key ~ 'a'", "character 13: '~' is not known: RLIKE takes a regular expression"),
        ("size IN (1, two)", "character 13: there is no column 'two'"),
        ("size IN 1", "character 9: ( is missing after IN"),
        ("size BETWEEN 1 OR 2", "character 16: AND is missing between the two values of BETWEEN"),
        ("size IS 1", "character 9: NULL is missing after IS"),
        ("size NOT 1", "character 10: IN, BETWEEN, LIKE or RLIKE is missing after NOT"),
        ("routing_key LIKE 5", "character 18: a pattern in quotes is missing"),
        ("5", "character 1: 5 is no condition: compare a column with it"),
        ("size.a = 1", "character 1: column 'size' has no parts: only headers, properties, body"),
        ("headers = 1", "character 1: say which header, such as headers.x-retries"),
        ("properties.typ = 'a'", "character 1: there is no property 'typ': did you mean 'type'?"),
        ("headers. = 1", "character 10: a name is missing after the dot"),
        ("headers[-1] = 1", "character 9: an index or a name in quotes is missing after ["),
        ("headers['a' = 1", "character 13: ] is missing after the index"),
        ("timestamp > 'noon'", "character 13: 'noon' is no time: write one such as '2026-01-31T"),
        ("age > 'long'", "character 7: 'long' is no age: write one such as '90s', '5m', '2h'"),
        ("routing_key RLIKE '('", "character 19: the regular expression '(' is invalid"),
        ("routing_key RLIKE '(a)\\1'", "which are not supported"),
        ("routing_key RLIKE '(?=a)'", "which are not supported"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_place_and_a_way_out(text: str, error: str) -> None:
    with pytest.raises(FilterError) as refused:
        compile_filter(text)
    assert error in str(refused.value)


def test_the_size_of_a_filter_is_limited() -> None:
    with pytest.raises(FilterError, match="at most 16384 are allowed"):
        compile_filter("size > 1 " + " " * FILTER_CHARACTERS)
    with pytest.raises(FilterError, match="nested at most 50 times"):
        compile_filter("(" * (FILTER_DEPTH + 1) + "true" + ")" * (FILTER_DEPTH + 1))
    with pytest.raises(FilterError, match="nested at most 50 times"):
        compile_filter("NOT " * (FILTER_DEPTH + 1) + "true")
    with pytest.raises(FilterError, match="at most 1000 columns and values"):
        compile_filter("size IN (" + ",".join(["1"] * FILTER_TERMS) + ")")
    with pytest.raises(FilterError, match="a pattern has at most 255 characters"):
        compile_filter("type RLIKE '" + "a" * (FILTER_PATTERN_CHARACTERS + 1) + "'")
    with pytest.raises(FilterError, match="at most 40 characters"):
        compile_filter("size = " + "1" * 5000)


def test_a_large_body_is_no_json_and_a_long_text_is_looked_at_in_part() -> None:
    fits = b'{"a": 1}'.ljust(FILTER_JSON_BYTES)
    assert selects("body.a = 1", subject(fits))
    assert selects("body.a IS NULL", subject(fits + b" "))
    long = b"x" * (FILTER_TEXT_CHARACTERS - 1) + "é".encode() * 3
    assert selects("value LIKE '%é'", subject(long))
    assert not selects("value LIKE '%éé%'", subject(long))
    assert selects("value IS NULL", subject(b"\xff\xfe"))
    assert selects("body IS NULL AND body.a IS NULL", subject(b"{not json"))
    assert selects("body IS NULL", subject(b"[" * 100_000))


def test_the_units_of_a_filter_grow_with_what_it_reads() -> None:
    message = subject(b"x" * 100_000).message
    small = compile_filter("size > 1").units(message)
    assert small < 10
    assert compile_filter("body.a > 1").units(message) > small + 100_000 // 1000
    assert compile_filter("size IN (1,2,3,4,5,6,7,8)").units(message) > small


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 16_000 + "b"),
        ("(a|aa)+$", "a" * 16_000 + "b"),
        ("(?:a|aa|a){30}c", "a" * 16_000),
        ("(x+x+)+y", "x" * 16_000),
        ("a*a*a*a*a*a*a*a*b", "a" * 16_000),
        ("(.*)(.*)(.*)(.*)(.*)[^b]{3}$", "b" * 16_000),
        ("(a|b)*a(a|b){60}c", "abbabaab" * 2_000),
    ],
)
def test_a_hostile_expression_ends_at_once(pattern: str, text: str) -> None:
    condition = compile_filter(f"value RLIKE '{pattern}'")
    found = subject(text.encode())
    begun = time.thread_time()
    with contextlib.suppress(FilterError):
        condition.selects(found)
    assert time.thread_time() - begun < 0.5


def test_a_hostile_like_ends_at_once() -> None:
    match = like("%_a" * 80)
    begun = time.thread_time()
    match("a" * 16_000 + "b")
    match("ab" * 8_000)
    assert time.thread_time() - begun < 0.5


_LETTERS = st.text("ab%_\\", max_size=6)


@given(_LETTERS, st.text("ab%_\\", max_size=8))
@example("a%", "a\nb")
def test_like_agrees_with_its_definition(pattern: str, text: str) -> None:
    def matches(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        first, rest = pattern[0], pattern[1:]
        if first == "%":
            return any(matches(rest, text[n:]) for n in range(len(text) + 1))
        if first == "\\" and rest:
            first, rest = rest[0], rest[1:]
        elif first == "_":
            return bool(text) and matches(rest, text[1:])
        return text[:1] == first and matches(rest, text[1:])

    assert like(pattern)(text) == matches(pattern, text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab1", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_a_condition_and_its_opposite_never_both_select(left: Any, right: Any) -> None:
    found = subject(json.dumps({"l": left, "r": right}).encode())
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        text = f"body.l {operator} body.r"
        assert not (selects(text, found) and selects(f"NOT {text}", found))
    if left is not None and type(left) is type(right):
        assert selects("body.l = body.r", found) == (left == right)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_refused_as_one(text: str) -> None:
    with contextlib.suppress(FilterError):
        assert compile_filter(text).selects(subject()) in (True, False)
