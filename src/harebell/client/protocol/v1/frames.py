"""Frames of AMQP 1.0 that the client reads during the login, and those of its messages.

    size(4) doff(1) type(1) channel(2) [extended header] performative [payload]     AMQP 1.0 2.3

The size includes itself. `harebell.kernels.performatives` reads what comes after the login.
"""

from __future__ import annotations

from typing import Protocol

from harebell.base.errors import ProtocolError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.wire.v1.frames import encode_frame

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"

_HEAD = 8
_WORD = 4
_DOFF = 4
_KIND = 5
_SHORT_MAX = 0xFF
_TRANSFER = b"\x00\x53\x14"
_NULL, _TRUE, _FALSE, _ZERO = b"\x40", b"\x41", b"\x42", b"\x43"


class FrameReader(Protocol):
    """Gets what a `LoginScanner` finds."""

    def greeting(self, header: bytes) -> bool:
        """Handle a protocol header; True if it is the last one."""

    def frame(self, channel: int, kind: int, body: bytes) -> int:
        """Handle a frame: a performative."""


class LoginScanner:
    """Find protocol headers and frames of SASL in the first bytes of a broker.

    Args:
        reader: gets them.
    """

    def __init__(self, reader: FrameReader) -> None:
        self._reader = reader
        self._data = b""

    def feed(self, data: bytes) -> bytes | None:
        """Handle bytes; return those behind the last header, or None before it.

        Raises:
            ProtocolError: they are neither.
        """
        self._data += data
        while self._data:
            data = self._data
            if data[0]:
                if len(data) < _HEAD and AMQP_HEADER.startswith(data[:_WORD]):
                    break
                self._data = data[_HEAD:]
                if self._reader.greeting(data[:_HEAD]):
                    return self._data
                continue
            if len(data) < _HEAD:
                break
            size, body = int.from_bytes(data[:_WORD]), data[_DOFF] * _WORD
            if not _HEAD <= body <= size <= HANDSHAKE_FRAME_BYTES:
                raise ProtocolError(501, f"a frame of {size} octets came during the login")
            if len(data) < size:
                break
            self._data = data[size:]
            self._reader.frame(0, data[_KIND], data[body:size])
        return None


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
    return encode_frame(head + payload, channel)


TRANSFER_HEAD_BYTES = 64
"""What a frame of a transfer without a state needs at most beside its payload."""
