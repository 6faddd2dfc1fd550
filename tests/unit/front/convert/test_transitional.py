"""Transfers of transitional 0-10 as class basic has them, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_010T, FAMILY_09, Message
from harebell.front.convert import converted
from harebell.front.convert.transitional import from_basic, to_basic
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.fields import LongString, Timestamp, encode_table
from harebell.wire.v09.transfer import (
    EMPTY,
    TransferProperties,
    decode_transfer,
    encode_transfer,
    headers_octets,
    parse_transfer,
)
from harebell.wire.v09.typed_fields import FieldDialect, encode_typed
from tests.unit.wire.v09.tables import TABLES, shortstr

TEXTS = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "correlation_id": "c",
    "reply_to": "r",
    "message_id": "m",
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
}
NUMBERS = {"delivery_mode": 2, "priority": 9}
TIME = datetime(2007, 8, 10, 12, 0, tzinfo=UTC)


def transfer(table: bytes | None = None, **properties: Any) -> Message:
    """A message as it was transferred."""
    raw = encode_transfer(TransferProperties(**properties), table)
    return Message("x", "k", parse_transfer(raw), b"body")


def basic(**properties: Any) -> Message:
    """A message as it was published by basic.publish."""
    raw = encode_properties(BasicProperties(**properties))
    return Message("x", "k", parse_properties(raw), b"body")


def as_basic(message: Message) -> BasicProperties:
    """What a consumer of class basic sees of a transfer."""
    found = to_basic(message)
    assert (found.exchange, found.routing_key, found.body) == ("x", "k", b"body")
    assert found.family == FAMILY_09
    return decode_properties(found.raw)


def as_transfer(message: Message) -> TransferProperties:
    """What a consumer of transfers sees of a basic message."""
    found = from_basic(message)
    assert (found.exchange, found.routing_key, found.body) == ("x", "k", b"body")
    assert found.family == FAMILY_010T
    return decode_transfer(found.raw)


@pytest.mark.parametrize(("name", "value"), [*TEXTS.items(), *NUMBERS.items()])
def test_a_property_that_both_have_goes_both_ways(name: str, value: Any) -> None:
    assert as_basic(transfer(**{name: value})) == BasicProperties(**{name: value})
    assert as_transfer(basic(**{name: value})) == TransferProperties(**{name: value})


def test_nothing_stays_nothing() -> None:
    assert as_basic(transfer()) == BasicProperties()
    assert from_basic(basic()).raw == EMPTY


def test_fields_that_the_broker_needs_are_there_after_conversion() -> None:
    message = to_basic(transfer(priority=7, delivery_mode=2, application_headers={"a": 1}))
    assert (message.priority, message.delivery_mode, message.has_headers) == (7, 2, True)
    message = from_basic(basic(priority=7, delivery_mode=2, headers={"a": 1}))
    assert (message.priority, message.delivery_mode, message.has_headers) == (7, 2, True)


def test_the_dispatch_finds_both_ways() -> None:
    there = converted(basic(app_id="a"), FAMILY_010T)
    assert decode_transfer(there.raw).app_id == "a"
    assert decode_properties(converted(there, FAMILY_09).raw).app_id == "a"


@pytest.mark.parametrize(("seconds", "time"), [(1_186_747_200, TIME), (2**40, Timestamp(2**40))])
def test_a_timestamp_goes_both_ways(seconds: int, time: Any) -> None:
    assert as_basic(transfer(timestamp=seconds)).timestamp == time
    assert as_transfer(basic(timestamp=time)).timestamp == seconds


def test_the_ttl_is_the_expiration_of_basic() -> None:
    assert as_basic(transfer(ttl=1500, expiration=99)) == BasicProperties(expiration="1500")
    assert as_transfer(basic(expiration="1500")) == TransferProperties(ttl=1500)


@pytest.mark.parametrize("expiration", ["0", "007", "+5"])
def test_an_expiration_that_a_ttl_cannot_say_comes_back_from_a_header(expiration: str) -> None:
    there = from_basic(basic(expiration=expiration))
    found = decode_transfer(there.raw)
    assert found.ttl == int(expiration)
    assert found.application_headers == {"x-amqp-expiration": expiration}
    assert decode_properties(to_basic(there).raw) == BasicProperties(expiration=expiration)


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("transaction_id", "x-amqp-transaction-id", "x7"),
        ("security_token", "x-amqp-security-token", b"\0secret"),
    ],
)
def test_properties_that_basic_lacks_become_headers(name: str, header: str, value: Any) -> None:
    message = transfer(**{name: value}, application_headers={"a": 1})
    there = to_basic(message)
    assert decode_properties(there.raw) == BasicProperties(headers={"a": 1, header: value})
    assert as_transfer(there) == decode_transfer(message.raw)


def test_texts_that_are_no_utf8_keep_their_octets_in_headers() -> None:
    there = to_basic(transfer(transaction_id="\udcda"))
    assert decode_properties(there.raw).headers == {"x-amqp-transaction-id": LongString(b"\xda")}
    assert as_transfer(there) == TransferProperties(transaction_id="\udcda")


def test_a_cluster_id_is_a_header_in_a_transfer() -> None:
    message = basic(cluster_id="k")
    there = from_basic(message)
    assert decode_transfer(there.raw).application_headers == {"x-amqp-cluster-id": "k"}
    assert decode_properties(to_basic(there).raw) == BasicProperties(cluster_id="k")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amqp-transaction-id": 5},
        {"x-amqp-transaction-id": "x" * 256},
        {"x-amqp-security-token": "text"},
    ],
)
def test_a_header_that_cannot_be_the_field_stays_a_header(headers: dict[str, Any]) -> None:
    assert as_transfer(basic(headers=headers)).application_headers == headers


@pytest.mark.parametrize(
    "headers", [{"x-amqp-cluster-id": 5}, {"x-amqp-expiration": "7"}, {"x-amqp-expiration": 7}]
)
def test_a_header_that_cannot_be_the_property_stays_a_header(headers: dict[str, Any]) -> None:
    assert as_basic(transfer(application_headers=headers)).headers == headers


def test_headers_in_the_types_of_basic_keep_their_octets() -> None:
    table = b"\0\0\0\x0c\x01ab\x05\x01as\0\x07\x01zV"
    assert from_basic(to_basic(transfer(table))).raw == transfer(table).raw
    assert headers_octets(from_basic(to_basic(transfer(table))).raw) == table


def test_headers_in_types_of_their_own_become_those_of_basic() -> None:
    headers = {
        "bool": True,
        "int": 5,
        "long": 2**40,
        "float": 1.5,
        "text": "é",
        "octets": b"\xff",
        "time": TIME,
        "void": None,
        "decimal": Decimal("1.50"),
        "table": {"a": [1, "b", None]},
    }
    table = encode_typed(headers, FieldDialect.TYPED)
    assert as_basic(transfer(table)).headers == headers


def test_an_unsigned_long_that_basic_cannot_hold_becomes_text() -> None:
    table = encode_typed({"n": 2**63}, FieldDialect.TYPED)
    assert as_basic(transfer(table)).headers == {"n": str(2**63)}


@given(TABLES)
def test_every_header_of_basic_survives_the_way_there_and_back(headers: dict[str, Any]) -> None:
    message = basic(headers=headers)
    there = from_basic(message)
    assert headers_octets(there.raw) == encode_table(headers)
    assert decode_properties(to_basic(there).raw).headers == (headers or None)


@given(
    st.builds(
        TransferProperties,
        ttl=st.integers(0, 2**64 - 1),
        priority=st.integers(0, 9),
        timestamp=st.integers(0, 2**40),
        delivery_mode=st.integers(0, 2),
        transaction_id=shortstr(10),
        security_token=st.binary(max_size=10),
        application_headers=st.dictionaries(shortstr(5), st.integers(-9, 9), max_size=3),
        **{name: shortstr(10) for name in TEXTS},
    )
)
def test_every_transfer_survives_the_way_there_and_back(properties: TransferProperties) -> None:
    raw = encode_transfer(properties, dialect=FieldDialect.LETTERS)
    back = decode_transfer(from_basic(to_basic(Message("", "", parse_transfer(raw), b""))).raw)
    assert back == properties
