"""The order of quorum queues: requeued messages first, in the order in which they were requeued.

    requeued   | 7 3 5 |        then messages never delivered, first in, first out

Other orders return a message to its place; RabbitMQ's quorum queues do not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from harebell.base.c_types import C, Done, i64, i64_or_minus_1, isize
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.model.limits import REQUEUED_SEARCHED
from harebell.model.queue.order.contract import MessageOrder, with_others
from harebell.model.queue.order.fifo import FifoOrder


class CountedOrder(MessageOrder):
    """First in, first out, behind requeued messages.

    Args:
        log: the log of the messages; all in it are ready.
        marks: as for `FifoOrder`.
    """

    def __init__(self, log: Log, marks: bool) -> None:
        super().__init__(log)
        self._fifo = FifoOrder(log, marks)
        self._requeued: deque[int] = deque()
        # The requeued positions in the order of the log; None until a position is searched.
        self._sorted: list[int] | None = None
        self.count = self._fifo.count

    def levels(self) -> C[list[tuple[int, FifoOrder]]]:
        return [(0, self._fifo)]

    def recount(self) -> Done:
        self.count = self._fifo.count + len(self._requeued)
        return 0

    def keep(self, message: Message) -> Done:
        before: i64 = self._fifo.count
        self._fifo.keep(message)
        self.count += self._fifo.count - before
        return 0

    def deliver_direct(self, message: Message) -> i64:
        # The counts of both orders stay: the message is never ready.
        return self._fifo.deliver_direct(message)

    def take(self) -> C[Message | None]:
        while self._requeued:
            position: i64 = self._requeued.popleft()
            self._sorted = None
            self.count -= 1
            message: Message | None = self.log.read(position)
            if message is not None:
                self.position = position
                self.redelivered = True
                return message
        fifo = self._fifo
        message = fifo.take()
        self.count = fifo.count
        self.position = fifo.position
        self.redelivered = fifo.redelivered
        return message

    def peek(self) -> C[Message | None]:
        while self._requeued:
            message: Message | None = self.log.read(self._requeued[0])
            if message is not None:
                return message
            self._requeued.popleft()
            self._sorted = None
        message = self._fifo.peek()
        self.recount()
        return message

    def spilled_head(self) -> i64_or_minus_1:
        if not self._requeued:
            return self._fifo.spilled_head()
        position: i64 = self._requeued[0]
        return position if self.log.has_large and self.log.is_spilled(position) else -1

    def skip_spilled(self) -> Done:
        if self._requeued:
            self.position = self._requeued.popleft()
            self._sorted = None
            self.redelivered = True
        else:
            self._fifo.skip_spilled()
            self.position = self._fifo.position
            self.redelivered = self._fifo.redelivered
        return self.recount()

    def restore(self, position: i64, redelivered: bool) -> Done:
        # At the end: RabbitMQ's quorum queues deliver requeued messages in the order in which they
        # were requeued. Every one of them was delivered, so it stays marked as redelivered.
        self._requeued.append(position)
        self._sorted = None
        self.count += 1
        return 0

    def untake(self, position: i64, redelivered: bool) -> Done:
        # It was the first of its list, and has to be the first again.
        if redelivered:
            self._requeued.appendleft(position)
            self._sorted = None
        else:
            self._fifo.restore(position, False)
        return self.recount()

    def hold(self, position: i64) -> C[bool]:
        held: bool = self._fifo.hold(position)
        self.recount()
        return held

    def next_ready(self, cursors: list[int]) -> i64_or_minus_1:
        first: i64 = self._fifo.first_ready_from(cursors[0])
        if self._requeued:
            if self._sorted is None:
                self._sorted = sorted(self._requeued)
            index: isize = bisect_left(self._sorted, cursors[0])
            if index < len(self._sorted) and (first < 0 or self._sorted[index] < first):
                return self._sorted[index]
        return first

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return the log, with the position of the oldest ready message.

        Of very many requeued messages only the next one is looked at: metrics ask for all queues.
        """
        positions = [self._fifo.first_ready()]
        if self._sorted:
            positions.append(self._sorted[0])
        elif len(self._requeued) > REQUEUED_SEARCHED:
            positions.append(self._requeued[0])
        else:
            positions.extend(self._requeued)
        ready = [position for position in positions if position >= 0]
        return [(self.log, min(ready))] if ready else []

    def was_out(self, position: i64) -> C[bool]:
        if self._sorted is None:
            return position in self._requeued or self._fifo.was_out(position)
        return self._requeued_index(position) >= 0 or self._fifo.was_out(position)

    def _requeued_index(self, position: int) -> int:
        """Return the index of a position among the sorted ones that were requeued; -1 if none."""
        if self._sorted is None:
            self._sorted = sorted(self._requeued)
        index = bisect_left(self._sorted, position)
        is_there = index < len(self._sorted) and self._sorted[index] == position
        return index if is_there else -1

    def discard(self, position: int) -> bool:
        index = self._requeued_index(position) if self._requeued else -1
        if index < 0:
            gone = self._fifo.discard(position)
        else:
            gone = True
            self._requeued.remove(position)
            if self._sorted is not None:
                # Kept up to date: a job may discard very many messages, one after the other.
                del self._sorted[index]
            self.log.settle(position)
        self.count -= gone
        return gone

    def take_out(self, position: i64) -> C[bool]:
        out: bool = self._fifo.take_out(position)
        if not out and position in self._requeued:
            self._requeued.remove(position)
            self._sorted = None
            out = True
        self.count -= out
        return out

    def in_ranges(self) -> C[bool]:
        # Requeued messages come first, and in no order of the log.
        return not self._requeued

    def ready_before(self, level: int, end: int) -> tuple[int, int]:
        return with_others(self._requeued, self._fifo.ready_before(level, end), end)

    def mark_out(self, position: i64) -> Done:
        return self._fifo.mark_out(position)

    def settle(self, position: i64) -> Done:
        return self._fifo.settle(position)

    def settle_range(self, first: i64, end: i64) -> Done:
        return self._fifo.settle_range(first, end)

    def purge(self) -> i64:
        count: i64 = self.count
        for position in self._requeued:
            self.log.settle(position)
        self._requeued.clear()
        self._sorted = None
        self._fifo.purge()
        self.recount()
        return count

    def delete(self) -> Done:
        self._requeued.clear()
        self._sorted = None
        self._fifo.delete()
        return self.recount()
