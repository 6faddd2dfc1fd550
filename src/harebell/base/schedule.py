"""A schedule of many numbers, each with a due time, in eight bytes each.

Numbers due within the same 1,024 ms share a bucket; only the first bucket is sorted. Numbers are
positions in a log; those due in the same millisecond are returned in order.

    due >> 10  ->  array of (due & 1023) << 54 | number     or, in the first bucket, a heap of these
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from harebell.base.slices import Slices
from harebell.base.timers import NEVER

_BUCKET_BITS = 10
_IN_BUCKET = (1 << _BUCKET_BITS) - 1
_NUMBER_BITS = 54
_NUMBER = (1 << _NUMBER_BITS) - 1
_LOOK_ENTRIES = 4096
"""Entries that one step of a search looks at."""


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

    def soonest(self, count: int) -> Slices[list[tuple[int, int]]]:
        """Return the numbers that are due first, each behind its due time."""
        found: list[tuple[int, int]] = []
        for key in (yield from _smallest(list(self._order), count)):
            bucket = self._buckets.get(key, ())
            entries = yield from _smallest(bucket, count - len(found))
            start = key << _BUCKET_BITS
            found += [(start | each >> _NUMBER_BITS, each & _NUMBER) for each in entries]
            if len(found) >= count:
                break
        return found

    def find(self, number: int) -> Slices[int]:
        """Return the due time of a number; NEVER if it is not here."""
        for key in list(self._buckets):
            bucket = self._buckets.get(key, ())
            for at in range(0, len(bucket), _LOOK_ENTRIES):
                for entry in bucket[at : at + _LOOK_ENTRIES]:
                    if entry & _NUMBER == number:
                        return key << _BUCKET_BITS | entry >> _NUMBER_BITS
                yield
        return NEVER

    def remove(self, due: int, number: int) -> bool:
        """Remove a number with its due time; False if it is not here."""
        key = due >> _BUCKET_BITS
        entry = (due & _IN_BUCKET) << _NUMBER_BITS | number
        bucket = self._buckets.get(key)
        if bucket is None or entry not in bucket:
            return False
        bucket.remove(entry)
        if not bucket:
            del self._buckets[key]
            self._order.remove(key)
            heapify(self._order)
        elif isinstance(bucket, list):
            heapify(bucket)
        self._count -= 1
        return True

    def clear(self) -> None:
        """Remove all numbers."""
        self._buckets.clear()
        self._order.clear()
        self._count = 0


def _smallest(numbers: Sequence[int], count: int) -> Slices[list[int]]:
    """Return the smallest numbers in their order."""
    smallest: list[int] = []
    for at in range(0, len(numbers), _LOOK_ENTRIES):
        smallest = sorted([*smallest, *numbers[at : at + _LOOK_ENTRIES]])[:count]
        yield
    return smallest
