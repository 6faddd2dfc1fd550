"""An open batch in one log: its barrier, and its rows as ranges of positions.

    log      | ready ready | row row . message . row row row |
                           ^ barrier: the end for all readers
                           [ closed )            [ open      )

Other messages are appended between the rows, so the rows are several ranges. The last range still
grows.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from harebell.base.c_types import C, Done, i64, isize
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.rows import Rows

_first_of = itemgetter(0)


class StagedRows:
    """The open batch of one log.

    Args:
        log: the log, which has no row yet.

    Attributes:
        barrier: the first position that is hidden.
        hidden: how many messages are hidden: rows, and other messages published meanwhile.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.barrier: i64 = log.end()
        self.hidden: i64 = 0
        self._closed: list[tuple[int, int]] = []
        self._first: i64 = 0
        self._end: i64 = 0

    def append(self, message: Message) -> Done:
        """Append a row."""
        return self._add(self._log.append(message), 1)

    def append_rows(self, rows: Rows, first: isize, end: isize, like: Message) -> Done:
        """Append rows that differ in their bodies only; see `Log.append_rows`."""
        return self._add(self._log.append_rows(rows, first, end, like), end - first)

    def _add(self, first: i64, count: i64) -> Done:
        self.hidden += count
        if first != self._end:
            self._close()
            self._first = first
        self._end = first + count
        return 0

    def _close(self) -> Done:
        if self._end > self._first:
            self._closed.append((self._first, self._end))
        return 0

    def has(self, position: i64) -> C[bool]:
        """True if a position is that of a row."""
        if self._first <= position < self._end:
            return True
        index: isize = bisect_right(self._closed, position, key=_first_of) - 1
        return index >= 0 and position < self._closed[index][1]

    def settle(self) -> i64:
        """Settle all rows, as the batch is rolled back; return the position behind the last."""
        self._close()
        for first, end in self._closed:
            self._log.settle_range(first, end)
            self.hidden -= end - first
        return self._end
