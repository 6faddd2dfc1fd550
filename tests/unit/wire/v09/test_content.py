"""Message properties: every one both ways, every malformed list, and pika as a second opinion."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import pika
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.limits import TABLE_DEPTH
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.fields import Timestamp, decode_table, encode_table
from tests.unit.wire.v09.attempt import attempt
from tests.unit.wire.v09.tables import TABLES, nested, shortstr, sized

NAMES = BasicProperties.__struct_fields__
SHORTSTRS = [
    name for name in NAMES if name not in ("headers", "delivery_mode", "priority", "timestamp")
]
TIMES = st.integers(0, 2**64 - 1).map(
    lambda n: Timestamp(n) if n > 253_402_300_799 else datetime.fromtimestamp(n, UTC)
)
PROPERTIES: st.SearchStrategy[BasicProperties] = st.builds(
    BasicProperties,
    headers=st.none() | TABLES,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    timestamp=st.none() | TIMES,
    **{name: st.none() | shortstr(30) for name in SHORTSTRS},
)


def test_the_fourteen_properties_stand_in_the_published_order():
    assert NAMES == (
        "content_type", "content_encoding", "headers", "delivery_mode", "priority",
        "correlation_id", "reply_to", "expiration", "message_id", "timestamp", "type",
        "user_id", "app_id", "cluster_id",
    )  # fmt: skip


@pytest.mark.parametrize(("place", "name"), list(enumerate(NAMES)))
def test_each_property_has_its_flag_counted_from_the_highest_bit(place: int, name: str):
    value: Any = {"headers": {}, "delivery_mode": 2, "priority": 9, "timestamp": 1}.get(name, "v")
    raw = encode_properties(BasicProperties(**{name: value}))
    assert raw[:2] == struct.pack(">H", 1 << (15 - place))
    found = decode_properties(raw)
    assert [each for each in NAMES if getattr(found, each) is not None] == [name]


def test_no_properties_are_two_octets():
    assert encode_properties(BasicProperties()) == b"\x00\x00"
    assert decode_properties(b"\x00\x00") == BasicProperties()


def test_empty_values_are_present_and_not_absent():
    properties = BasicProperties(content_type="", headers={}, priority=0)
    assert decode_properties(encode_properties(properties)) == properties


@given(PROPERTIES)
def test_properties_survive_the_round_trip(properties: BasicProperties):
    raw = encode_properties(properties)
    assert decode_properties(raw) == properties
    assert encode_properties(decode_properties(raw)) == raw


@given(PROPERTIES)
def test_parsing_finds_what_the_broker_needs(properties: BasicProperties):
    raw = encode_properties(properties)
    parsed = parse_properties(raw)
    assert parsed.raw == raw
    mode, priority = properties.delivery_mode, properties.priority
    assert parsed.delivery_mode == (0 if mode is None else mode)
    assert parsed.priority == (-1 if priority is None else priority)
    assert parsed.has_headers == (properties.headers is not None)
    looked_into = (properties.user_id, properties.expiration, properties.reply_to)
    carbon = properties.headers is not None and b"CC" in raw
    assert parsed.suspect == (carbon or any(value is not None for value in looked_into))


@given(PROPERTIES.filter(lambda properties: not properties.headers))
def test_pika_writes_the_same_octets(properties: BasicProperties):
    values = {name: getattr(properties, name) for name in NAMES}
    if isinstance(values["timestamp"], datetime):
        values["timestamp"] = int(values["timestamp"].timestamp())
    theirs = pika.BasicProperties(**values)
    # pika leaves out what is empty; we say that it is there and empty.
    theirs_raw = b"".join(theirs.encode())
    assert decode_properties(theirs_raw) == BasicProperties(
        **{name: getattr(properties, name) for name in NAMES if values[name] is not None}
    )


# --- times and texts that Python cannot hold ----------------------------------------------------


def test_a_timestamp_is_a_datetime_in_utc():
    raw = encode_properties(BasicProperties(timestamp=1_700_000_000))
    assert decode_properties(raw).timestamp == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_milliseconds_sent_as_seconds_are_kept_as_a_number():
    raw = encode_properties(BasicProperties(timestamp=1_700_000_000_000))
    found = decode_properties(raw)
    assert found.timestamp == 1_700_000_000_000
    assert encode_properties(found) == raw


def test_text_that_is_no_utf8_keeps_its_octets():
    raw = struct.pack(">H", 1 << 15) + b"\x02\xff\xfe"
    assert encode_properties(decode_properties(raw)) == raw


# --- malformed lists ----------------------------------------------------------------------------


def flagged(place: int, octets: bytes) -> bytes:
    """A list that says it has the property at this place."""
    return struct.pack(">H", 1 << (15 - place)) + octets


MALFORMED = [
    (b"", "property flags are missing"),
    (b"\x80", "property flags are missing"),
    (b"\x00\x01", "unknown property flags"),
    (b"\x00\x02", "unknown property flags"),
    (flagged(0, b""), "properties run over the end"),
    (flagged(0, b"\x02a"), "properties run over the end"),
    (flagged(3, b""), "properties run over the end"),
    (flagged(4, b""), "properties run over the end"),
    (flagged(9, bytes(7)), "properties run over the end"),
    (flagged(13, b"\xff"), "properties run over the end"),
    (flagged(2, b"\x00\x00\x00"), "properties run over the end"),
    (flagged(2, b"\x00\x00\x00\x01"), "headers run over the end"),
    (flagged(2, b"\xff\xff\xff\xff"), "headers run over the end"),
    (flagged(2, sized(b"\x01kZ")), "headers are not a field table"),
    (flagged(2, sized(b"\x01k")), "headers are not a field table"),
    (flagged(2, sized(b"\x01kI\x00")), "headers are not a field table"),
    (flagged(2, nested(TABLE_DEPTH + 1)), "headers are not a field table"),
    (flagged(2, nested(TABLE_DEPTH + 1, b"A")), "headers are not a field table"),
    (flagged(2, nested(3_000)), "headers are not a field table"),
    (b"\x00\x00\x00", "octets after the last property"),
    (flagged(3, b"\x02\x02"), "octets after the last property"),
]


@pytest.mark.parametrize(("raw", "why"), MALFORMED)
def test_a_malformed_list_is_an_unexpected_frame(raw: bytes, why: str):
    for read in (parse_properties, decode_properties):
        with pytest.raises(ProtocolError) as caught:
            read(raw)
        assert caught.value.code == 505
        assert caught.value.text == f"malformed content header: {why}"
        assert caught.value.class_id == 60


def test_the_deepest_headers_that_are_allowed_pass():
    for tag in (b"F", b"A"):
        raw = flagged(2, nested(TABLE_DEPTH, tag))
        assert parse_properties(raw).has_headers
        assert decode_properties(raw).headers


def decodes(raw: bytes) -> bool:
    """Whether a list can be decoded; any other outcome than yes or 505 is a failure."""
    parsed, decoded = attempt(parse_properties, raw), attempt(decode_properties, raw)
    refused = isinstance(parsed, ProtocolError)
    assert isinstance(decoded, ProtocolError) == refused
    if refused:
        assert parsed.code == decoded.code == 505
    return not refused


@given(st.integers(0, 2**16 - 1), st.binary(max_size=120))
def test_parsing_and_decoding_agree_on_arbitrary_lists(flags: int, octets: bytes):
    decodes(struct.pack(">H", flags) + octets)


@given(st.binary(max_size=120))
def test_parsing_passes_the_header_tables_that_can_be_read_and_no_others(octets: bytes):
    readable = not isinstance(attempt(decode_table, sized(octets)), ProtocolError)
    assert decodes(flagged(2, sized(octets))) == readable


@given(PROPERTIES, st.data())
def test_parsing_and_decoding_agree_on_damaged_lists(
    properties: BasicProperties, data: st.DataObject
):
    raw = bytearray(encode_properties(properties))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    decodes(bytes(raw))


@given(TABLES)
def test_every_table_that_can_be_written_passes_as_headers(table: dict[str, Any]):
    assert decodes(flagged(2, encode_table(table)))


# --- what cannot be written ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("priority", 256, "priority: 256 is not between 0 and 255"),
        ("delivery_mode", -1, "delivery_mode: -1 is not between"),
        ("timestamp", -1, "'timestamp': a time -1 seconds"),
        ("timestamp", datetime(2020, 1, 1), "'timestamp': a datetime without a time zone"),
        ("app_id", "x" * 256, "app_id: it has 256 octets, at most 255"),
        ("type", "\ud800", "type: .*UTF-8 cannot express"),
        ("headers", {"big": 2**63}, "headers: 'big': .* does not fit"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(name: str, value: Any, why: str):
    with pytest.raises(ValueError, match=why):
        encode_properties(BasicProperties(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("priority", True, "priority: must be int, not bool"),
        ("priority", "9", "priority: must be int, not str"),
        ("timestamp", 1.5, "timestamp: must be int or datetime, not float"),
        ("content_type", b"text/plain", "content_type: must be str, not bytes"),
        ("headers", [1], "headers: a field table must be a mapping, not list"),
        ("headers", {"x": object()}, "headers: 'x': .* cannot hold object"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_name(name: str, value: Any, why: str):
    with pytest.raises(TypeError, match=why):
        encode_properties(BasicProperties(**{name: value}))
