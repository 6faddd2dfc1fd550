"""Consumers of one queue with equal selectors: what they want, and how far they have looked.

    ready       1   2   3   4   5   6   7 ...       2 is requeued, after the group looked at it
                    ^ returned      ^ cursor        next: 2, then 5

The consumers of a group share its position, so a message is looked at once for all of them. A
message that becomes ready again behind the cursor is looked at again, and no other one is.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, i64, i64_or_minus_1, isize
from harebell.model.limits import SELECTOR_RETURNED
from harebell.model.queue.features.key_waits import KeyWaits

if TYPE_CHECKING:
    from harebell.model.filter.condition import Filter

_RETURNED: isize = SELECTOR_RETURNED
_LEVEL_BIT: isize = 54
# As a number: in C the 1 of a shift has 32 bits only.
_IN_LOG: i64 = 0x3FFFFFFFFFFFFF


class SelectorGroup:
    """The consumers of one queue with equal selectors.

    Args:
        selector: what they want; None for everything.
        excluded: with no-local, the connection whose messages they do not get; else 0.
        level_bits: how many bits of a position are the level of its log.

    Attributes:
        equality: what the selector compares with constants; None for nothing.
        cursors: for each log of the queue, the first position that was not looked at.
        ended: whether there is nothing to look at, until a message becomes ready.
        short: whether the next message does not fit the credit in bytes of its consumer.
        waits: messages that they want and that wait for their keys, in a queue with ordering keys.
        members: how many consumers they are.
        index: finds the messages that they may want; None if they look at all of them.
        joins: whether there are enough groups like this one for an index.
    """

    def __init__(self, selector: Filter | None, excluded: i64, level_bits: isize) -> None:
        self.selector = selector
        self.excluded = excluded
        self.equality = None if selector is None else selector.equality
        self.cursors: list[int] = [0]
        self.ended = False
        self.short = False
        self.waits: KeyWaits | None = None
        self.members: isize = 0
        # A `SelectorIndex`, whose module needs this one.
        self.index: Any = None
        self.joins = False
        self._bits: isize = level_bits
        self._levels: i64 = (1 << level_bits) - 1
        # A heap of keys.
        self._returned: list[int] = []

    def returned(self) -> i64_or_minus_1:
        """Return the first position that became ready again behind the cursor; -1 if none."""
        return self._position(self._returned[0]) if self._returned else -1

    def pass_returned(self) -> Done:
        """Forget the position that `returned` returns: it was looked at."""
        heappop(self._returned)
        return 0

    def came_back(self, position: i64) -> Done:
        """Note a message that is ready again."""
        self.ended = False
        level: isize = position & self._levels
        # A message from the cursor on is looked at when the cursor comes there.
        if level >= len(self.cursors) or position >> self._bits >= self.cursors[level]:
            return 0
        heappush(self._returned, self._key(position))
        if len(self._returned) > _RETURNED:
            self._go_back()
        return 0

    def offered(self, position: i64) -> Done:
        """Note a message that the index has found."""
        self.ended = False
        heappush(self._returned, self._key(position))
        return 0

    def has_too_many(self) -> C[bool]:
        """True if more messages were found than are to be kept in memory."""
        return len(self._returned) > _RETURNED

    def leaves(self) -> Done:
        """Go back to the first message that the index has found, with cursors of its own."""
        self.ended = False
        return self._go_back()

    def back_to(self, position: i64) -> Done:
        """Look at everything from a position of a log on again."""
        self.ended = False
        level: isize = position & self._levels
        if level < len(self.cursors):
            self.cursors[level] = min(self.cursors[level], position >> self._bits)
        return 0

    def cursor_of(self, level: int) -> int:
        """Return the first position in the log of a level that was not looked at."""
        if level >= len(self.cursors):
            return 0
        if self.index is not None and self._returned:
            return min(self.cursors[level], self._position(self._returned[0]) >> self._bits)
        return self.cursors[level]

    def looks_at(self) -> int:
        """Return how many messages behind the cursor are still to be looked at, or are wanted."""
        if self.index is not None:
            # All of them are behind its first one, which `cursor_of` returns.
            return 0
        return len(self._returned) + (0 if self.waits is None else self.waits.count)

    def _go_back(self) -> Done:
        """Move the cursors back instead of keeping very many positions in memory."""
        key: i64
        for key in self._returned:
            position: i64 = self._position(key)
            level: isize = position & self._levels
            self.cursors[level] = min(self.cursors[level], position >> self._bits)
        self._returned.clear()
        return 0

    def _key(self, position: i64) -> i64:
        """Return a position with its level in front, the highest level first."""
        if self._levels == 0:
            return position
        level: i64 = self._levels - (position & self._levels)
        return level << _LEVEL_BIT | position >> self._bits

    def _position(self, key: i64) -> i64:
        """Return the position of a key."""
        if self._levels == 0:
            return key
        level: i64 = self._levels - (key >> _LEVEL_BIT)
        return (key & _IN_LOG) << self._bits | level
