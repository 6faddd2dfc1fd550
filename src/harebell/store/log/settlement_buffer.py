"""Settled positions, delivery counts and the hand-out mark of a log between two commits.

A commit writes them as a few records without messages. Their payloads, little-endian:

    kind 2 settled    ranges, each: first position u64, number of positions u32
    kind 3 seen       u64: every position below it may have been handed out
    kind 4 count      each: position u64, delivery count u32 (see `features.retry_delays`)
    kind 5 closed     u64: every position below it was handed out, and none above
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

from harebell.base.c_types import C, Done, Py, i32, i64
from harebell.kernels.records import CLOSED, COUNT, SEEN, SETTLED, RecordBuffer
from harebell.store.limits import SEEN_AHEAD
from harebell.store.log.segment import Segment

_AHEAD: i64 = SEEN_AHEAD


class SettlementBuffer:
    """The records other than messages that one log has to write.

    Attributes:
        handed: every position below it was handed out.
        mark: every position below it may have been handed out, according to the log on disk.
    """

    def __init__(self) -> None:
        self.handed: i64 = 0
        self.mark: i64 = 0
        self._marked: i64 = 0
        # The value of `handed` in the last write.
        self._written: i64 = 0
        # The range of settled positions that still grows, and the ranges before it.
        self._first: i64 = 0
        self._next: i64 = 0
        self._runs: list[tuple[int, int]] = []
        self._counts: Py[dict[int, int] | None] = None

    def adopt(self, seen: i64) -> Done:
        """Start from an opened log: everything below `seen` may have been handed out before."""
        self.handed = self.mark = self._marked = self._written = seen
        return 0

    def settled(self, first: i64, end: i64) -> Done:
        """Note that the positions from `first` up to, not including, `end` are settled."""
        # Mostly messages are settled in order: then one range grows, and nothing is allocated.
        if first == self._next:
            self._next = end
            return 0
        if self._next > self._first:
            self._runs.append((self._first, self._next))
        self._first = first
        self._next = end
        return 0

    def see(self, position: i64) -> C[bool]:
        """Note that everything below a position was handed out; True if a new mark is needed."""
        if position <= self.handed:
            # It was handed out before the log was opened, and is handed out again.
            return False
        self.handed = position
        # The mark is raised when half of what it is ahead is used up: each record of it covers many
        # deliveries, and there is time for the commit before the other half is used.
        if position + _AHEAD // 2 <= self.mark:
            return False
        self.mark = position + _AHEAD
        return True

    def header_mark(self) -> i64:
        """Return the mark for the header of a new segment, which replaces a record of it."""
        self.mark = self._marked = max(self.mark, self.handed + _AHEAD)
        return self.mark

    def counted(self, position: i64, count: i32) -> Done:
        """Note the delivery count of a message."""
        if self._counts is None:
            self._counts = {}
        self._counts[position] = count
        return 0

    def clear(self) -> Done:
        """Forget everything: the log is deleted."""
        self._runs = []
        self._first = self._next = 0
        self._counts = None
        return 0

    def write(self, buffer: RecordBuffer, end: int, now: int) -> list[tuple[int, int]]:
        """Write the gathered records.

        Args:
            buffer: the buffer of the log's newest segment.
            end: the position that the log's next message will get.
            now: milliseconds since 1970.

        Returns:
            The ranges of positions in the records, ends not included.
        """
        if self._next > self._first:
            self._runs.append((self._first, self._next))
        self._first = self._next = 0
        ranges, self._runs = self._runs, []
        if ranges:
            write_settled(buffer, end, now, b"".join([pack("<QI", a, b - a) for a, b in ranges]))
        if self._counts:
            write_counts(buffer, end, now, self._counts)
            ranges.extend((position, position + 1) for position in self._counts)
            self._counts = None
        if self.handed > self._written:
            # Consumers may get all messages before the next batch is on disk: a full disk may
            # hold it up. So the mark includes them all.
            self._written = self.handed
            self.mark = max(self.mark, end)
        if self.mark > self._marked:
            self._marked = self.mark
            buffer.note(SEEN, end, now, pack("<Q", self.mark))
        return ranges

    def write_end(self, buffer: RecordBuffer, end: i64, now: i64) -> Done:
        """Write the record of an orderly close."""
        buffer.note(CLOSED, end, now, pack("<Q", self.handed))
        return 0


def write_settled(buffer: RecordBuffer, end: int, now: int, ranges: bytes) -> None:
    """Write a record of settled ranges."""
    buffer.note(SETTLED, end, now, ranges)


def write_counts(buffer: RecordBuffer, end: int, now: int, counts: dict[int, int]) -> None:
    """Write a record of delivery counts."""
    content = b"".join([pack("<QI", position, count) for position, count in counts.items()])
    buffer.note(COUNT, end, now, content)


def write_all_of(
    buffer: RecordBuffer, segment: Segment, counts: Mapping[int, int], end: int, now: int
) -> None:
    """Write records of all settled positions and delivery counts of a segment."""
    ranges = segment.positions.ranges()
    if ranges:
        write_settled(buffer, end, now, ranges)
    here = {
        position: count
        for position, count in counts.items()
        if segment.first <= position < segment.positions.end()
    }
    if here:
        write_counts(buffer, end, now, here)
