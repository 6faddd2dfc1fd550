"""The leased ranges of one log.

    log      | settled ... | [ leased )  ready ready  [ leased )  ready ... |

A claim, its commit and its release are ranges of positions, so they cost the same for one message
and for a million. Settled messages in a range are skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from harebell.base.c_types import C, Done, i64, isize
from harebell.base.ports import Log

PositionRange = tuple[int, int]


class LeasedRanges:
    """Ranges that do not overlap: two sorted lists, of first positions and of ends.

    Args:
        log: the log of the messages.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[PositionRange]:
        return iter(list(zip(self._firsts, self._ends, strict=True)))

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: i64, end: i64) -> Done:
        """Lease all unsettled messages of a range, which does not touch any other."""
        index: isize = bisect_left(self._firsts, first)
        self._firsts.insert(index, first)
        self._ends.insert(index, end)
        return 0

    def remove(self, first: i64, end: i64) -> C[bool]:
        """End the lease of a range; False if exactly this range is not leased."""
        index: isize = bisect_left(self._firsts, first)
        if index == len(self._firsts) or self._firsts[index] != first or self._ends[index] != end:
            return False
        del self._firsts[index], self._ends[index]
        return True

    def settle(self, runs: list[PositionRange]) -> Done:
        """End the lease of ranges, and settle their messages."""
        for first, end in runs:
            self.remove(first, end)
            self._log.settle_range(first, end)
        return 0

    def behind(self, position: i64) -> i64:
        """Return the end of the range that contains a position; the position if none does."""
        index: isize = bisect_right(self._firsts, position) - 1
        if index >= 0 and position < self._ends[index]:
            return self._ends[index]
        return position

    def ahead(self, position: i64, end: i64) -> i64:
        """Return the start of the first range from a position on, at most `end`."""
        index: isize = bisect_left(self._firsts, position)
        return min(self._firsts[index], end) if index < len(self._firsts) else end

    def skip(self, position: i64) -> i64:
        """Return the first position from an unsettled one on that is not leased."""
        behind: i64 = self.behind(position)
        # The next unsettled message behind a range may be in another range.
        while behind != position:
            position = self._log.next(behind)
            behind = self.behind(position)
        return position


class RangeClaim:
    """A claim in progress: its runs, and how much it may still take.

    Args:
        log: the log of the messages.
        messages: how many at most.
        byte_count: most bytes of the log; the first message may be larger; -1 for no limit.
        ranges: most runs.

    Attributes:
        runs: first position, end, messages in it, and their size.
    """

    def __init__(self, log: Log, messages: i64, byte_count: i64, ranges: i64) -> None:
        self.runs: list[tuple[int, int, int, int]] = []
        self._log = log
        self._messages = messages
        self._byte_count = byte_count
        self._ranges = ranges
        self._full = False

    def has_room(self) -> C[bool]:
        """True if a message may be added, if it is small enough."""
        return not self._full and self._messages > 0 and len(self.runs) < self._ranges

    def add(self, first: i64, end: i64) -> i64:
        """Add ready messages of a range, from its start; return how many, 0 at the limit of bytes.

        Args:
            first: the first position, which is not settled.
            end: the position behind the last ready message.
        """
        reached: i64
        count: i64
        size: i64
        reached, count, size = self._log.reach(first, end, self._messages, self._byte_count)
        if count == 0 and not self.runs:
            # A message above the limit of bytes is claimed alone: otherwise no claim could pass it.
            reached, count, size = self._log.reach(first, end, 1, -1)
        if count == 0:
            self._full = True
            return 0
        self._messages -= count
        if self._byte_count >= 0:
            self._byte_count = max(self._byte_count - size, 0)
        if self.runs and self._log.next(self.runs[-1][1]) == first:
            # All messages between the last run and this one are settled: one range serves both.
            last = self.runs.pop()
            self.runs.append((last[0], reached, last[2] + count, last[3] + size))
        else:
            self.runs.append((first, reached, count, size))
        return count
