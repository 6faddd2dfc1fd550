"""A message of AMQP 1.0 for peers of the other families, and for the model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from harebell.base.bcc import hidden
from harebell.base.message import (
    FAMILY_010,
    FAMILY_010T,
    FAMILY_09,
    FAMILY_09_BCC,
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
)
from harebell.base.values import Long
from harebell.front.convert import (
    basic_of,
    converted,
    expiration_of,
    forwarded,
    headers_of,
    properties_of,
    property_of,
    with_headers,
)
from harebell.front.convert.dispatch import _cached_properties, forget
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v1 import values as v
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import (
    Sections,
    data_section,
    encode_message,
    value_section,
)
from tests.unit.wire.convert.messages_1_0 import MESSAGES, contents, message_of

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FAMILIES = {
    "basic": FAMILY_09,
    "file": FAMILY_FILE,
    "stream": FAMILY_STREAM,
    "0-10": FAMILY_010,
    "transitional 0-10": FAMILY_010T,
    "1.0": FAMILY_1_0,
}
PROPERTIES = BasicProperties(
    content_type="text/plain",
    content_encoding="gzip",
    headers={"a": 1, "x-b": "x", "text": "Grüße", "list": [1, "two"], "octets": b"\0\xff"},
    delivery_mode=2,
    priority=7,
    correlation_id="c",
    reply_to="replies",
    expiration="60000",
    message_id="m-1",
    timestamp=MOMENT,
    type="t",
    user_id="guest",
    app_id="app",
    cluster_id="cl",
)
FACTS = ("timestamp", "offset", "origin", "deliveries", "due")


def published(body: bytes = b"", **given: Any) -> Message:
    """A message of 1.0, with facts of its delivery."""
    message = message_of(
        encode_message(
            body or data_section(b"body"),
            Header(durable=True, priority=5, ttl=60_000),
            {v.Symbol(name): value for name, value in given.pop("annotations", {}).items()},
            Properties(**{"message_id": "m", **given}),
            {"a": 1},
        )
    )
    for number, name in enumerate(FACTS, 1):
        setattr(message, name, number)
    return message


@pytest.mark.parametrize("first", FAMILIES)
@pytest.mark.parametrize("second", FAMILIES)
def test_every_property_passes_every_pair_of_families(first: str, second: str) -> None:
    raw = encode_properties(PROPERTIES)
    message = Message("x", "k", parse_properties(raw), b"body")
    there = converted(converted(message, FAMILIES[first]), FAMILIES[second])
    assert (there.family, there.body) == (FAMILIES[second], b"body")
    assert (there.exchange, there.routing_key) == ("x", "k")
    assert decode_properties(converted(there, FAMILY_09).raw) == PROPERTIES


@given(MESSAGES)
def test_every_message_comes_back_from_0_10_with_all_types(message: Message) -> None:
    back = converted(converted(message, FAMILY_010), FAMILY_1_0)
    assert contents(back) == contents(message)


@pytest.mark.parametrize("body", [b"", data_section(b"a") * 2, value_section("text")])
@pytest.mark.parametrize("family", FAMILIES.values())
def test_facts_of_the_delivery_go_along_with_every_body(family: int, body: bytes) -> None:
    message = published(body)
    there = converted(message, family)
    assert [getattr(there, name) for name in FACTS] == [1, 2, 3, 4, 5]
    assert there.family == (message.family if family == FAMILY_1_0 else family)
    back = converted(there, FAMILY_1_0)
    assert [getattr(back, name) for name in FACTS] == [1, 2, 3, 4, 5]
    assert (back.family, back.body) == (message.family, message.body)


def test_a_message_of_either_family_is_one_of_1_0() -> None:
    assert published().family == FAMILY_1_0
    sections = published(value_section(5))
    assert sections.family == FAMILY_1_0_SECTIONS
    assert converted(sections, FAMILY_1_0) is sections


def test_bodies_do_not_cost_a_conversion_each() -> None:
    forget()
    for body in (b"a", b"b"):
        assert (
            converted(
                published(data_section(body), subject="once", group_sequence=1), FAMILY_09
            ).body
            == body
        )
    assert _cached_properties.cache_info().misses == 1


def test_blind_keys_are_left_out() -> None:
    raw = encode_properties(BasicProperties(headers={"CC": ["seen"], "BCC": ["hidden"]}))
    kept = hidden(Message("x", "k", parse_properties(raw), b"body"))
    assert kept.family == FAMILY_09_BCC
    assert Sections(converted(kept, FAMILY_1_0).raw).message_annotations() == {"x-cc": ["seen"]}


def test_blind_keys_are_hidden_in_basic_alone() -> None:
    message = published()
    assert hidden(message) is message


# --- the editor ---------------------------------------------------------------------------------


def test_the_model_reads_a_message_in_the_words_of_basic() -> None:
    message = published(
        value_section(1), subject="s", annotations={"x-delay": 5, "x-cc": ["k"]}, correlation_id="c"
    )
    assert headers_of(message) == {"a": 1, "x-delay": 5, "CC": ["k"], "x-amqp-subject": "s"}
    assert expiration_of(message) == "60000"
    assert property_of(message, "correlation_id") == "c"
    assert properties_of(message)["message_id"] == "m"
    whole = basic_of(message)
    assert (whole.body, decode_properties(whole.raw).type) == (value_section(1), "amqp-1.0")


def test_a_message_with_other_headers_keeps_its_bare_message_and_its_body() -> None:
    message = published(data_section(b"a") * 2, annotations={"x-delay": 5})
    copy = with_headers(message, {"x-delay": -5, "x-new": "n"})
    assert (copy.family, copy.body) == (FAMILY_1_0_SECTIONS, message.body)
    assert Sections(copy.raw).message_annotations() == {"x-delay": -5, "x-new": "n"}
    bare = contents(message)["properties"]
    assert (contents(copy)["properties"], copy.priority, copy.delivery_mode) == (bare, 5, 2)
    assert expiration_of(copy) == "60000"


def test_a_dead_letter_stays_a_message_of_1_0_without_its_time_to_live() -> None:
    message = published(annotations={"x-cc": ["l"]})
    event = {
        "count": Long(1),
        "reason": "rejected",
        "queue": "q",
        "time": MOMENT,
        "exchange": "",
        "routing-keys": ["q"],
    }
    letter = forwarded(message, "dlx", "dead", {"x-death": [event], "CC": None}, MOMENT)
    assert (letter.family, letter.exchange, letter.routing_key) == (FAMILY_1_0, "dlx", "dead")
    assert letter.body == b"body"
    assert headers_of(letter) == {"a": 1, "x-death": [event]}
    assert expiration_of(letter) is None
    again = forwarded(letter, "dlx", "dead", {"x-death": [{**event, "count": Long(2)}]}, MOMENT)
    (death,) = Sections(again.raw).message_annotations()["x-opt-deaths"]
    assert (death["count"], death["reason"]) == (2, "rejected")
