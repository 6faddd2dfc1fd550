"""Segments in a row: where a position stands, and which message comes next."""

from __future__ import annotations

from bisect import bisect_right

from harebell.base.ports import Log
from harebell.store.segment import Segment


class Row(Log):
    """The segments of one log, without gaps of which anybody asks.

    Attributes:
        segments: the oldest first.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        # The segment that was found last, where the next position most likely is.
        self._near: Segment | None = None
        self._end = 0
        self._live = 0

    def first(self) -> int:
        """The smallest position that is not settled; `end()` when there is none."""
        for segment in self.segments:
            if segment.positions.live:
                return segment.positions.next(segment.first)
        return self._end

    def next(self, position: int) -> int:
        """The smallest position from `position` on that is not settled; `end()` without one."""
        segment = self._find(position)
        if segment is not None:
            found = segment.positions.next(position)
            if found < segment.positions.end():
                return found
            position = segment.positions.end()
        for segment in self.segments[self._index(position) :]:
            if segment.positions.live:
                found = segment.positions.next(max(position, segment.first))
                if found < segment.positions.end():
                    return found
        return self._end

    def end(self) -> int:
        """The position that the next record will get."""
        return self._end

    def live(self) -> int:
        """How many records are not settled."""
        return self._live

    def reach(self, position: int, end: int, messages: int, octets: int) -> tuple[int, int, int]:
        """How far so many records that are not settled go, or so many octets."""
        reached, count, total = position, 0, 0
        for segment in self.segments[self._index(position) :]:
            if segment.first >= end or count >= messages:
                break
            if not segment.positions.live or segment.positions.end() <= position:
                continue
            left = -1 if octets < 0 else octets - total
            there, more, size = segment.positions.reach(
                max(position, segment.first), end, segment.end(), messages - count, left
            )
            if more:
                reached = there
                count += more
                total += size
            if (
                count < messages
                and octets >= 0
                and segment.positions.next(there) < min(end, segment.positions.end())
            ):
                break
        return reached, count, total

    def octets(self) -> int:
        """Octets that the log takes."""
        return sum([segment.end() for segment in self.segments])

    def _find(self, position: int) -> Segment | None:
        """The segment that has a position."""
        near = self._near
        if near is not None:
            index = position - near.first
            if 0 <= index < near.positions.count:
                return near
        segments = self.segments
        at = self._index(position)
        if at < len(segments):
            found = segments[at]
            if found.first <= position < found.positions.end():
                self._near = found
                return found
        return None

    def _index(self, position: int) -> int:
        """The index of the last segment that begins at or before a position, 0 without one."""
        return max(bisect_right(self.segments, position, key=_first) - 1, 0)


def _first(segment: Segment) -> int:
    return segment.first
