"""Settled positions, delivery counts and the hand-out mark of a log, until the next commit.

They are gathered here between two commits and written as a few records (FORMAT.md, kinds 2 to 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

from harebell.base.limits import SEEN_AHEAD
from harebell.kernels.records import CLOSED, COUNT, SEEN, SETTLED, RecordBuffer
from harebell.store.segment import Segment

_AHEAD = SEEN_AHEAD


class SettlementBuffer:
    """What one log has to write beside messages.

    Attributes:
        handed: every position below it was handed out.
        mark: every position below it may have been, as the disk will know.
    """

    __slots__ = ("_counts", "_first", "_marked", "_next", "_runs", "_told", "handed", "mark")

    def __init__(self) -> None:
        self.handed = 0
        self.mark = 0
        self._marked = 0
        # What was handed out when notes were written last.
        self._told = 0
        # The run of settled positions that grows at the moment, and those before it.
        self._first = 0
        self._next = 0
        self._runs: list[tuple[int, int]] = []
        self._counts: dict[int, int] | None = None

    def adopt(self, seen: int) -> int:
        """The log was opened: everything below `seen` may have been handed out before."""
        self.handed = self.mark = self._marked = self._told = seen
        return 0

    def settled(self, first: int, end: int) -> int:
        """The positions from `first` up to, not including, `end` are done with."""
        if first == self._next:
            self._next = end
            return 0
        if self._next > self._first:
            self._runs.append((self._first, self._next))
        self._first = first
        self._next = end
        return 0

    def see(self, position: int) -> bool:
        """Everything below a position was handed out; whether that needs a new mark on disk."""
        if position <= self.handed:
            # It was handed out before the log was opened, and is again.
            return False
        self.handed = position
        if position + _AHEAD // 2 <= self.mark:
            return False
        self.mark = position + _AHEAD
        return True

    def header_mark(self) -> int:
        """The mark for the header of a new segment, which makes a record of it superfluous."""
        self.mark = self._marked = max(self.mark, self.handed + _AHEAD)
        return self.mark

    def counted(self, position: int, count: int) -> int:
        """So many deliveries of a message have failed."""
        if self._counts is None:
            self._counts = {}
        self._counts[position] = count
        return 0

    def clear(self) -> int:
        """The log is gone."""
        self._runs = []
        self._first = self._next = 0
        self._counts = None
        return 0

    def write(self, buffer: RecordBuffer, end: int, now: int) -> list[tuple[int, int]]:
        """Write down what has gathered.

        Args:
            buffer: of the log's newest segment.
            end: the position that the log's next message will get.
            now: milliseconds since 1970.

        Returns:
            The ranges of positions that the records speak of, ends not included.
        """
        if self._next > self._first:
            self._runs.append((self._first, self._next))
        self._first = self._next = 0
        told, self._runs = self._runs, []
        if told:
            write_settled(buffer, end, now, b"".join([pack("<QI", a, b - a) for a, b in told]))
        if self._counts:
            write_counts(buffer, end, now, self._counts)
            told.extend((position, position + 1) for position in self._counts)
            self._counts = None
        if self.handed > self._told:
            # Who takes messages may take all of them before the next batch is on disk, for a disk
            # that is full has to be waited for.
            self._told = self.handed
            self.mark = max(self.mark, end)
        if self.mark > self._marked:
            self._marked = self.mark
            buffer.note(SEEN, end, now, pack("<Q", self.mark))
        return told

    def write_end(self, buffer: RecordBuffer, end: int, now: int) -> int:
        """The log is closed in good order."""
        buffer.note(CLOSED, end, now, pack("<Q", self.handed))
        return 0


def write_settled(buffer: RecordBuffer, end: int, now: int, ranges: bytes) -> None:
    """Write down which positions are settled."""
    buffer.note(SETTLED, end, now, ranges)


def write_counts(buffer: RecordBuffer, end: int, now: int, counts: dict[int, int]) -> None:
    """Write down how often deliveries failed."""
    content = b"".join([pack("<QI", position, count) for position, count in counts.items()])
    buffer.note(COUNT, end, now, content)


def write_all_of(
    buffer: RecordBuffer, segment: Segment, counts: Mapping[int, int], end: int, now: int
) -> None:
    """Write down everything that is settled and counted in a segment."""
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
