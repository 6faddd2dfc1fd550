"""A sequence that grows at one end and loses members in any order.

It keeps unacknowledged deliveries (by delivery tag) and the log in memory (by position): numbers
are assigned in order, most members leave soon and nearly in order, a few stay long. Members are in
chunks, and a chunk is freed with its last member, so memory is in proportion to the members.

    number   0 .. 127        128 .. 255       256 .. 383
             [freed]         [x . . x ...]    [x x x ...      ]
                             ^ first                   ^ next
"""

from __future__ import annotations

from typing import Any

from harebell.base.c_types import C, Done, i32, i64

CHUNK_SHIFT: i32 = 7
CHUNK_SIZE: i32 = 1 << CHUNK_SHIFT
CHUNK_MASK: i32 = CHUNK_SIZE - 1
GAP_CHUNKS: i32 = 64
"""Chunks without members that are walked over one by one, before all chunks are looked at."""


class Chunk:
    """CHUNK_SIZE consecutive numbers, and how many of them have a member."""

    def __init__(self, index: i64) -> None:
        self.index = index
        self.items: list[Any] = [None] * CHUNK_SIZE
        self.live: i32 = 0


class Sequence:
    """Members by increasing number. A number is used once.

    Args:
        start: the first number that `append` assigns.

    Attributes:
        next: the number after the largest one used.
        count: how many members there are.
    """

    def __init__(self, start: i64 = 0) -> None:
        self.next = start
        self.count: i64 = 0
        self._first = start
        self._chunks: dict[int, Chunk] = {}
        # The chunks last used by adding and by reading: in a long queue they are far apart.
        self._tail: Chunk | None = None
        self._recent: Chunk | None = None

    def append(self, member: Any) -> i64:
        """Add a member under the next number, and return the number."""
        number: i64 = self.next
        self.put(number, member)
        return number

    def put(self, number: i64, member: Any) -> Done:
        """Add a member under a number without one: a new one, or one that was taken before."""
        index: i64 = number >> CHUNK_SHIFT
        chunk: Chunk | None = self._tail
        if chunk is None or chunk.index != index:
            chunk = self._chunks.get(index)
            if chunk is None:
                chunk = Chunk(index)
                self._chunks[index] = chunk
            tail, self._tail = self._tail, chunk
            if tail is not None and tail.live == 0:
                # An empty chunk was kept for the next numbers, and they are in another chunk now.
                del self._chunks[tail.index]
                if self._recent is tail:
                    self._recent = None
        chunk.items[number & CHUNK_MASK] = member
        chunk.live += 1
        self.count += 1
        if number >= self.next:
            self.next = number + 1
        if number < self._first or self.count == 1:
            self._first = number
        return 0

    def get(self, number: i64) -> C[Any]:
        """Return the member of a number, or None."""
        index: i64 = number >> CHUNK_SHIFT
        chunk: Chunk | None = self._recent
        if chunk is None or chunk.index != index:
            chunk = self._chunks.get(index)
            if chunk is None:
                return None
            self._recent = chunk
        return chunk.items[number & CHUNK_MASK]

    def take(self, number: i64) -> C[Any]:
        """Remove and return the member of a number; None if there is none."""
        index: i64 = number >> CHUNK_SHIFT
        chunk: Chunk | None = self._recent
        if chunk is None or chunk.index != index:
            chunk = self._chunks.get(index)
            if chunk is None:
                return None
            self._recent = chunk
        offset: i32 = number & CHUNK_MASK
        member = chunk.items[offset]
        if member is None:
            return None
        chunk.items[offset] = None
        chunk.live -= 1
        self.count -= 1
        if chunk.live == 0:
            self._drop(chunk)
        return member

    def take_run(self, number: i64, last: i64) -> i64:
        """Remove the member of a number, and those behind it that are the same object.

        Args:
            number: the first number.
            last: the last number that may be removed.

        Returns:
            How many members were removed; 0 if the number has none.
        """
        member = Sequence.get(self, number)
        if member is None:
            return 0
        begin: i64 = number
        same: bool = True
        while same and number <= last:
            index: i64 = number >> CHUNK_SHIFT
            chunk: Chunk | None = self._recent
            if chunk is None or chunk.index != index:
                chunk = self._chunks.get(index)
                if chunk is None:
                    break
                self._recent = chunk
            items: list[Any] = chunk.items
            offset: i32 = number & CHUNK_MASK
            stop: i32 = min(CHUNK_SIZE, offset + last - number + 1)
            before: i32 = offset
            while offset < stop and items[offset] is member:
                items[offset] = None
                offset += 1
            same = offset == CHUNK_SIZE
            number += offset - before
            chunk.live -= offset - before
            self.count -= offset - before
            if chunk.live == 0:
                self._drop(chunk)
        if begin <= self._first:
            # Nothing is left before `number`: `first` need not look at it again.
            self._first = number
        return number - begin

    def first(self) -> i64:
        """Return the smallest number with a member; `next` if there is none."""
        self._first = self.next_from(self._first)
        return self._first

    def next_from(self, number: i64) -> i64:
        """Return the smallest number from one on that has a member; `next` if there is none."""
        missing: i32 = 0
        while self.count and number < self.next:
            chunk: Chunk | None = self._chunks.get(number >> CHUNK_SHIFT)
            if chunk is not None and chunk.live:
                if chunk.items[number & CHUNK_MASK] is not None:
                    return number
                number += 1
                continue
            number = ((number >> CHUNK_SHIFT) + 1) << CHUNK_SHIFT
            missing += 1
            # A gap has any size: most members may never have been here, such as deliveries that
            # need no acknowledgement.
            if missing == GAP_CHUNKS:
                later = [index for index in self._chunks if index >= number >> CHUNK_SHIFT]
                number = min(later) << CHUNK_SHIFT if later else self.next
                missing = 0
        return self.next

    def numbers(self) -> list[int]:
        """Return all numbers with a member, in order."""
        numbers: list[int] = []
        for index in sorted(self._chunks):
            items = self._chunks[index].items
            base = index << CHUNK_SHIFT
            numbers.extend(base + i for i, member in enumerate(items) if member is not None)
        return numbers

    def clear(self) -> None:
        """Remove all members; numbers continue from `next`."""
        self._chunks.clear()
        self._tail = None
        self._recent = None
        self.count = 0
        self._first = self.next

    def _drop(self, chunk: Chunk) -> Done:
        """Free an empty chunk, unless numbers are still assigned in it."""
        if self.next >> CHUNK_SHIFT == chunk.index and self.next & CHUNK_MASK:
            return 0
        del self._chunks[chunk.index]
        if self._recent is chunk:
            self._recent = None
        if self._tail is chunk:
            self._tail = None
        return 0
