"""Property lists of the other content classes: each property both ways, each malformed list."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_FILE, FAMILY_STREAM, PERSISTENT
from harebell.wire.v09.property_list import (
    FILE,
    OTHER_LISTS,
    STREAM,
    TEST,
    TUNNEL,
    FileProperties,
    PropertyList,
    StreamProperties,
    TunnelProperties,
)
from tests.unit.wire.v09.attempt import attempt
from tests.unit.wire.v09.tables import TABLES, shortstr

ORDER = {
    70: (
        "content_type", "content_encoding", "headers", "priority", "reply_to", "message_id",
        "filename", "timestamp", "cluster_id",
    ),
    80: ("content_type", "content_encoding", "headers", "priority", "timestamp"),
    110: ("headers", "proxy_name", "data_name", "durable", "broadcast"),
    120: (),
}  # fmt: skip
VALUES: dict[str, Any] = {
    "headers": {"a": 1},
    "priority": 7,
    "durable": 1,
    "broadcast": 2,
    "timestamp": datetime(2007, 8, 1, tzinfo=UTC),
}
EACH = [
    (listed, place, name) for listed in OTHER_LISTS.values()
    for place, name in enumerate(ORDER[listed.class_id])
]  # fmt: skip
FILES = st.builds(
    FileProperties,
    headers=st.none() | TABLES,
    priority=st.none() | st.integers(0, 255),
    **{
        name: st.none() | shortstr(30)
        for name in ORDER[70] if name not in VALUES
    },
)  # fmt: skip


@pytest.mark.parametrize("class_id", list(ORDER))
def test_the_properties_stand_in_the_published_order(class_id: int):
    assert OTHER_LISTS[class_id].kind.__struct_fields__ == ORDER[class_id]


@pytest.mark.parametrize(("listed", "place", "name"), EACH)
def test_each_property_has_its_flag_counted_from_the_highest_bit(
    listed: PropertyList, place: int, name: str
):
    value = VALUES.get(name, "text")
    raw = listed.encode(listed.kind(**{name: value}))
    assert raw[:2] == struct.pack(">H", 1 << (15 - place))
    assert listed.decode(raw) == listed.kind(**{name: value})


def test_a_file_is_encoded_as_the_layout_says():
    raw = FILE.encode(FileProperties(content_type="a/b", priority=5, filename="x.txt"))
    assert raw == b"\x92\x00" + b"\x03a/b" + b"\x05" + b"\x05x.txt"
    assert FILE.header(9, raw) == b"\x00\x46\x00\x00" + b"\0\0\0\0\0\0\0\x09" + raw


def test_fields_that_the_broker_needs_of_a_file_are_found():
    found = FILE.made(FileProperties(headers={}, priority=3))
    assert (found.family, found.delivery_mode) == (FAMILY_FILE, PERSISTENT)
    assert (found.priority, found.has_headers) == (3, True)


def test_fields_that_the_broker_needs_of_a_packet_are_found():
    found = STREAM.made(StreamProperties(content_type="video/mpeg"))
    assert (found.family, found.delivery_mode) == (FAMILY_STREAM, 1)
    assert (found.priority, found.has_headers) == (-1, False)
    assert STREAM.empty == STREAM.parse(b"\0\0")


@pytest.mark.parametrize(
    ("listed", "raw", "text"),
    [
        (FILE, b"", "property flags are missing"),
        (FILE, b"\0", "property flags are missing"),
        (FILE, b"\0\x40", "unknown property flags"),
        (FILE, b"\0\x01", "unknown property flags"),
        (TEST, b"\x80\0", "unknown property flags"),
        (STREAM, b"\0\0x", "octets after the last property"),
        (STREAM, b"\x80\0", "content-type runs over the end"),
        (STREAM, b"\x80\0\x05abc", "content-type runs over the end"),
        (STREAM, b"\x10\0", "priority runs over the end"),
        (STREAM, b"\x08\0\0\0\0\0\0\0\0", "timestamp runs over the end"),
        (TUNNEL, b"\x80\0\0\0", "malformed field table: its size is cut off"),
    ],
)
def test_a_malformed_list_is_refused_with_a_reason(listed: PropertyList, raw: bytes, text: str):
    with pytest.raises(ProtocolError) as caught:
        listed.parse(raw)
    error = caught.value
    assert (error.code, error.class_id) == (505, listed.class_id)
    assert error.text == f"malformed content header: {text}"


@pytest.mark.parametrize(
    ("properties", "error", "text"),
    [
        (FileProperties(priority=256), ValueError, "priority: 256 is not between 0 and 255"),
        (FileProperties(priority=True), TypeError, "priority: must be int, not bool"),
        (FileProperties(filename="x" * 256), ValueError, "filename: it has 256 octets"),
        (FileProperties(reply_to=7), TypeError, "reply_to: must be str, not int"),  # type: ignore[arg-type]
        (FileProperties(message_id="\ud800"), ValueError, "message_id: "),
        (FileProperties(headers={"a": object()}), TypeError, "headers: "),
        (FileProperties(timestamp="now"), TypeError, "timestamp: must be int or datetime"),  # type: ignore[arg-type]
        (TunnelProperties(), TypeError, "a content of class file has no TunnelProperties"),
    ],
)
def test_a_value_that_does_not_fit_is_named(properties: Any, error: type[Exception], text: str):
    with pytest.raises(error) as caught:
        FILE.encode(properties)
    assert text in str(caught.value)


@given(FILES)
def test_every_list_comes_back_as_it_was_written(properties: FileProperties):
    assert FILE.decode(FILE.encode(properties)) == properties


@given(st.binary(max_size=60), st.sampled_from(sorted(OTHER_LISTS)))
def test_any_octets_are_refused_or_read_and_written_again(raw: bytes, class_id: int):
    listed = OTHER_LISTS[class_id]
    decoded = attempt(listed.decode, raw)
    if isinstance(decoded, ProtocolError):
        assert decoded.code == 505
        return
    assert repr(listed.decode(listed.encode(decoded))) == repr(decoded)
