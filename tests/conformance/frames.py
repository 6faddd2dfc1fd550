"""Frames as the harness writes and reads them: a codec of its own, so that a mistake in ours shows.

    type(1) channel(2) size(4) payload(size) 0xCE            AMQP 0-9-1 4.2.3

Every frame that a broker sends to any test goes through `Reader`, which holds it to the rules that
every frame must keep, whatever the test is about.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = 0xCE
OVERHEAD = 8
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

_HEAD = struct.Struct(">BHI")
_CONNECTION_CLASS = 10
_KINDS = {METHOD, HEADER, BODY, HEARTBEAT}


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: int
    channel: int
    payload: bytes

    @property
    def octets(self) -> bytes:
        """The frame as it travels."""
        head = _HEAD.pack(self.kind, self.channel, len(self.payload))
        return head + self.payload + bytes((END,))

    @property
    def size(self) -> int:
        """Its length on the wire."""
        return OVERHEAD + len(self.payload)


def frame(kind: int, channel: int, payload: bytes = b"", end: int = END) -> bytes:
    """A frame's octets; `end` may be wrong on purpose."""
    return _HEAD.pack(kind, channel, len(payload)) + payload + bytes((end,))


def content_header(size: int, properties: bytes = b"\0\0", class_id: int = 60, weight: int = 0,
                   channel: int = 1) -> bytes:  # fmt: skip
    """A content header frame (AMQP 0-9-1 4.2.6.1)."""
    payload = struct.pack(">HHQ", class_id, weight, size) + properties
    return frame(HEADER, channel, payload)


def body(payload: bytes, channel: int = 1) -> bytes:
    """A content body frame."""
    return frame(BODY, channel, payload)


class Reader:
    """Cuts what a broker sends into frames, and checks each.

    Attributes:
        frame_max: the longest frame that was agreed on; 0 before that.
    """

    def __init__(self) -> None:
        self.frame_max = 0
        self.data = bytearray()

    def next(self) -> Frame | None:
        """The next whole frame, None while it is not all there."""
        if len(self.data) < _HEAD.size:
            return None
        kind, channel, size = _HEAD.unpack_from(self.data)
        if len(self.data) < OVERHEAD + size:
            assert kind in _KINDS, f"the broker sends a frame of type {kind}: {bytes(self.data)!r}"
            return None
        found = Frame(kind, channel, bytes(self.data[_HEAD.size : _HEAD.size + size]))
        end = self.data[_HEAD.size + size]
        del self.data[: found.size]
        self._check(found, end)
        return found

    def _check(self, found: Frame, end: int) -> None:
        assert end == END, f"a frame of the broker ends in {end:#x}: {found}"
        assert found.kind in _KINDS, f"the broker sends a frame of unknown type: {found}"
        assert self.frame_max == 0 or found.size <= self.frame_max, (
            f"the broker sends {found.size} octets in a frame, {self.frame_max} were agreed on"
        )
        on_zero = found.kind == HEARTBEAT
        if found.kind == METHOD:
            on_zero = int.from_bytes(found.payload[:2]) == _CONNECTION_CLASS
        assert on_zero == (found.channel == 0), f"the broker sends on the wrong channel: {found}"
        assert found.kind != HEARTBEAT or not found.payload, "a heartbeat has no payload"
