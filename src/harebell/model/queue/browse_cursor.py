"""Go through the messages of a queue without taking them, in slices.

ready     in the order of delivery, levels of a priority queue from the highest
all       in the order of the log, with messages that are delivered, leased, or wait for a retry
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.ports import Log
from harebell.model.queue.browse import READY, UNACKNOWLEDGED, BrowseCursor, Browsed, Start
from harebell.model.queue.features.failure_counts import FAILURES, REJECTIONS_SHIFT
from harebell.model.queue.position_range import position_at

if TYPE_CHECKING:
    from harebell.model.queue.order.contract import MessageOrder

_AT_THE_END = 2**62
_NONE = -1


class QueueCursor(BrowseCursor):
    """Goes through a queue that delivers each message to one consumer.

    Args:
        resource: the queue, for errors.
        order: its message order.
        start: where to begin.
        ready_only: leave out what is delivered, leased, or waits for a retry.

    Raises:
        Refusal: the messages of a priority queue have no common order.
    """

    def __init__(
        self, resource: str, order: MessageOrder, start: Start, *, ready_only: bool
    ) -> None:
        self._order = order
        self._ready_only = ready_only
        self._bits = order.level_bits
        self._mask = (1 << self._bits) - 1
        self._logs: dict[int, Log] = {}
        self.ends: dict[int, int] = {}
        firsts: dict[int, int] = {}
        if self._bits and (start.offset > 0 or start.last):
            raise Refusal(
                ErrorKind.PRECONDITION_FAILED,
                f"{resource} has priorities, so its messages have no common order: begin at the "
                "first or at a time",
            )
        for level, each in order.levels():
            self._logs[level] = each.log
            self.ends[level] = each.end()
            firsts[level] = first_of(each.log, each.end(), start)
        self.cursors = [firsts.get(level, 0) for level in range(max(firsts, default=0) + 1)]
        self._lanes = list(self._logs)
        self._position = _NONE
        self._ready = True

    def next(self) -> int:
        """Move to the next message and return its position; -1 at the end."""
        self._position = self._next_ready() if self._ready_only else self._next_of_all()
        return self._position

    def _next_ready(self) -> int:
        order, cursors = self._order, self.cursors
        while True:
            position = order.next_ready(cursors)
            if position < 0:
                return _NONE
            order.pass_by(cursors, position)
            level = position & self._mask
            if position >> self._bits < self.ends.get(level, 0):
                return position
            # This one and all behind it on its level were published after the cursor was made.
            cursors[level] = _AT_THE_END

    def _next_of_all(self) -> int:
        while self._lanes:
            level = self._lanes[0]
            in_log = self._logs[level].next(self.cursors[level])
            if in_log < self.ends[level]:
                self.cursors[level] = in_log + 1
                self._ready = self._is_ready(level, in_log)
                return in_log << self._bits | level
            self._lanes.pop(0)
        return _NONE

    def _is_ready(self, level: int, in_log: int) -> bool:
        if self._bits:
            return dict(self._order.levels())[level].first_ready_from(in_log) == in_log
        return self._order.next_ready([in_log]) == in_log

    def load_spilled(self, done: Callable[[], object]) -> bool:
        """True if the message is so large that it is read in slices now; `done` is called then."""
        log, in_log = self._logs[self._position & self._mask], self._position >> self._bits
        # `has_large` saves most queues the look-up.
        if not log.has_large or not log.is_spilled(in_log):
            return False
        log.load_spilled(in_log, done)
        return True

    def read(self) -> Browsed | None:
        """Return the message that `next` moved to; None if it cannot be read."""
        order, position = self._order, self._position
        message = order.read(position)
        if message is None:
            return None
        count = order.delivery_count(position)
        return Browsed(
            position,
            message,
            READY if self._ready else UNACKNOWLEDGED,
            bool(order.was_out(position)),
            message.deliveries + (count & FAILURES) + (count >> REJECTIONS_SHIFT),
        )


class WaitingCursor(BrowseCursor):
    """Goes through messages that wait until a time, those that are due first before the others.

    Args:
        waiting: their due times and positions.
        place: returns the log of a position, and the position there.
        deliveries: returns the failed deliveries of a position.

    Attributes:
        due: when the message is due that `next` moved to.
    """

    def __init__(
        self,
        waiting: Iterable[tuple[int, int]],
        place: Callable[[int], tuple[Log, int]],
        deliveries: Callable[[int], int],
    ) -> None:
        self._left = iter(waiting)
        self._place = place
        self._deliveries = deliveries
        self._position = _NONE
        self.due = 0

    def next(self) -> int:
        """Move to the next message and return its position; -1 at the end."""
        for due, position in self._left:
            log, in_log = self._place(position)
            # It may have been released meanwhile.
            if log.next(in_log) == in_log:
                self.due, self._position = due, position
                return position
        return _NONE

    def load_spilled(self, done: Callable[[], object]) -> bool:
        """True if the message is so large that it is read in slices now; `done` is called then."""
        log, in_log = self._place(self._position)
        if not log.has_large or not log.is_spilled(in_log):
            return False
        log.load_spilled(in_log, done)
        return True

    def read(self) -> Browsed | None:
        """Return the message that `next` moved to; None if it has gone."""
        log, in_log = self._place(self._position)
        message = log.read(in_log)
        if message is None:
            return None
        failed = self._deliveries(self._position)
        return Browsed(self._position, message, UNACKNOWLEDGED, failed > 0, failed)


class StreamCursor(BrowseCursor):
    """Goes through a stream.

    Args:
        log: the log of the stream.
        first: the first offset.
        end: the offset behind the last one that is visible.
    """

    def __init__(self, log: Log, first: int, end: int) -> None:
        self._log = log
        self.cursors = [first]
        self.ends = {0: end}
        self._position = _NONE

    def next(self) -> int:
        """Move to the next message and return its offset; -1 at the end."""
        position = self._log.next(self.cursors[0])
        if position >= self.ends[0]:
            return _NONE
        self.cursors[0] = position + 1
        self._position = position
        return position

    def load_spilled(self, done: Callable[[], object]) -> bool:
        """True if the message is so large that it is read in slices now; `done` is called then."""
        if not self._log.has_large or not self._log.is_spilled(self._position):
            return False
        self._log.load_spilled(self._position, done)
        return True

    def read(self) -> Browsed | None:
        """Return the message that `next` moved to; None if it cannot be read."""
        message = self._log.read(self._position)
        return None if message is None else Browsed(self._position, message, READY, False, 0)


def first_of(log: Log, end: int, start: Start) -> int:
    """Return the first position of a log to look at."""
    if start.moment:
        return position_at(log, min(log.first(), end), end, start.moment)
    if start.last:
        return _before_end(log, end, start.last)
    return max(start.offset, 0)


def _before_end(log: Log, end: int, count: int) -> int:
    """Return the position from which there are so many messages up to the end."""
    # Settled positions lie between them, so `end - count` is too far behind: a binary search.
    low, high = min(log.first(), end), end
    while low < high:
        middle = (low + high + 1) // 2
        if log.live_in(middle, end) >= count:
            low = middle
        else:
            high = middle - 1
    return low
