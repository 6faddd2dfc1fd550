"""The priority queue: a classic queue with a level for each priority, the highest first.

Every level is a log of its own, made when the first message of that priority comes, with its own
ready order; so within a level everything is as in a classic queue. A position says the level too:

    position of the queue   = position in the level's log << 8 | level

A queue with `qpid.priorities` of N divides the priorities 0 to 9 among N levels as AMQP 0-10 has it
(rule "priority-level-implementation"): those in the middle are told apart first.

    N = 2    0 1 2 3 4 | 5 6 7 8 9          N = 4    0 1 2 3 | 4 | 5 | 6 7 8 9
    N = 3    0 1 2 3 | 4 | 5 6 7 8 9        N = 10   every priority
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.limits import EXPIRED_PER_TURN
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.dead_letter import EXPIRED
from harebell.model.queue.kind import ACCEPTED, PENDING
from harebell.model.queue.spans import Span, Stretch, pour_runs, span_of
from harebell.model.queue.staging import StagingQueue
from harebell.model.queue.staging_order import StagingOrder

_SHIFT = 8
_LEVEL = (1 << _SHIFT) - 1
_EXPIRED_PER_TURN = EXPIRED_PER_TURN
HIGHEST = _LEVEL
"""The largest x-max-priority."""
LEVELS = "qpid.priorities"
"""The argument of AMQP 0-10's users: how many levels there are."""
POLICY_TYPE = "qpid.policy_type"
RING = "ring"
"""Its value that has the least urgent message go first, not the most urgent, from a full queue."""
_MIDDLE = 5


class PriorityQueue(StagingQueue):
    """A ready order for each level.

    Args:
        name: its name.
        vhost: the name of its vhost.
        open_level: opens the log of a level.
        most: the highest level, 1 to 255.
        restored: whether there may be messages from before.
        **options: as for `Queue`.
    """

    KIND = "priority"
    MANY_HEADS = True
    BITS = _SHIFT

    def __init__(
        self,
        name: str,
        vhost: str,
        open_level: Callable[[int], Log],
        most: int,
        *,
        restored: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(name, vhost, **options)
        self._open_level = open_level
        self._most = most
        self._top = -1
        levels = self.arguments.get(LEVELS)
        # The highest priority that is still on the lowest level.
        self._lowest = _MIDDLE - min(_MIDDLE, (levels + 1) // 2) if type(levels) is int else 0
        self._lowest_first = self.arguments.get(POLICY_TYPE) == RING
        self._orders: list[StagingOrder | None] = [None] * (most + 1)
        if restored:
            for level in range(most + 1):
                order = self._make(level)
                if order.count:
                    self._found(order.count)
                    self._top = level

    def _make(self, level: int) -> StagingOrder:
        order = StagingOrder(self._open_level(level), self.durable)
        self._orders[level] = order
        if self.staging:
            order.begin_batch()
        return order

    def _level_of(self, message: Message) -> int:
        """The level of a message: none is 0, and more than there is counts as the highest."""
        level = message.priority
        if level <= self._lowest:
            return 0
        return min(level - self._lowest, self._most)

    def _order_for(self, message: Message) -> StagingOrder:
        level = self._level_of(message)
        order = self._orders[level]
        return self._make(level) if order is None else order

    def _keep(self, message: Message) -> int:
        level = self._level_of(message)
        order = self._orders[level]
        if order is None:
            order = self._make(level)
        if level > self._top:
            self._top = level
        return order.keep(message)

    def _hand_over(self, message: Message) -> int:
        level = self._level_of(message)
        order = self._orders[level]
        if order is None:
            order = self._make(level)
        return order.hand_over(message) << _SHIFT | level

    def _take(self) -> Message | None:
        level = self._top
        while level >= 0:
            order = self._orders[level]
            if order is not None and order.count:
                before = order.count
                message = order.take()
                self._ready -= before - order.count
                if message is not None:
                    self._top = level
                    self._position = order.position << _SHIFT | level
                    self._again = order.again
                    if self._retry is not None and order.again:
                        return self._counted(message)
                    return message
            level -= 1
        self._top = -1
        return None

    def _is_far(self) -> bool:
        order = self._first_order()
        return order is not None and order.far() >= 0

    def _fetch(self, done: Callable[[], object]) -> int:
        order = self._first_order()
        assert order is not None, "its head is far"
        order.log.fetch(order.far(), done)
        return 0

    def _may_skip(self) -> bool:
        return False

    def _first_order(self) -> StagingOrder | None:
        """The order of the highest level that has messages."""
        for level in range(self._top, -1, -1):
            order = self._orders[level]
            if order is not None and order.count:
                return order
        return None

    def _victim(self) -> Message | None:
        """What goes when there is too much: the oldest of the highest level, or of the lowest."""
        if not self._lowest_first or self._spares:
            return StagingQueue._victim(self)  # noqa: SLF001  # what a queue of any kind does
        for level, order in enumerate(self._orders):
            if order is None or not order.count:
                continue
            before = order.count
            message = order.take()
            self._ready -= before - order.count
            if message is not None:
                self._position = order.position << _SHIFT | level
                self._again = order.again
                return message
        return None

    def _expire_heads(self, now: int) -> int:
        """Every level has a head, so what expires does not wait for what is more urgent."""
        earliest = 0
        for level, order in enumerate(self._orders):
            due = self._expire_level(level, order, now) if order is not None else 0
            if due and (earliest == 0 or due < earliest):
                earliest = due
        return earliest

    def _expire_level(self, level: int, order: StagingOrder, now: int) -> int:
        for _ in range(_EXPIRED_PER_TURN):
            message = self._peek_at(order)
            if message is None:
                return 0
            if message.due == 0 or message.due > now:
                return message.due
            before = order.count
            message = order.take()
            self._ready -= before - order.count
            if message is not None:
                self._position = order.position << _SHIFT | level
                if self._overflow is not None:
                    self._left(self._overflow, message)
                self._bury(self._position, EXPIRED)
            if self._work.charge(1):
                break
        return now

    def _peek_at(self, order: StagingOrder) -> Message | None:
        """The head of a level."""
        before = order.count
        message = order.peek()
        self._ready -= before - order.count
        return message

    def _peek(self) -> Message | None:
        level = self._top
        while level >= 0:
            order = self._orders[level]
            message = self._peek_at(order) if order is not None else None
            if message is not None:
                return message
            level -= 1
        return None

    def _order_of(self, position: int) -> StagingOrder:
        order = self._orders[position & _LEVEL]
        assert order is not None, "the level of a delivered message has an order"
        return order

    def _read(self, position: int) -> Message | None:
        return self._order_of(position).log.read(position >> _SHIFT)

    def _drop(self, position: int) -> int:
        return self._order_of(position).log.settle(position >> _SHIFT)

    def _put_back(self, position: int) -> int:
        level = position & _LEVEL
        if level > self._top:
            self._top = level
        self._order_of(position).put_back(position >> _SHIFT)
        self._ready += 1
        return 0

    def _look(self, cursors: list[int]) -> int:
        while len(cursors) <= self._most:
            cursors.append(0)
        for level in range(self._most, -1, -1):
            order = self._orders[level]
            if order is not None and order.count:
                position = order.look(cursors[level])
                if position >= 0:
                    return position << _SHIFT | level
        return -1

    def _pass(self, cursors: list[int], position: int) -> int:
        cursors[position & _LEVEL] = (position >> _SHIFT) + 1
        return 0

    def _was_out(self, position: int) -> bool:
        return self._order_of(position).was_out(position >> _SHIFT)

    def _take_out(self, position: int) -> bool:
        order = self._order_of(position)
        out = order.take_out(position >> _SHIFT)
        self._again = order.again
        self._ready -= out
        return out

    def _untouched(self, position: int) -> int:
        return self._order_of(position).untouched(position >> _SHIFT)

    def _levels(self) -> list[tuple[int, StagingOrder]]:
        levels = reversed(list(enumerate(self._orders)))
        return [(level, order) for level, order in levels if order is not None]

    def _recount(self) -> int:
        self._ready = 0
        self._top = -1
        for level, order in enumerate(self._orders):
            if order is not None and order.count:
                self._ready += order.count
                self._top = level
        return 0

    def _place(self, position: int) -> tuple[int, int]:
        return position & _LEVEL, position >> _SHIFT

    def position_of(self, level: int, position: int) -> int:
        """The position of the queue for one in the log of a level."""
        return position << _SHIFT | level

    def span(self, moment: int) -> Span:
        """What the logs of all levels have, by positions of the queue."""
        first = end = messages = octets = 0
        firsts: list[int] = []
        starts: list[int] = []
        for level, order in enumerate(self._orders):
            if order is None:
                continue
            part = span_of(order.log, order.end(), moment, order.hidden)
            messages += part.messages
            octets += part.octets
            if part.end:
                end = max(end, (part.end - 1 << _SHIFT | level) + 1)
            if part.first < part.end:
                firsts.append(part.first << _SHIFT | level)
            if part.position < part.end:
                starts.append(part.position << _SHIFT | level)
        first = min(firsts, default=end)
        return Span(first, end, messages, octets, min(starts, default=end))

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """What the logs have, in the order of positions, which is not that of the levels."""
        runs = [Stretch(level, 0, order.end(), order.log) for level, order in self._levels()]
        end = min(end, self.span(0).end)
        return pour_runs(runs, _SHIFT, first, end, into, self._marker(into))

    def next_position(self, message: Message) -> int:
        """Messages stand in the log of their level one after the other."""
        level = self._level_of(message)
        order = self._orders[level]
        if order is None:
            order = self._make(level)
        return order.log.end() << _SHIFT | level

    def failures(self, position: int) -> int:
        """The count of a message in its log."""
        return self._order_of(position).log.count(position >> _SHIFT)

    def set_failures(self, position: int, count: int) -> int:
        """Remember the count of a message in its log."""
        return self._order_of(position).log.set_count(position >> _SHIFT, count)

    def failed_ones(self) -> list[int]:
        """The positions of messages with failed deliveries."""
        return [
            position << _SHIFT | level
            for level, order in enumerate(self._orders)
            if order is not None
            for position in order.log.counted()
        ]

    def holds(self, position: int) -> bool:
        """Whether it is not settled in the log of its level."""
        return self._order_of(position).log.next(position >> _SHIFT) == position >> _SHIFT

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before the restart."""
        held = self._order_of(position).hold(position >> _SHIFT)
        self._ready -= held
        return held

    def _drop_ready(self) -> int:
        for order in self._orders:
            if order is not None:
                order.purge()
        self._top = -1
        return 0

    def _drop_all(self) -> int:
        for order in self._orders:
            if order is not None:
                order.delete()
        return 0

    def sync_soon(self) -> int:
        """What was settled here shall be part of the next commit."""
        if not self.durable or self.deleted:
            return ACCEPTED
        for order in self._orders:
            if order is not None:
                order.log.sync_soon()
        return PENDING
