"""Messages of final 0-10 as class basic has them, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_010, FAMILY_09, Message, Properties
from harebell.base.values import Long, Typed
from harebell.front.convert import converted
from harebell.front.convert.final import decode_final, encode_final, from_basic, to_basic
from harebell.wire.convert.final import (
    CLUSTER_ID,
    LONG,
    MESSAGE_ID,
    REPLY_EXCHANGE,
    RESUME_ID,
    RESUME_TTL,
    STRUCTS,
    TYPE,
    UNREADABLE,
)
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties, ReplyTo
from harebell.wire.v010.types import Array
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.fields import LongString, Timestamp
from tests.unit.wire.v09.tables import TABLES, shortstr

TIME = datetime(2008, 2, 20, 12, 0, tzinfo=UTC)
NAME = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
UINT64 = (1 << 64) - 1

PAIRS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"content_type": "text/plain"}, {}, {"content_type": "text/plain"}),
    ({"content_encoding": "gzip"}, {}, {"content_encoding": "gzip"}),
    ({"delivery_mode": 2}, {"delivery_mode": 2}, {}),
    ({"priority": 0}, {"priority": 0}, {}),
    ({"priority": 255}, {"priority": 255}, {}),
    ({"timestamp": TIME}, {"timestamp": TIME}, {}),
    ({"timestamp": Timestamp(UINT64)}, {"timestamp": Timestamp(UINT64)}, {}),
    ({"expiration": "60000"}, {"ttl": 60000}, {}),
    ({"expiration": "0"}, {"ttl": 0}, {}),
    (
        {"expiration": "+5"},
        {"ttl": 5},
        {"application_headers": {"x-amqp-expiration": "+5"}},
    ),
    (
        {"expiration": "5\udcff"},
        {},
        {"application_headers": {"x-amqp-expiration": b"5\xff"}},
    ),
    ({"type": "t\udcff"}, {}, {"application_headers": {"x-amqp-type": b"t\xff"}}),
    ({"correlation_id": "c\udcff"}, {}, {"correlation_id": b"c\xff"}),
    ({"user_id": "guest"}, {}, {"user_id": b"guest"}),
    ({"app_id": ""}, {}, {"app_id": b""}),
    ({"message_id": str(NAME)}, {}, {"message_id": NAME}),
    ({"message_id": "m-1"}, {}, {"application_headers": {"x-amqp-message-id": "m-1"}}),
    (
        {"message_id": str(NAME).upper()},
        {},
        {"application_headers": {"x-amqp-message-id": str(NAME).upper()}},
    ),
    ({"reply_to": "answers"}, {}, {"reply_to": ReplyTo(routing_key="answers")}),
    (
        {"reply_to": "key", "headers": {"x-amqp-reply-exchange": "amq.direct"}},
        {},
        {"reply_to": ReplyTo(exchange="amq.direct", routing_key="key")},
    ),
    ({"type": "order"}, {}, {"application_headers": {"x-amqp-type": "order"}}),
    ({"cluster_id": "c"}, {}, {"application_headers": {"x-amqp-cluster-id": "c"}}),
    (
        {"headers": {"x-amqp-resume-id": "r", "x-amqp-resume-ttl": 7}},
        {"resume_id": "r", "resume_ttl": 7},
        {},
    ),
    (
        {"headers": {"x-amqp-resume-ttl": str(UINT64)}},
        {"resume_ttl": UINT64},
        {},
    ),
    (
        {"headers": {"x-amqp-correlation-id": b"c" * 256}},
        {},
        {"correlation_id": b"c" * 256},
    ),
    (
        {"headers": {"n": 1, "t": "x", "b": b"\0", "f": 0.5, "l": [1, {"m": None}], "w": TIME}},
        {},
        {
            "application_headers": {
                "n": 1,
                "t": "x",
                "b": b"\0",
                "f": 0.5,
                "l": [1, {"m": None}],
                "w": TIME,
            }
        },
    ),
]
"""Properties of basic, delivery-properties and message-properties that become one another."""


def basic(**properties: Any) -> Message:
    """A message as it was published by basic.publish."""
    raw = encode_properties(BasicProperties(**properties))
    return Message("x", "k", parse_properties(raw), b"body")


def final(delivery: dict[str, Any], message: dict[str, Any]) -> Message:
    """A message as it was transferred."""
    properties = encode_final(DeliveryProperties(**delivery), MessageProperties(**message))
    return Message("x", "k", properties, b"body")


def as_basic(message: Message) -> BasicProperties:
    """What a consumer of class basic sees of a message of 0-10."""
    found = to_basic(message)
    assert (found.exchange, found.routing_key, found.body) == ("x", "k", b"body")
    assert found.family == FAMILY_09
    return decode_properties(found.raw)


def as_final(message: Message) -> tuple[DeliveryProperties, MessageProperties]:
    """What a subscriber of 0-10 sees of a basic message."""
    found = from_basic(message)
    assert (found.exchange, found.routing_key, found.body) == ("x", "k", b"body")
    assert found.family == FAMILY_010
    return decode_final(found.raw)


@pytest.mark.parametrize(("one", "delivery", "message"), PAIRS)
def test_properties_common_to_both_go_both_ways(
    one: dict[str, Any], delivery: dict[str, Any], message: dict[str, Any]
) -> None:
    assert as_basic(final(delivery, message)) == BasicProperties(**one)
    assert as_final(basic(**one)) == (DeliveryProperties(**delivery), MessageProperties(**message))


def test_the_broker_knows_mode_priority_and_headers_of_what_it_converted() -> None:
    both = final({"delivery_mode": 2, "priority": 7}, {"application_headers": {"a": 1}})
    for message in (both, to_basic(both), from_basic(to_basic(both))):
        assert (message.delivery_mode, message.priority) == (2, 7)
        assert message.has_headers
    for message in (final({}, {}), to_basic(final({}, {})), from_basic(basic())):
        assert (message.delivery_mode, message.priority) == (0, -1)
        assert not message.has_headers


def test_properties_for_the_broker_alone_are_not_carried() -> None:
    routed = final({"discard_unroutable": True, "immediate": True}, {"content_length": 4})
    assert as_basic(routed) == BasicProperties()


def test_values_that_field_tables_do_not_know_become_text_octets_or_lists() -> None:
    headers = {
        "uuid": NAME,
        "uint64": UINT64,
        "array": Array(0x21, [1, 2]),
        "unknown": Typed(0x40, b"\x01" * 16),
        "decimal": Decimal(1 << 40),
        "nested": {"uuid": NAME},
    }
    assert as_basic(final({}, {"application_headers": headers})).headers == {
        "uuid": str(NAME),
        "uint64": str(UINT64),
        "array": [1, 2],
        "unknown": b"\x01" * 16,
        "decimal": str(1 << 40),
        "nested": {"uuid": str(NAME)},
    }


def test_a_decimal_without_places_below_one_stays_a_number_or_becomes_text() -> None:
    found = as_final(basic(headers={"d": Decimal("1.5"), "e": Decimal(7)}))[1]
    assert found.application_headers == {"d": Decimal("1.5"), "e": Decimal(7)}


def test_a_header_that_cannot_be_read_is_carried_as_it_came() -> None:
    raw = b"\0\0\0\x04\x04\x03\xff\xff"
    message = Message("x", "k", Properties(raw, 2, 3, family=FAMILY_010), b"body")
    found = to_basic(message)
    assert decode_properties(found.raw) == BasicProperties(
        delivery_mode=2, priority=3, headers={"x-amqp-unreadable": raw}
    )
    back = from_basic(found)
    assert back.raw == raw
    assert (back.delivery_mode, back.priority) == (2, 3)


NAMES = (
    *LONG.values(),
    STRUCTS,
    UNREADABLE,
    RESUME_ID,
    RESUME_TTL,
    REPLY_EXCHANGE,
    MESSAGE_ID,
    TYPE,
    CLUSTER_ID,
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [
        LongString(b"\xff"),
        "text",
        "",
        5,
        Long(5),
        Timestamp(UINT64),
        TIME,
        Decimal(7),
        None,
        {},
        [],
    ],
    ids=repr,
)
def test_a_publisher_may_use_the_names_of_carried_fields_for_anything(
    name: str, value: Any
) -> None:
    headers = {name: value, "mine": "1"}
    assert as_final(basic(headers=headers))[1].application_headers["mine"] == "1"


def test_the_dispatch_finds_it() -> None:
    message = final({"delivery_mode": 2}, {"content_type": "text/plain"})
    there = converted(message, FAMILY_09)
    assert decode_properties(there.raw).content_type == "text/plain"
    assert converted(there, FAMILY_010).raw == message.raw


NUMBERS = st.none() | st.integers(0, 255)
OCTETS = st.none() | st.binary(max_size=300)


@given(
    st.builds(
        BasicProperties,
        content_type=st.none() | shortstr(),
        headers=st.none() | TABLES,
        delivery_mode=NUMBERS,
        priority=NUMBERS,
        correlation_id=st.none() | shortstr(),
        reply_to=st.none() | shortstr(),
        expiration=st.none() | st.integers(0, UINT64).map(str) | st.just("007"),
        message_id=st.none() | shortstr() | st.uuids().map(str),
        timestamp=st.none() | st.just(TIME),
        type=st.none() | shortstr(),
        user_id=st.none() | shortstr(),
        app_id=st.none() | shortstr(),
        cluster_id=st.none() | shortstr(),
    )
)
def test_basic_comes_back_as_it_went(properties: BasicProperties) -> None:
    raw = encode_properties(properties)
    message = Message("x", "k", parse_properties(raw), b"")
    found = decode_properties(to_basic(from_basic(message)).raw)
    before = decode_properties(raw)
    before.headers = before.headers or None
    assert found == before


@given(
    st.builds(
        DeliveryProperties,
        priority=NUMBERS,
        delivery_mode=NUMBERS,
        ttl=st.none() | st.integers(0, UINT64),
        timestamp=st.none() | st.just(TIME),
        resume_id=st.none() | st.text(max_size=300),
        resume_ttl=st.none() | st.integers(0, UINT64),
    ),
    st.builds(
        MessageProperties,
        message_id=st.none() | st.uuids(),
        correlation_id=OCTETS,
        reply_to=st.none()
        | st.builds(ReplyTo, exchange=st.none() | st.just("x"), routing_key=st.just("k")),
        content_type=st.none() | st.text(max_size=60),
        user_id=OCTETS,
        app_id=OCTETS,
        application_headers=st.dictionaries(
            st.text(max_size=10),
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20),
        ),
    ),
)
def test_a_message_of_0_10_comes_back_as_it_went(
    delivery: DeliveryProperties, message: MessageProperties
) -> None:
    sent = Message("x", "k", encode_final(delivery, message), b"")
    assert decode_final(from_basic(to_basic(sent)).raw) == (delivery, message)
