"""Large message bodies as frames that are encoded while the peer reads them.

AMQP 0-8, 0-9 and 0-9-1:

    03 | channel(2) | size(4) | bytes ... | CE         a frame for every `limit` bytes of the body

AMQP 0-10, where flags mark the first and the last frame of the segment:

    flags | 03 | size(2) | 00 | 01 | channel(2) | 00000000 | bytes ...

AMQP 1.0, where a transfer without delivery-id goes on with the delivery of its link:

    size(4) | 02 | 00 | channel(2) | 00 53 14 C0 0B 06 70 handle(4) 40 40 40 40 more(1) | bytes ...
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

_BODY = b"\x03"
_END = b"\xce"
_OVERHEAD = 8
_SEGMENT_OVERHEAD = 12
_TRANSFER = b"\x00\x53\x14\xc0\x0b\x06\x70"
_TRANSFER_OVERHEAD = 24
_LAST_SEGMENT, _FIRST_FRAME, _LAST_FRAME = 4, 2, 1


class BodyFrames:
    """Body frames that are not encoded yet.

    Args:
        channel: the channel number.
        body: the whole body.
        limit: most bytes of it in one frame.

    Attributes:
        left: bytes that are left, including the overhead of frames.
    """

    OVERHEAD = _OVERHEAD

    __slots__ = ("_at", "_body", "_channel", "_limit", "left")

    def __init__(self, channel: int, body: bytes | memoryview, limit: int) -> None:
        self._channel = channel.to_bytes(2)
        self._body = memoryview(body)
        self._limit = limit
        self._at = 0
        self.left = len(body) + -(-len(body) // limit) * self.OVERHEAD

    def take(self, byte_count: int) -> bytes:
        """Return the next frames: as many as fit in that many bytes, and at least one."""
        return b"".join(self.take_parts(byte_count))

    def take_parts(self, byte_count: int) -> list[bytes | memoryview]:
        """Return them without copying the body."""
        parts: list[bytes | memoryview] = []
        size = 0
        while self._at < len(self._body):
            part = self._body[self._at : self._at + self._limit]
            size += len(part) + self.OVERHEAD
            if parts and size > byte_count:
                break
            self._append(parts, part)
            self._at += len(part)
            self.left -= len(part) + self.OVERHEAD
        return parts

    def _append(self, parts: list[bytes | memoryview], part: memoryview) -> None:
        """Append one frame."""
        parts += (_BODY + self._channel + len(part).to_bytes(4), part, _END)


class ScatteredFrames(BodyFrames):
    """As `BodyFrames`, for a body that is in several places.

    Args:
        channel: the channel number.
        parts: of the body, in order.
        limit: most bytes of it in one frame.
    """

    __slots__ = ("_missing", "_parts")

    def __init__(self, channel: int, parts: Sequence[bytes], limit: int) -> None:
        super().__init__(channel, b"", limit)
        self._parts = deque(memoryview(part) for part in parts if part)
        self._missing = sum(len(part) for part in self._parts)
        self.left = self._missing + -(-self._missing // limit) * self.OVERHEAD

    def take_parts(self, byte_count: int) -> list[bytes | memoryview]:
        """Return them without copying the body."""
        parts: list[bytes | memoryview] = []
        size = 0
        while self._missing:
            frame = min(self._missing, self._limit)
            size += frame + self.OVERHEAD
            if parts and size > byte_count:
                break
            self._missing -= frame
            self.left -= frame + self.OVERHEAD
            parts.append(_BODY + self._channel + frame.to_bytes(4))
            while frame:
                part = self._parts.popleft()
                if len(part) > frame:
                    self._parts.appendleft(part[frame:])
                    part = part[:frame]
                parts.append(part)
                frame -= len(part)
            parts.append(_END)
        return parts


class SegmentFrames(BodyFrames):
    """As `BodyFrames`, for AMQP 0-10, where the body is the last segment of an assembly."""

    OVERHEAD = _SEGMENT_OVERHEAD

    __slots__ = ()

    def _append(self, parts: list[bytes | memoryview], part: memoryview) -> None:
        flags = _LAST_SEGMENT
        flags |= _FIRST_FRAME if self._at == 0 else 0
        flags |= _LAST_FRAME if self._at + len(part) == len(self._body) else 0
        size = (len(part) + _SEGMENT_OVERHEAD).to_bytes(2)
        parts += (bytes((flags,)) + _BODY + size + b"\0\1" + self._channel + bytes(4), part)


class TransferFrames(BodyFrames):
    """As `BodyFrames`, for AMQP 1.0, where the body is the rest of a delivery.

    Args:
        channel: the channel number.
        handle: of the link.
        body: the whole body.
        limit: most bytes of it in one frame.
    """

    OVERHEAD = _TRANSFER_OVERHEAD

    __slots__ = ("_handle",)

    def __init__(self, channel: int, handle: int, body: bytes | memoryview, limit: int) -> None:
        super().__init__(channel, body, limit)
        self._handle = handle.to_bytes(4)

    def _append(self, parts: list[bytes | memoryview], part: memoryview) -> None:
        more = self._at + len(part) < len(self._body)
        parts += (transfer_head(self._channel, self._handle, len(part), more), part)


def transfer_head(channel: bytes, handle: bytes, size: int, more: bool) -> bytes:
    """Return what is before the payload in a frame that goes on with a delivery of AMQP 1.0.

    Args:
        channel: the channel number, in two bytes.
        handle: of the link, in four bytes.
        size: bytes of the payload.
        more: whether it is not the last frame.
    """
    last = b"\x40\x40\x40\x40" + (b"\x41" if more else b"\x42")
    head = (size + _TRANSFER_OVERHEAD).to_bytes(4) + b"\2\0" + channel
    return head + _TRANSFER + handle + last


def encoded(parts: Iterable[bytes | BodyFrames]) -> bytes:
    """Join the parts of an output."""
    return b"".join([part if isinstance(part, bytes) else part.take(part.left) for part in parts])
