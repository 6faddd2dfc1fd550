"""Frames of AMQP 1.0, as the client finds and writes them.

    size(4) doff(1) type(1) channel(2) [extended header] performative [payload]     AMQP 1.0 2.3

The size includes itself. A frame without a performative keeps the connection alive.
"""

from __future__ import annotations

from typing import Protocol

from harebell.base.errors import ProtocolError

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
KEEP_ALIVE = b"\x00\x00\x00\x08\x02\x00\x00\x00"
AMQP, SASL = 0, 1

_HEAD = 8
_WORD = 4
_DOFF = 2
_SHORT_MAX = 0xFF
_TRANSFER = b"\x00\x53\x14"
_NULL, _TRUE, _FALSE, _ZERO = b"\x40", b"\x41", b"\x42", b"\x43"


class FrameReader(Protocol):
    """Gets what a `FrameScanner1` finds."""

    def greeting(self, header: bytes) -> None:
        """Handle a protocol header."""

    def frame(self, kind: int, channel: int, body: bytes) -> None:
        """Handle a frame: performative and payload."""


class FrameScanner1:
    """Find the frames in the bytes of a broker.

    Args:
        reader: gets them.

    Attributes:
        headers: how many protocol headers come before the next frame.
        frame_max: longest frame that is accepted, in bytes.
        stopped: drop everything from now on.
        fast: not used: every frame takes the same way.
    """

    def __init__(self, reader: FrameReader, frame_max: int) -> None:
        self.headers = 1
        self.frame_max = frame_max
        self.stopped = False
        self.fast = False
        self._reader = reader
        self._data = b""

    def feed(self, data: bytes) -> None:
        """Handle bytes.

        Raises:
            ProtocolError: they are no frames.
        """
        if self._data:
            data = self._data + data
        start = 0
        while not self.stopped:
            end = self._end(data, start)
            if not end:
                break
            self._hand_over(data, start, end)
            start = end
        self._data = b"" if self.stopped else data[start:]

    def _end(self, data: bytes, start: int) -> int:
        """Return the end of the next header or frame; 0 if it is not complete."""
        left = len(data) - start
        if self.headers:
            if left < _HEAD and AMQP_HEADER.startswith(data[start : start + _WORD]):
                return 0
            return start + _HEAD
        if left < _WORD:
            return 0
        size = int.from_bytes(data[start : start + _WORD])
        if not _HEAD <= size <= self.frame_max:
            raise ProtocolError(501, f"a frame of {size} octets came; {self.frame_max} are allowed")
        return start + size if size <= left else 0

    def _hand_over(self, data: bytes, start: int, end: int) -> None:
        if self.headers:
            self.headers -= 1
            self._reader.greeting(data[start:end])
            return
        body = data[start + 4] * _WORD
        if not _HEAD <= body <= end - start:
            raise ProtocolError(501, f"the body of a frame begins at octet {body}")
        channel = int.from_bytes(data[start + 6 : start + 8])
        self._reader.frame(data[start + 5], channel, data[start + body : end])


def frame(channel: int, body: bytes, kind: int = AMQP) -> bytes:
    """Return a frame."""
    return b"%b%c%c%b%b" % (
        (len(body) + _HEAD).to_bytes(4), _DOFF, kind, channel.to_bytes(2), body
    )  # fmt: skip


def transfer_frame(
    channel: int,
    handle: int,
    number: int | None,
    payload: bytes | memoryview,
    *,
    settled: bool,
    more: bool,
    state: bytes,
) -> bytes:
    """Return a transfer and a piece of its message in a frame.

    Args:
        channel: the channel of the session.
        handle: that of the link.
        number: the delivery-id, from which the delivery-tag is made; None after the first frame.
        payload: the piece of the message.
        settled: whether no outcome is expected.
        more: whether the message goes on in another frame.
        state: the encoded state of the delivery; b"" for none.
    """
    if number is None:
        identity = _NULL + _NULL + _NULL
    else:
        octets = number.to_bytes(4)
        identity = b"\x70%b\xa0\x04%b%b" % (octets, octets, _ZERO)
    flags = (_TRUE if settled else _FALSE) + (_TRUE if more else _FALSE)
    fields = b"\x70%b%b%b" % (handle.to_bytes(4), identity, flags)
    count = 6
    if state:
        fields += _NULL + state
        count = 8
    if len(fields) < _SHORT_MAX:
        head = b"%b\xc0%c%c%b" % (_TRANSFER, len(fields) + 1, count, fields)
    else:
        size = (len(fields) + 4).to_bytes(4)
        head = b"%b\xd0%b%b%b" % (_TRANSFER, size, count.to_bytes(4), fields)
    return frame(channel, head + payload)


TRANSFER_HEAD_BYTES = 64
"""What a frame of a transfer without a state needs at most beside its payload."""
