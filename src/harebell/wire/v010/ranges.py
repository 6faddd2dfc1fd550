"""Serial numbers that wrap around, and sets of them.

Command ids have 32 bits and wrap to 0 (RFC 1982). Internally they are counted without limit:
`near` returns the full number for a received one, the nearest to a known number.
"""

from __future__ import annotations

from bisect import bisect_right

_WRAP = 1 << 32
_HALF = 1 << 31


def near(number: int, known: int) -> int:
    """Return the number with those lowest 32 bits that is nearest to a known one."""
    # RFC 1982: of two serial numbers the later is less than half the circle ahead.
    return known + ((number - known + _HALF) % _WRAP) - _HALF


def wrapped(number: int) -> int:
    """Return the lowest 32 bits."""
    return number % _WRAP


class RangeSet:
    """A set of mostly consecutive numbers.

    It contains everything below `floor`, and ranges above it that do not touch.
    """

    __slots__ = ("_firsts", "_lasts", "floor")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        if number < self.floor:
            return True
        index = bisect_right(self._firsts, number) - 1
        return index >= 0 and number <= self._lasts[index]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """First and last number of each range above the floor."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def add(self, first: int, last: int) -> list[tuple[int, int]]:
        """Add a range; return the parts of it that are new."""
        first = max(first, self.floor)
        if last < first:
            return []
        # The ranges from `low` to `high`, the latter excluded, touch the new one and are merged.
        low = bisect_right(self._firsts, first) - 1
        if low < 0 or self._lasts[low] < first - 1:
            low += 1
        high = low
        added = []
        offset, end = first, last
        while high < len(self._firsts) and self._firsts[high] <= last + 1:
            if offset < self._firsts[high]:
                added.append((offset, self._firsts[high] - 1))
            offset = max(offset, self._lasts[high] + 1)
            first = min(first, self._firsts[high])
            end = max(end, self._lasts[high])
            high += 1
        if offset <= last:
            added.append((offset, last))
        # Peers complete in order, so mostly the floor rises and no range is kept.
        if first <= self.floor:
            self.floor = end + 1
            del self._firsts[:high], self._lasts[:high]
        else:
            self._firsts[low:high] = [first]
            self._lasts[low:high] = [end]
        return added
