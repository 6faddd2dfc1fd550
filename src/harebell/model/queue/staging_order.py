"""A ready order that keeps the rows of a batch back until all of them are there.

A batch may have any number of rows, so they come in slices, turn after turn. Whoever reads the
queue sees none of them before the batch is committed, and all of them afterwards. What others
publish meanwhile stands among them, and waits for the same moment:

    log      | settled ... | ready ready | row row . message . row row row |
                             ^ cursor    ^ barrier: the end for everybody who reads

A batch that is refused takes its rows with it.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.model.queue.ready import ReadyOrder

_first_of = itemgetter(0)


class StagingOrder(ReadyOrder):
    """A ready order that may have a barrier.

    Args:
        log: as for `ReadyOrder`.
        marks: as for `ReadyOrder`.

    Attributes:
        hidden: how many messages are behind the barrier.
    """

    __slots__ = ("_barrier", "_first", "_last", "_runs", "hidden")

    def __init__(self, log: Log, marks: bool) -> None:
        super().__init__(log, marks)
        self._barrier = -1
        self.hidden = 0
        # Where the rows are: runs, and the one that grows at the moment.
        self._runs: list[tuple[int, int]] = []
        self._first = self._last = 0

    def end(self) -> int:
        """The position behind the last that may be ready."""
        return self.log.end() if self._barrier < 0 else self._barrier

    def keep(self, message: Message) -> int:
        """Add a message behind all others; behind the barrier it is not ready yet."""
        self.log.append(message)
        if self._barrier < 0:
            self.count += 1
        else:
            self.hidden += 1
        return 0

    def begin_batch(self) -> int:
        """What comes from now on is not ready yet."""
        self._barrier = self.log.end()
        self._first = self._last = self._barrier
        return 0

    def stage(self, message: Message) -> int:
        """Add a row of the batch."""
        position = self.log.append(message)
        if position != self._last:
            self._cut()
            self._first = position
        self._last = position + 1
        self.hidden += 1
        return 0

    def _cut(self) -> int:
        if self._last > self._first:
            self._runs.append((self._first, self._last))
        return 0

    def has_row(self, position: int) -> bool:
        """Whether a position has a row of a batch that is not committed."""
        if self._barrier < 0 or position < self._barrier:
            return False
        if self._first <= position < self._last:
            return True
        at = bisect_right(self._runs, position, key=_first_of) - 1
        return at >= 0 and position < self._runs[at][1]

    def commit_batch(self) -> int:
        """What was kept back is ready; returns how many messages."""
        behind = self.hidden
        self.count += behind
        self._barrier = -1
        self.hidden = 0
        self._runs = []
        return behind

    def roll_back_batch(self) -> int:
        """The rows go; what else was kept back is ready. Returns how many messages that is."""
        self._cut()
        for first, end in self._runs:
            self.log.settle_range(first, end)
            self.hidden -= end - first
            # From now on there are gaps behind the cursor.
            self._old = max(self._old, end)
        return self.commit_batch()
