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

CHUNK_SHIFT = 7
CHUNK_SIZE = 1 << CHUNK_SHIFT
CHUNK_MASK = CHUNK_SIZE - 1
GAP_CHUNKS = 64
"""Chunks without members that are walked over one by one, before all chunks are looked at."""


class Chunk:
    """CHUNK_SIZE consecutive numbers, and how many of them have a member."""

    __slots__ = ("index", "items", "live")

    def __init__(self, index: int) -> None:
        self.index = index
        self.items: list[Any] = [None] * CHUNK_SIZE
        self.live = 0


class Sequence:
    """Members by increasing number. A number is used once.

    Args:
        start: the first number that `append` assigns.

    Attributes:
        next: the number after the largest one used.
        count: how many members there are.
    """

    __slots__ = ("_chunks", "_first", "_recent", "_tail", "count", "next")

    def __init__(self, start: int = 0) -> None:
        self.next = start
        self.count = 0
        self._first = start
        self._chunks: dict[int, Chunk] = {}
        # The chunks last used by adding and by reading: in a long queue they are far apart.
        self._tail: Chunk | None = None
        self._recent: Chunk | None = None

    def append(self, member: Any) -> int:
        """Add a member under the next number, and return the number."""
        number = self.next
        self.put(number, member)
        return number

    def put(self, number: int, member: Any) -> int:
        """Add a member under a number without one: a new one, or one that was taken before."""
        index = number >> CHUNK_SHIFT
        chunk = self._tail
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

    def get(self, number: int) -> Any:
        """Return the member of a number, or None."""
        index = number >> CHUNK_SHIFT
        chunk = self._recent
        if chunk is None or chunk.index != index:
            chunk = self._chunks.get(index)
            if chunk is None:
                return None
            self._recent = chunk
        return chunk.items[number & CHUNK_MASK]

    def take(self, number: int) -> Any:
        """Remove and return the member of a number; None if there is none."""
        index = number >> CHUNK_SHIFT
        chunk = self._recent
        if chunk is None or chunk.index != index:
            chunk = self._chunks.get(index)
            if chunk is None:
                return None
            self._recent = chunk
        offset = number & CHUNK_MASK
        member = chunk.items[offset]
        if member is None:
            return None
        chunk.items[offset] = None
        chunk.live -= 1
        self.count -= 1
        if chunk.live == 0:
            self._drop(chunk)
        return member

    def take_run(self, number: int, last: int) -> int:
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
        begin = number
        same = True
        while same and number <= last:
            index = number >> CHUNK_SHIFT
            chunk = self._recent
            if chunk is None or chunk.index != index:
                chunk = self._chunks.get(index)
                if chunk is None:
                    break
                self._recent = chunk
            items = chunk.items
            offset = number & CHUNK_MASK
            stop = min(CHUNK_SIZE, offset + last - number + 1)
            before = offset
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

    def first(self) -> int:
        """Return the smallest number with a member; `next` if there is none."""
        self._first = self.next_from(self._first)
        return self._first

    def next_from(self, number: int) -> int:
        """Return the smallest number from one on that has a member; `next` if there is none."""
        missing = 0
        while self.count and number < self.next:
            chunk = self._chunks.get(number >> CHUNK_SHIFT)
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

    def _drop(self, chunk: Chunk) -> int:
        """Free an empty chunk, unless numbers are still assigned in it."""
        if self.next >> CHUNK_SHIFT == chunk.index and self.next & CHUNK_MASK:
            return 0
        del self._chunks[chunk.index]
        if self._recent is chunk:
            self._recent = None
        if self._tail is chunk:
            self._tail = None
        return 0
