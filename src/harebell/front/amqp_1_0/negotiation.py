"""The input before the frames of AMQP: the SASL layer, and the header behind it.

    SASL frame   size(4) doff(1) type 1 (1) 0(2)   one composite        AMQP 1.0 5.3.1
    header       A M Q P 0 1 0 0                    after the login      AMQP 1.0 2.2

It takes the place of the scanner until then, and has what `Scanner` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.errors import FramingError
from harebell.wire import HEADER_1_0, HEADER_BYTES
from harebell.wire.v1.frames import HEAD, SASL, unexpected_type

if TYPE_CHECKING:
    from harebell.front.common.connection_ports import Scanner

_MIN_OFFSET = 2
_WORD = 4


class NegotiationScanner:
    """Splits the input into SASL frames and the header of AMQP.

    Args:
        frame: called with the body of each SASL frame.
        header: called with the eight octets of the header; returns the scanner of the frames,
            which gets the input from there on, or None to drop it.

    Attributes:
        frame_max: the largest accepted frame, in octets.
        expects_header: whether the header comes next, and not a frame.
        fast, stopped, hold, cut, pending: as for `Scanner`.
    """

    def __init__(
        self, frame: Callable[[bytes], None], header: Callable[[bytes], Scanner | None]
    ) -> None:
        self.frame_max = 0
        self.expects_header = False
        self.fast = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self._frame = frame
        self._header = header
        self._rest = b""

    @property
    def buffered(self) -> int:
        """The octets that are kept until the rest of their frame arrives."""
        return len(self._rest)

    def break_cycle(self) -> None:
        """Drop the kept input, and what refers to the connection."""
        self.stopped = True
        self._rest = b""
        self._frame = _drop
        self._header = _drop

    def feed(self, data: bytes | memoryview) -> None:
        """Scan input.

        Raises:
            FramingError: the header of a frame is malformed.
        """
        self._rest += bytes(data)
        while not self.hold and not self.stopped:
            if self.expects_header:
                if len(self._rest) >= HEADER_BYTES:
                    self._pass_on()
                return
            size = self._whole_frame()
            if not size:
                return
            frame, self._rest = self._rest[:size], self._rest[size:]
            self._frame(frame[frame[4] * _WORD :])

    def _pass_on(self) -> None:
        """Hand the header over, and the input behind it to the scanner of the frames."""
        header, rest = self._rest[:HEADER_BYTES], self._rest[HEADER_BYTES:]
        self._rest = b""
        scanner = self._header(header)
        if scanner is not None:
            # What was decided about this scanner holds for the next one.
            scanner.hold, scanner.stopped = self.hold, self.stopped
            scanner.feed(rest)

    def _whole_frame(self) -> int:
        """Return the size of the first frame; 0 if it has not arrived as a whole."""
        data = self._rest
        if len(data) < HEAD:
            return 0
        size, offset, kind = int.from_bytes(data[:4]), data[4], data[5]
        if size < HEAD:
            raise FramingError(f"frame size ({size} bytes) < minimum frame size ({HEAD} bytes)")
        if size > self.frame_max:
            raise FramingError(
                f"frame size ({size} bytes) > maximum frame size ({self.frame_max} bytes)"
            )
        if offset < _MIN_OFFSET:
            raise FramingError(f"data offset ({offset}) < minimum data offset ({_MIN_OFFSET})")
        if offset * _WORD > size:
            raise FramingError(f"data offset ({offset * _WORD} bytes) > frame size ({size} bytes)")
        if kind != SASL:
            raise unexpected_type(kind, SASL)
        return size if len(data) >= size else 0


def is_amqp(header: bytes) -> bool:
    """True if a header is the one of AMQP 1.0 without a layer."""
    return header == HEADER_1_0


def _drop(data: bytes) -> None:
    """Drop input: the connection has ended."""
