"""Octets for the kernels: well-formed frames made by hand, and ways to damage them."""

from __future__ import annotations

import itertools
import struct

from hypothesis import strategies as st

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
PLAIN = b"\0\0"
PERSISTENT = b"\x10\x00\x02"


def frame(kind: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes((end,))


def shortstr(text: bytes) -> bytes:
    return bytes((len(text),)) + text


def header(channel: int, size: int, properties: bytes = PLAIN, class_id: int = 60) -> bytes:
    return frame(HEADER, channel, struct.pack(">HHQ", class_id, 0, size) + properties)


def bodies(channel: int, body: bytes, limit: int = 1 << 20) -> bytes:
    pieces = (body[at : at + limit] for at in range(0, len(body), limit))
    return b"".join(frame(BODY, channel, piece) for piece in pieces)


def publish(
    body: bytes = b"hello",
    *,
    channel: int = 1,
    exchange: bytes = b"x",
    key: bytes = b"a.b",
    flags: int = 0,
    properties: bytes = PLAIN,
    limit: int = 1 << 20,
) -> bytes:
    method = b"\x00\x3c\x00\x28\x00\x00" + shortstr(exchange) + shortstr(key) + bytes((flags,))
    return (
        frame(METHOD, channel, method)
        + header(channel, len(body), properties)
        + bodies(channel, body, limit)
    )


def deliver(
    body: bytes = b"hello",
    *,
    channel: int = 1,
    consumer_tag: bytes = b"ctag",
    tag: int = 1,
    redelivered: int = 0,
    exchange: bytes = b"x",
    key: bytes = b"a.b",
    properties: bytes = PLAIN,
) -> bytes:
    method = (
        b"\x00\x3c\x00\x3c"
        + shortstr(consumer_tag)
        + struct.pack(">QB", tag, redelivered)
        + shortstr(exchange)
        + shortstr(key)
    )
    return (
        frame(METHOD, channel, method)
        + header(channel, len(body), properties)
        + bodies(channel, body)
    )


def ack(tag: int, *, channel: int = 1, multiple: int = 0) -> bytes:
    return frame(METHOD, channel, b"\x00\x3c\x00\x50" + struct.pack(">QB", tag, multiple))


names = st.sampled_from([b"", b"x", b"amq.topic", "schön".encode(), b"\xff\xfe", b"k" * 255])
channels = st.sampled_from([0, 1, 2, 65535])
property_lists = st.sampled_from(
    [
        PLAIN,
        PERSISTENT,
        b"\x18\x00\x02\x09",
        b"\x80\x00\x0atext/plain",
        b"\x20\x00\x00\x00\x00\x06\x01a\x49\x00\x00\x01",
        b"\x20\x00\x00\x00\x00\x07\x01aI\x00\x00\x00\x01",
        b"\x00\x40" + b"\0" * 8,
        b"\x01\x00\x0210",
        b"\x00\x10\x05guest",
        b"\x00\x01",
        b"\x10\x00",
    ]
)
payloads = st.binary(max_size=40)
pieces = st.one_of(
    st.builds(
        publish,
        payloads,
        channel=channels,
        exchange=names,
        key=names,
        flags=st.integers(0, 3),
        properties=property_lists,
        limit=st.sampled_from([7, 1 << 20]),
    ),
    st.builds(
        deliver,
        payloads,
        channel=channels,
        consumer_tag=names,
        tag=st.integers(0, 2**64 - 1),
        redelivered=st.integers(0, 1),
        exchange=names,
        key=names,
        properties=property_lists,
    ),
    st.builds(ack, st.integers(0, 2**64 - 1), channel=channels, multiple=st.integers(0, 1)),
    st.builds(frame, st.integers(0, 9), channels, payloads),
    st.builds(header, channels, st.integers(0, 60), property_lists, st.sampled_from([60, 90])),
)
streams = st.lists(pieces, max_size=8).map(b"".join)
"""Well-formed frames, not always in a sensible order."""


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A stream with some octets changed, and perhaps without its end."""
    data = bytearray(draw(streams))
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@st.composite
def cut(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream in arbitrary pieces."""
    data = draw(source)
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    ends = [0, *places, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]
