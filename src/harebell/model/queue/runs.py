"""Runs of positions that are set apart together: what is leased of one log.

A run is [first, end): everything in it that is not settled is set apart. Runs do not overlap, so
two sorted lists say all, however many messages that are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Runs:
    """Runs of positions, sorted."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._firsts, self._ends, strict=True)))

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: int, end: int) -> None:
        """Set a run apart that touches none of the others."""
        at = bisect_left(self._firsts, first)
        self._firsts.insert(at, first)
        self._ends.insert(at, end)

    def remove(self, first: int, end: int) -> bool:
        """A run is set apart no longer; False when it was not."""
        at = bisect_left(self._firsts, first)
        if at == len(self._firsts) or self._firsts[at] != first or self._ends[at] != end:
            return False
        del self._firsts[at], self._ends[at]
        return True

    def behind(self, position: int) -> int:
        """The end of the run that a position is in; the position itself when it is in none."""
        at = bisect_right(self._firsts, position) - 1
        if at >= 0 and position < self._ends[at]:
            return self._ends[at]
        return position

    def ahead(self, position: int, end: int) -> int:
        """Where the first run from a position on begins, at most `end`."""
        at = bisect_left(self._firsts, position)
        return min(self._firsts[at], end) if at < len(self._firsts) else end
