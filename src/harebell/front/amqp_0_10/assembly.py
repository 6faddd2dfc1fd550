"""An assembly in several frames: a control, or a command with header and body.

    frames     | command | header | body ... body |        segment  first frame ... last frame
    flags      1st segment                    last segment
    (AMQP 0-10 4.2.2: segments in this order, none twice)

Most transfers do not use this: the scanner passes them on as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import ProtocolError
from harebell.base.gauge import Gauge
from harebell.base.work import Work
from harebell.front.common.unfinished_body import free
from harebell.front.limits import ASSEMBLED_MAX_BYTES
from harebell.kernels.bodies import GatheredBody
from harebell.kernels.segments import (
    BODY,
    COMMAND,
    CONTROL,
    FIRST_FRAME,
    FIRST_SEGMENT,
    HEADER,
    LAST_FRAME,
    LAST_SEGMENT,
)
from harebell.wire.v010.spec import FRAMING_ERROR

_FOLLOWS = {-1: (CONTROL, COMMAND), CONTROL: (), COMMAND: (HEADER, BODY), HEADER: (BODY,), BODY: ()}


class Assembly:
    """A command that is being received.

    Args:
        gauge: counts the bytes of incomplete bodies.
        message_max: most bytes of a body; further bytes are counted and dropped.
        work: the broker's counter of work units.
        limit: most bytes of a control, a command or a header.

    Attributes:
        size: the received bytes of the body.
        drain: gets the body piece by piece in place of this object; usually None.
    """

    __slots__ = (
        "_counted",
        "_gauge",
        "_in_segment",
        "_kind",
        "_limit",
        "_message_max",
        "_segments",
        "_taken",
        "_work",
        "drain",
        "size",
    )

    def __init__(
        self, gauge: Gauge, message_max: int, work: Work, limit: int = ASSEMBLED_MAX_BYTES
    ) -> None:
        self._gauge = gauge
        self._limit = limit
        self._work = work
        self._message_max = message_max
        self._kind = -1
        self._in_segment = False
        self._segments: dict[int, GatheredBody] = {}
        self._taken: dict[int, bytes] = {}
        self._counted = 0
        self.size = 0
        self.drain: Callable[[bytes], None] | None = None

    def frame(self, flags: int, kind: int, payload: bytes) -> bool:
        """Take the next frame; True when the assembly is whole.

        Raises:
            ProtocolError: 501 for a frame out of order, or a control, command or header that is too
                long.
        """
        first = bool(flags & FIRST_FRAME)
        # A first frame within a segment, another one outside, or a frame of another segment.
        if first == self._in_segment or (not first and kind != self._kind):
            raise _disorder(kind, "a segment begins with its first frame and ends with its last")
        if first:
            if kind not in _FOLLOWS[self._kind]:
                raise _disorder(kind, f"it does not follow {_name(self._kind)}")
            if bool(flags & FIRST_SEGMENT) != (self._kind == -1):
                raise _disorder(kind, "the first-segment flag is set where it must not be, or not")
            self._kind = kind
            self._segments[kind] = GatheredBody()
        self._keep(kind, payload)
        self._in_segment = not flags & LAST_FRAME
        return not self._in_segment and bool(flags & LAST_SEGMENT)

    @property
    def kind(self) -> int:
        """The type of the last segment."""
        return self._kind

    @property
    def counted(self) -> int:
        """The bytes that are kept until it is whole."""
        return self._counted

    @property
    def too_large(self) -> bool:
        """True if the body has more bytes than a message may have."""
        return self.size > self._message_max

    def release(self) -> None:
        """Stop counting the body: it is complete or was dropped."""
        self._gauge.take(self._counted)
        self._gauge.unread -= self._counted
        self._counted = 0

    def drop(self) -> None:
        """Drop an incomplete assembly; the memory of a large body is freed in later turns."""
        self.release()
        if BODY in self._segments:
            free(self._segments[BODY], self._work)

    def control(self) -> bytes:
        """Return the segment of the control."""
        return self._whole(CONTROL)

    def command(self) -> bytes:
        """Return the segment of the command."""
        return self._whole(COMMAND)

    def header(self) -> bytes:
        """Return the segment of the header, empty without one."""
        return self._whole(HEADER)

    def body(self) -> bytes:
        """Return the segment of the body, empty without one."""
        return self._whole(BODY)

    @property
    def has_body(self) -> bool:
        """True if there was a body segment, however short."""
        return BODY in self._segments

    def _whole(self, kind: int) -> bytes:
        # Kept: a command that waits for a decision about a permission is executed again.
        if kind in self._segments and kind not in self._taken:
            self._taken[kind] = self._segments[kind].take()
        return self._taken.get(kind, b"")

    def _keep(self, kind: int, payload: bytes) -> None:
        """Keep a piece."""
        if kind == BODY:
            if self.drain is not None:
                self.drain(payload)
                return
            self.size += len(payload)
            if self.too_large:
                # Only the session ends, when the command is whole: its frames are still read.
                self.drop()
                self._segments[BODY] = GatheredBody()
                return
        else:
            if self._segments[kind].size + len(payload) > self._limit:
                text = f"{_name(kind)} of more than {self._limit} octets"
                raise ProtocolError(FRAMING_ERROR, text)
        self._counted += len(payload)
        self._gauge.add(len(payload))
        self._gauge.unread += len(payload)
        self._segments[kind].add(payload)


def _name(kind: int) -> str:
    names = {CONTROL: "a control", COMMAND: "a command", HEADER: "a header", BODY: "a body"}
    return names.get(kind, "nothing")


def _disorder(kind: int, why: str) -> ProtocolError:
    return ProtocolError(FRAMING_ERROR, f"{_name(kind)} out of order: {why}")
