"""Priorities: an order with a level for each priority, the highest first.

Every level has a log, made with its first message, and a first-in-first-out order. A position of
the queue includes the level:

    position of the queue   = position in the level's log << 8 | level

A queue with `qpid.priorities` of N divides the priorities 0 to 9 among N levels as AMQP 0-10 has it
(rule "priority-level-implementation"): those in the middle are separated first.

    N = 2    0 1 2 3 4 | 5 6 7 8 9          N = 4    0 1 2 3 | 4 | 5 | 6 7 8 9
    N = 3    0 1 2 3 | 4 | 5 6 7 8 9        N = 10   every priority

With fair share (`qpid.fairshare`) a level that has given its share of messages in a row lets the
levels below it go first; after the lowest it is the turn of the highest again.

    shares 2, 1, 1     high high middle low, high high middle low, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.c_types import C, Cpdef, Done, i32, i32_or_minus_1, i64, i64_or_minus_1
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.queue.arguments import shares_of
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.order.fifo import FifoOrder
from harebell.model.queue.position_range import (
    LogRange,
    MessageRange,
    append_runs_to,
    level_marker,
    span_of,
)

_SHIFT: i32 = 8
_LEVEL: i64 = (1 << _SHIFT) - 1
HIGHEST = _LEVEL
"""The largest x-max-priority."""
LEVELS = "qpid.priorities"
"""The argument of AMQP 0-10: how many levels there are."""
POLICY_TYPE = "qpid.policy_type"
RING = "ring"
"""Value of the drop policy: drop messages of the lowest priority, not of the highest."""
_MIDDLE: i32 = 5


class PriorityOrder(MessageOrder):
    """A first-in-first-out order for each level.

    Args:
        open_level: opens the log of a level.
        max_level: the highest level, 1 to 255.
        marks: as for `FifoOrder`.
        restored: whether there may be messages from before the restart.
        arguments: the arguments of the queue.
    """

    def __init__(
        self,
        open_level: Callable[[int], Log],
        max_level: i32,
        marks: bool,
        *,
        restored: bool,
        arguments: Mapping[str, Any],
    ) -> None:
        super().__init__(None)
        self.level_bits = _SHIFT
        self.heads = max_level + 1
        self._open_level = open_level
        self._max_level = max_level
        self._marks = marks
        # The highest level that may have a ready message.
        self._top: i32 = -1
        levels = arguments.get(LEVELS)
        # The highest priority that belongs to the lowest level.
        self._lowest: i32 = _MIDDLE - min(_MIDDLE, (levels + 1) // 2) if type(levels) is int else 0
        self._lowest_first = arguments.get(POLICY_TYPE) == RING
        # With fair share: the share of each level, whose turn it is, and how many it has given.
        self._shares: list[int] | None = shares_of(arguments, max_level + 1)
        self._turn: i32 = max_level
        self._given: i64 = 0
        self._orders: list[FifoOrder | None] = [None] * (max_level + 1)
        if restored:
            for level in range(max_level + 1):
                self._make(level)
            self.recount()

    def _make(self, level: i32) -> Cpdef[FifoOrder]:
        order: FifoOrder = FifoOrder(self._open_level(level), self._marks)
        self._orders[level] = order
        if self.staging:
            # The batch began before this level had a log, and hides its messages, too.
            order.begin_batch()
        return order

    def _level_of(self, message: Message) -> i32:
        """Return the level of a message: 0 without a priority, at most the highest level."""
        level: i32 = message.priority
        if level <= self._lowest:
            return 0
        return min(level - self._lowest, self._max_level)

    def in_ranges(self) -> C[bool]:
        # With fair share the next messages are of several levels.
        return self._shares is None

    def order_for(self, message: Message) -> FifoOrder:
        """Return the order of the level."""
        level = self._level_of(message)
        order = self._orders[level]
        return self._make(level) if order is None else order

    def keep(self, message: Message) -> Done:
        """Append a message to its level."""
        level: i32 = self._level_of(message)
        order: FifoOrder | None = self._orders[level]
        if order is None:
            order = self._make(level)
        if level > self._top:
            self._top = level
        # An open batch hides the message: then it is not ready.
        before: i64 = order.count
        order.keep(message)
        self.count += order.count - before
        return 0

    def deliver_direct(self, message: Message) -> i64:
        """Keep a message that is delivered at once."""
        level: i32 = self._level_of(message)
        order: FifoOrder | None = self._orders[level]
        if order is None:
            order = self._make(level)
        return order.deliver_direct(message) << _SHIFT | level

    def take(self) -> C[Message | None]:
        """Take the oldest message of the highest level, or of the one whose turn it is."""
        if self._shares is not None:
            return self._take_share()
        return self._take_highest()

    def _take_share(self) -> C[Message | None]:
        """Take the oldest message of the level whose turn it is."""
        level: i32 = self._next_turn()
        while level >= 0:
            message: Message | None = self.take_head(level)
            if message is not None:
                if level != self._turn or self._is_given(level):
                    self._turn = level
                    self._given = 0
                self._given += 1
                return message
            # Messages that cannot be read have left the level, so this ends.
            level = self._next_turn()
        return None

    def _is_given(self, level: i32) -> C[bool]:
        """True if the level whose turn it is has given its share."""
        shares = self._shares
        if shares is None:
            return False
        share: i64 = shares[level]
        return share > 0 and self._given >= share

    def _next_turn(self) -> i32_or_minus_1:
        """Return the next level in turn that has ready messages; -1 if there is none."""
        levels: i32 = self._max_level + 1
        level: i32 = self._turn
        if self._is_given(level):
            level = level - 1 if level > 0 else self._max_level
        for _ in range(levels):
            order: FifoOrder | None = self._orders[level]
            if order is not None and order.count > 0:
                return level
            level = level - 1 if level > 0 else self._max_level
        return -1

    def _take_highest(self) -> C[Message | None]:
        """Take the oldest message of the highest level."""
        level: i32 = self._top
        while level >= 0:
            message = self.take_head(level)
            if message is not None:
                self._top = level
                return message
            level -= 1
        self._top = -1
        return None

    def peek(self) -> C[Message | None]:
        """Return the message that is taken next."""
        if self._shares is not None:
            level: i32 = self._first_level()
            while level >= 0:
                message = self.peek_head(level)
                if message is not None:
                    return message
                level = self._first_level()
            return None
        level = self._top
        while level >= 0:
            message = self.peek_head(level)
            if message is not None:
                return message
            level -= 1
        return None

    def take_head(self, head: i32) -> C[Message | None]:
        """Take the oldest message of a level."""
        order: FifoOrder | None = self._orders[head]
        if order is None or not order.count:
            return None
        # Messages that cannot be read leave the level, too.
        before: i64 = order.count
        message: Message | None = order.take()
        self.count -= before - order.count
        if message is not None:
            self.position = order.position << _SHIFT | head
            self.redelivered = order.redelivered
        return message

    def peek_head(self, head: i32) -> C[Message | None]:
        """Return the oldest message of a level."""
        order: FifoOrder | None = self._orders[head]
        if order is None:
            return None
        before: i64 = order.count
        message: Message | None = order.peek()
        self.count -= before - order.count
        return message

    def _first_level(self) -> i32_or_minus_1:
        """Return the level of the message that is taken next; -1 if there is none."""
        if self._shares is not None:
            return self._next_turn()
        level: i32
        for level in range(self._top, -1, -1):
            order: FifoOrder | None = self._orders[level]
            if order is not None and order.count:
                return level
        return -1

    def spilled_head(self) -> i64_or_minus_1:
        level: i32 = self._first_level()
        if level < 0:
            return -1
        order: FifoOrder | None = self._orders[level]
        position: i64 = -1 if order is None else order.spilled_head()
        return -1 if position < 0 else position << _SHIFT | level

    def load_spilled(self, done: Callable[[], object]) -> Done:
        # The log of the level counts without the level.
        position: i64 = self.spilled_head()
        self._order_of(position).log.load_spilled(position >> _SHIFT, done)
        return 0

    def take_victim(self) -> C[Message | None]:
        """Take the oldest message of the highest level, or of the lowest one with `RING`."""
        if not self._lowest_first:
            return self._take_highest()
        level: i32
        for level in range(self._max_level + 1):
            message = self.take_head(level)
            if message is not None:
                return message
        return None

    def restore(self, position: i64, redelivered: bool) -> Done:
        """Make a message ready again on its level."""
        level: i64 = position & _LEVEL
        if level > self._top:
            self._top = level
        self._order_of(position).restore(position >> _SHIFT, redelivered)
        self.count += 1
        return 0

    def next_ready(self, cursors: list[int]) -> i64_or_minus_1:
        """Return the first ready position of the highest level that has one."""
        # A reader begins with one cursor: it does not know how many levels there are.
        while len(cursors) <= self._max_level:
            cursors.append(0)
        level: i32
        for level in range(self._max_level, -1, -1):
            order: FifoOrder | None = self._orders[level]
            if order is not None and order.count:
                position: i64 = order.first_ready_from(cursors[level])
                if position >= 0:
                    return position << _SHIFT | level
        return -1

    def pass_by(self, cursors: list[int], position: i64) -> Done:
        """Move the cursor of one level behind a position."""
        cursors[position & _LEVEL] = (position >> _SHIFT) + 1
        return 0

    def _order_of(self, position: i64) -> C[FifoOrder]:
        order = self._orders[position & _LEVEL]
        assert order is not None, "the level of a delivered message has an order"
        return order

    def read(self, position: i64) -> C[Message | None]:
        return self._order_of(position).log.read(position >> _SHIFT)

    def settle(self, position: i64) -> Done:
        return self._order_of(position).settle(position >> _SHIFT)

    def mark_out(self, position: i64) -> Done:
        return self._order_of(position).mark_out(position >> _SHIFT)

    def ready_before(self, level: int, end: int) -> tuple[int, int]:
        return self._order_of(level).ready_before(0, end)

    def is_spilled(self, position: i64) -> C[bool]:
        return self._order_of(position).is_spilled(position >> _SHIFT)

    def load(self, position: i64, done: Callable[[], object]) -> Done:
        return self._order_of(position).load(position >> _SHIFT, done)

    def was_out(self, position: i64) -> C[bool]:
        return self._order_of(position).was_out(position >> _SHIFT)

    def take_out(self, position: i64) -> C[bool]:
        order = self._order_of(position)
        out: bool = order.take_out(position >> _SHIFT)
        self.redelivered = order.redelivered
        self.count -= out
        return out

    def discard(self, position: int) -> bool:
        gone = self._order_of(position).discard(position >> _SHIFT)
        self.count -= gone
        return gone

    def hold(self, position: i64) -> C[bool]:
        held: bool = self._order_of(position).hold(position >> _SHIFT)
        self.count -= held
        return held

    def holds(self, position: i64) -> C[bool]:
        order = self._orders[position & _LEVEL]
        return order is not None and order.holds(position >> _SHIFT)

    def next_position(self, message: Message) -> i64:
        return self.order_for(message).log.end() << _SHIFT | self._level_of(message)

    def time_of(self, position: int) -> int:
        return self._order_of(position).log.time_of(position >> _SHIFT)

    def delivery_count(self, position: i64) -> i32:
        return self._order_of(position).log.count(position >> _SHIFT)

    def set_delivery_count(self, position: i64, count: i32) -> Done:
        return self._order_of(position).log.set_count(position >> _SHIFT, count)

    def counted_positions(self) -> list[int]:
        return [
            position << _SHIFT | level
            for level, order in enumerate(self._orders)
            if order is not None
            for position in order.log.counted()
        ]

    def purge(self) -> i64:
        """Settle the ready messages of all levels."""
        count: i64 = self.count
        order: FifoOrder | None
        for order in self._orders:
            if order is not None:
                order.purge()
        self._top = -1
        self.count = 0
        return count

    def delete(self) -> Done:
        order: FifoOrder | None
        for order in self._orders:
            if order is not None:
                order.delete()
        self.count = 0
        return 0

    def levels(self) -> C[list[tuple[int, FifoOrder]]]:
        """Return the orders of the levels, the highest first."""
        levels = reversed(list(enumerate(self._orders)))
        return [(level, order) for level, order in levels if order is not None]

    def recount(self) -> Done:
        """Set `count` and the highest level with a ready message."""
        self.count = 0
        self._top = -1
        order: FifoOrder | None
        for level, order in enumerate(self._orders):
            if order is not None and order.count:
                self.count += order.count
                self._top = level
        return 0

    def sync_soon(self) -> Done:
        order: FifoOrder | None
        for order in self._orders:
            if order is not None:
                order.log.sync_soon()
        return 0

    def span(self, moment: int) -> MessageRange:
        """Return where the messages of all levels are, by positions of the queue."""
        end = messages = byte_count = 0
        firsts: list[int] = []
        starts: list[int] = []
        for level, order in enumerate(self._orders):
            if order is None:
                continue
            part = span_of(order.log, order.end(), moment, order.hidden)
            messages += part.messages
            byte_count += part.byte_count
            if part.end:
                end = max(end, (part.end - 1 << _SHIFT | level) + 1)
            if part.first < part.end:
                firsts.append(part.first << _SHIFT | level)
            if part.position < part.end:
                starts.append(part.position << _SHIFT | level)
        first = min(firsts, default=end)
        return MessageRange(first, end, messages, byte_count, min(starts, default=end))

    def append_to(self, first: int, end: int, into: BatchBuilder) -> int:
        """Make rows in the order of positions, which is not the order of levels."""
        levels = self.levels()
        runs = [LogRange(level, 0, order.end(), order.log) for level, order in levels]
        end = min(end, self.span(0).end)
        return append_runs_to(runs, _SHIFT, first, end, into, level_marker(levels, _SHIFT, into))
