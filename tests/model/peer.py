"""A peer that writes and reads raw frames, without any opinion of what the broker should do.

It is the tests' own: the octets of frames are put together and taken apart here in the plainest
way, so that a fault of the scanner or of the output buffer cannot hide behind itself. Only the
fields of methods use the codec of the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.methods import BulkBatch

HEADER = b"AMQP\x00\x00\x09\x01"
END = 0xCE
FRAME_MAX = 131_072
WITH_CONTENT = (m.BasicDeliver, m.BasicGetOk, m.BasicReturn, BulkBatch)


CONTENTS = (b"\x00\x3c\x00\x00", b"\xf0\x01\x00\x00")
"""How the headers of their contents begin."""


class Event(NamedTuple):
    """Something the broker said: a method, with its content where it has one.

    Args:
        channel: the channel it came on.
        method: what it is.
        properties: the encoded property list of its content.
        body: the body of its content.
    """

    channel: int
    method: m.Method
    properties: bytes = b""
    body: bytes = b""


class BadOutput(AssertionError):
    """The broker wrote something that is not AMQP."""


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame (AMQP 0-9-1 4.2.3)."""
    head = bytes((kind,)) + channel.to_bytes(2) + len(payload).to_bytes(4)
    return head + payload + bytes((END,))


def call(channel: int, method: m.Method) -> bytes:
    """A method's frame."""
    return frame(1, channel, AMQP_0_9_1.encode(method))


def content(channel: int, properties: bytes, body: bytes, frame_max: int = FRAME_MAX) -> bytes:
    """The header frame and the body frames of a content."""
    out = frame(2, channel, b"\x00\x3c\x00\x00" + len(body).to_bytes(8) + properties)
    limit = frame_max - 8
    for at in range(0, len(body), limit):
        out += frame(3, channel, body[at : at + limit])
    return out


def publish(
    channel: int,
    exchange: str,
    key: str,
    body: bytes,
    *,
    mandatory: bool = False,
    properties: BasicProperties | None = None,
    frame_max: int = FRAME_MAX,
) -> bytes:
    """All frames of a publish."""
    method = m.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
    raw = encode_properties(properties or BasicProperties())
    return call(channel, method) + content(channel, raw, body, frame_max)


def login(
    *,
    capabilities: tuple[str, ...] = ("consumer_cancel_notify", "connection.blocked"),
    user: str = "guest",
    password: str = "guest",
    frame_max: int = FRAME_MAX,
    heartbeat: int = 0,
    vhost: str = "/",
) -> bytes:
    """Everything a client says until its connection is open, in one piece."""
    return b"".join(
        (
            HEADER,
            call(
                0,
                m.ConnectionStartOk(
                    client_properties={"capabilities": dict.fromkeys(capabilities, True)},
                    mechanism="PLAIN",
                    response=f"\0{user}\0{password}".encode(),
                    locale="en_US",
                ),
            ),
            call(0, m.ConnectionTuneOk(channel_max=2047, frame_max=frame_max, heartbeat=heartbeat)),
            call(0, m.ConnectionOpen(virtual_host=vhost)),
        )
    )


class _Content:
    """A content of which not everything has come."""

    def __init__(self, method: m.Method) -> None:
        self.method = method
        self.size = -1
        self.properties = b""
        self.body = bytearray()


class Reader:
    """Takes what the broker writes apart.

    Attributes:
        heartbeats: how many heartbeat frames have come.
        frame_max: no frame may be larger.
    """

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self.frame_max = frame_max
        self.heartbeats = 0
        self._rest = b""
        self._contents: dict[int, _Content] = {}

    @property
    def partial(self) -> bool:
        """Whether something incomplete has been read."""
        return bool(self._rest or self._contents)

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete with these octets."""
        events = []
        for kind, channel, payload in self._frames(data):
            event = self._frame(kind, channel, payload)
            if event is not None:
                events.append(event)
        return events

    def _frames(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        data = self._rest + data
        at = 0
        while len(data) - at >= 7:
            size = int.from_bytes(data[at + 3 : at + 7])
            if size + 8 > self.frame_max:
                raise BadOutput(f"a frame of {size + 8} octets, but frame-max is {self.frame_max}")
            if len(data) - at < size + 8:
                break
            if data[at + 7 + size] != END:
                raise BadOutput(f"frame ends with {data[at + 7 + size]:#x}")
            yield data[at], int.from_bytes(data[at + 1 : at + 3]), data[at + 7 : at + 7 + size]
            at += size + 8
        self._rest = data[at:]

    def _frame(self, kind: int, channel: int, payload: bytes) -> Event | None:
        if kind == 8:
            if channel or payload:
                raise BadOutput("a heartbeat with a channel or a payload")
            self.heartbeats += 1
            return None
        open_content = self._contents.get(channel)
        if kind == 1:
            if open_content is not None:
                raise BadOutput(f"a method inside a content on channel {channel}")
            method = AMQP_0_9_1.decode(payload)
            if isinstance(method, WITH_CONTENT):
                self._contents[channel] = _Content(method)
                return None
            return Event(channel, method)
        if open_content is None or kind not in (2, 3):
            raise BadOutput(f"a frame of type {kind} outside of a content on channel {channel}")
        if kind == 2:
            if open_content.size >= 0 or payload[:4] not in CONTENTS:
                raise BadOutput("a content header out of place")
            open_content.size = int.from_bytes(payload[4:12])
            open_content.properties = payload[12:]
        else:
            if open_content.size < 0 or not payload:
                raise BadOutput("a content body out of place")
            open_content.body += payload
        return self._finished(channel, open_content)

    def _finished(self, channel: int, part: _Content) -> Event | None:
        if len(part.body) < part.size:
            return None
        if len(part.body) > part.size:
            raise BadOutput("more body than the header announced")
        del self._contents[channel]
        return Event(channel, part.method, part.properties, bytes(part.body))
