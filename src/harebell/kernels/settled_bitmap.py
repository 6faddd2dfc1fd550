"""File offsets of the messages of a segment, and which of the messages are settled.

An offset takes four bytes per message. Most messages are settled in order, so the settled ones at
the front are only a number (`_front`); a bitmap has those that are settled out of order behind it.
The offsets of a segment that is not read may be left out of memory (`drop`); the rest stays.
`settled_bitmap.pyx` beside this file draws both and is the same, compiled.
"""

from __future__ import annotations

from array import array
from struct import pack

MISSING = 0xFFFF_FFFF
"""The offset of a position whose record was lost."""


class SettledBitmap:
    """The messages of one segment, by position.

    Args:
        first: the position of its first message.

    Attributes:
        first: as given.
        count: how many positions there are.
        live: how many of them are not settled.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0
        self.live = 0
        self._offsets = array("I")
        self._front = 0
        self._bits = bytearray()

    def is_loaded(self) -> bool:
        """True if the offsets are in memory: `offset`, `reach` and `add` need them."""
        return len(self._offsets) == self.count

    def end(self) -> int:
        """The position after the last one."""
        return self.first + self.count

    def add(self, offset: int) -> int:
        """Add the next message, by its offset in the file; return its position.

        Raises:
            RuntimeError: the offsets are not loaded.
        """
        self._check_loaded()
        self._offsets.append(offset)
        self.count += 1
        self.live += 1
        return self.first + self.count - 1

    def miss(self, position: int) -> int:
        """Add lost records up to, not including, a position: they count as settled."""
        while self.end() < position:
            self.settle(self.add(MISSING))
        return 0

    def offset(self, position: int) -> int:
        """Return the offset of a message; -1 if it is lost or in another segment.

        Raises:
            RuntimeError: the offsets are not loaded.
        """
        index = position - self.first
        if index < 0 or index >= self.count:
            return -1
        self._check_loaded()
        return -1 if self._offsets[index] == MISSING else self._offsets[index]

    def settled(self, position: int) -> bool:
        """True if a position is settled, or in another segment."""
        index = position - self.first
        return index < 0 or index >= self.count or self._is_set(index)

    def settle(self, position: int) -> bool:
        """Settle a position; return False if it is settled already or in another segment."""
        index = position - self.first
        if index < 0 or index >= self.count or self._is_set(index):
            return False
        self.live -= 1
        # Settled in order: the front moves on, over positions that were settled before it.
        if index == self._front:
            index += 1
            while index < self.count and self._bit(index):
                index += 1
            self._front = index
            if self._front == self.count:
                self._bits.clear()
            return True
        if len(self._bits) <= index >> 3:
            self._bits.extend(bytes((index >> 3) + 1 - len(self._bits)))
        self._bits[index >> 3] |= 1 << (index & 7)
        return True

    def settle_range(self, first: int, end: int) -> int:
        """Settle the positions from `first` up to, not including, `end`; returns how many."""
        position = max(first, self.first)
        end = min(end, self.end())
        # Everything is settled then, whatever the bits say: no loop is needed.
        if position <= self.first + self._front and end == self.end():
            done, self.live = self.live, 0
            self._front = self.count
            self._bits.clear()
            return done
        if not self._bits and position <= self.first + self._front < end:
            # In order, and nothing behind the front is settled.
            done = end - self.first - self._front
            self.live -= done
            self._front += done
            return done
        done = 0
        while position < end:
            done += self.settle(position)
            position += 1
        return done

    def next(self, position: int) -> int:
        """The smallest position from `position` on that is not settled; `end()` without one."""
        index = max(position - self.first, self._front)
        while index < self.count and self._bit(index):
            index += 1
        return self.first + min(index, self.count)

    def reach(
        self, position: int, end: int, stop: int, messages: int, byte_count: int
    ) -> tuple[int, int, int]:
        """Return how far that many live messages reach, or that many bytes.

        Args:
            position: where to begin.
            end: the position to stop at.
            stop: where the records of the segment end in its file.
            messages: at most.
            byte_count: stop before more than these; -1 for any number.

        Returns:
            The position behind the last message that counts, how many do, and their octets.

        Raises:
            RuntimeError: the offsets are not loaded.
        """
        self._check_loaded()
        index = max(position - self.first, self._front)
        limit = min(end - self.first, self.count)
        reached, count, total = position, 0, 0
        while index < limit and count < messages:
            if not self._bit(index):
                # A record ends where the next one that exists begins: lost ones have no offset.
                behind = index + 1
                while behind < self.count and self._offsets[behind] == MISSING:
                    behind += 1
                after = self._offsets[behind] if behind < self.count else stop
                # The record of a live one may be lost since: it counts as empty.
                size = 0 if self._offsets[index] == MISSING else after - self._offsets[index]
                if 0 <= byte_count < total + size:
                    break
                total += size
                count += 1
                reached = self.first + index + 1
            index += 1
        return reached, count, total

    def live_in(self, first: int, end: int) -> int:
        """Return how many positions from `first` up to, not including, `end` are not settled."""
        index = max(first - self.first, self._front)
        limit = min(end - self.first, self.count)
        if index == self._front and limit == self.count:
            return self.live
        return sum(not self._bit(each) for each in range(index, limit))

    def ranges(self) -> bytes:
        """Return the settled ranges as the payload of a `settled` record (FORMAT.md, kind 2)."""
        pairs = []
        index = 0
        while index < self.count:
            if not self._is_set(index):
                index += 1
                continue
            begin = index
            while index < self.count and self._is_set(index):
                index += 1
            pairs.append(pack("<QI", self.first + begin, index - begin))
        return b"".join(pairs)

    # --- parts that are stored ------------------------------------------------------------------

    def offsets(self) -> bytes:
        """Return the offsets, four octets each, little-endian; none if they are not loaded."""
        return self._offsets.tobytes()

    def offset_bytes(self) -> int:
        """Return the octets of memory that the offsets take."""
        return len(self._offsets) * self._offsets.itemsize

    def load(self, offsets: bytes) -> bool:
        """Take the offsets again; return False if they are loaded or not as many as messages."""
        if self.is_loaded() or len(offsets) != self.count * self._offsets.itemsize:
            return False
        self._offsets.frombytes(offsets)
        return True

    def drop(self) -> int:
        """Leave the offsets out of memory until `load`."""
        self._offsets = array("I")
        return 0

    def restore(self, count: int) -> int:
        """Add messages to an empty bitmap whose offsets are not loaded."""
        self.count = self.live = count
        return 0

    def front(self) -> int:
        """Return how many messages are settled before the first one that is not."""
        return self._front

    def bits(self) -> bytes:
        """Return a bit for each message that is settled behind the front; see `settle_state`."""
        return bytes(self._bits)

    def settle_state(self, front: int, bits: bytes) -> int:
        """Settle what another bitmap of the same segment has: its `front()` and `bits()`."""
        self.settle_range(self.first, self.first + front)
        for octet, mask in enumerate(bits):
            if mask:
                for bit in range(8):
                    if mask >> bit & 1:
                        self.settle(self.first + octet * 8 + bit)
        return 0

    def _check_loaded(self) -> None:
        if not self.is_loaded():
            raise RuntimeError("the offsets of the segment are not loaded")

    def _bit(self, index: int) -> bool:
        offset = index >> 3
        return offset < len(self._bits) and bool(self._bits[offset] >> (index & 7) & 1)

    def _is_set(self, index: int) -> bool:
        return index < self._front or self._bit(index)
