"""A schedule of many numbers, each with a due time, in eight bytes each.

Numbers due within the same 1,024 ms share a bucket; only the first bucket is sorted. Numbers are
positions in a log; those due in the same millisecond are returned in order.

    due >> 10  ->  array of (due & 1023) << 54 | number     or, in the first bucket, a heap of these
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from harebell.base.timers import NEVER

_BUCKET_BITS = 10
_IN_BUCKET = (1 << _BUCKET_BITS) - 1
_NUMBER_BITS = 54
_NUMBER = (1 << _NUMBER_BITS) - 1


class Schedule:
    """Numbers below 2^54 with their due times in milliseconds."""

    __slots__ = ("_buckets", "_count", "_order")

    def __init__(self) -> None:
        self._buckets: dict[int, array[int] | list[int]] = {}
        self._order: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers, in no order."""
        for bucket in self._buckets.values():
            for entry in bucket:
                yield entry & _NUMBER

    def add(self, due: int, number: int) -> None:
        """Add a number with its due time."""
        key = due >> _BUCKET_BITS
        entry = (due & _IN_BUCKET) << _NUMBER_BITS | number
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = array("Q", (entry,))
            heappush(self._order, key)
        elif isinstance(bucket, list):
            heappush(bucket, entry)
        else:
            bucket.append(entry)
        self._count += 1

    @property
    def due(self) -> int:
        """Return the next due time; NEVER if the schedule is empty."""
        if not self._order:
            return NEVER
        return self._order[0] << _BUCKET_BITS | self._first()[0] >> _NUMBER_BITS

    def _first(self) -> list[int]:
        """Return the first bucket, as a heap."""
        key = self._order[0]
        bucket = self._buckets[key]
        if not isinstance(bucket, list):
            bucket = list(bucket)
            heapify(bucket)
            self._buckets[key] = bucket
        return bucket

    def pop(self, now: int) -> int:
        """Remove and return the next number that is due; -1 if there is none."""
        if self.due > now:
            return -1
        bucket = self._first()
        number = heappop(bucket) & _NUMBER
        if not bucket:
            del self._buckets[heappop(self._order)]
        self._count -= 1
        return number

    def clear(self) -> None:
        """Remove all numbers."""
        self._buckets.clear()
        self._order.clear()
        self._count = 0
