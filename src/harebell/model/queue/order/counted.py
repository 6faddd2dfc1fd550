"""The order of quorum queues: requeued messages first, in the order in which they were requeued.

    returned   | 7 3 5 |        then messages never delivered, first in, first out

Other orders return a message to its place; RabbitMQ's quorum queues do not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from harebell.base.limits import RETURNED_SEARCHED
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.model.queue.order.contract import MessageOrder
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
        self._returned: deque[int] = deque()
        # The same in the order of the log; made when a position is searched.
        self._sorted: list[int] | None = None
        self.count = self._fifo.count

    def levels(self) -> list[tuple[int, FifoOrder]]:
        return [(0, self._fifo)]

    def recount(self) -> int:
        self.count = self._fifo.count + len(self._returned)
        return 0

    def keep(self, message: Message) -> int:
        before = self._fifo.count
        self._fifo.keep(message)
        self.count += self._fifo.count - before
        return 0

    def hand_over(self, message: Message) -> int:
        return self._fifo.hand_over(message)

    def take(self) -> Message | None:
        while self._returned:
            position = self._returned.popleft()
            self._sorted = None
            self.count -= 1
            message = self.log.read(position)
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

    def peek(self) -> Message | None:
        while self._returned:
            message = self.log.read(self._returned[0])
            if message is not None:
                return message
            self._returned.popleft()
            self._sorted = None
        message = self._fifo.peek()
        self.recount()
        return message

    def far(self) -> int:
        if not self._returned:
            return self._fifo.far()
        position = self._returned[0]
        return position if self.log.has_large and self.log.far(position) else -1

    def skip(self) -> int:
        if self._returned:
            self.position = self._returned.popleft()
            self._sorted = None
            self.redelivered = True
        else:
            self._fifo.skip()
            self.position = self._fifo.position
            self.redelivered = self._fifo.redelivered
        return self.recount()

    def put_back(self, position: int) -> int:
        self._returned.append(position)
        self._sorted = None
        self.count += 1
        return 0

    def untake(self, position: int, redelivered: bool) -> int:
        if redelivered:
            self._returned.appendleft(position)
            self._sorted = None
        else:
            self._fifo.put_back(position)
            self._fifo.untouched(position)
        return self.recount()

    def hold(self, position: int) -> bool:
        held = self._fifo.hold(position)
        self.recount()
        return held

    def next_ready(self, cursors: list[int]) -> int:
        found = self._fifo.look(cursors[0])
        if self._returned:
            if self._sorted is None:
                self._sorted = sorted(self._returned)
            at = bisect_left(self._sorted, cursors[0])
            if at < len(self._sorted) and (found < 0 or self._sorted[at] < found):
                return self._sorted[at]
        return found

    def heads_by_log(self) -> list[tuple[Log, int]]:
        """Return the log, with the position of the oldest ready message.

        Of very many requeued messages only the next one is looked at.
        """
        positions = [self._fifo.first_ready()]
        if self._sorted:
            positions.append(self._sorted[0])
        elif len(self._returned) > RETURNED_SEARCHED:
            positions.append(self._returned[0])
        else:
            positions.extend(self._returned)
        found = [position for position in positions if position >= 0]
        return [(self.log, min(found))] if found else []

    def was_out(self, position: int) -> bool:
        if self._sorted is None:
            return position in self._returned or self._fifo.was_out(position)
        return self._found(position) >= 0 or self._fifo.was_out(position)

    def _found(self, position: int) -> int:
        """Return the index of a position among the sorted ones that were returned; -1 if none."""
        if self._sorted is None:
            self._sorted = sorted(self._returned)
        at = bisect_left(self._sorted, position)
        return at if at < len(self._sorted) and self._sorted[at] == position else -1

    def discard(self, position: int) -> bool:
        at = self._found(position) if self._returned else -1
        if at < 0:
            gone = self._fifo.discard(position)
        else:
            gone = True
            self._returned.remove(position)
            if self._sorted is not None:
                del self._sorted[at]
            self.log.settle(position)
        self.count -= gone
        return gone

    def take_out(self, position: int) -> bool:
        if position in self._returned:
            self._returned.remove(position)
            self._sorted = None
            self.count -= 1
            return True
        out = self._fifo.take_out(position)
        self.count -= out
        return out

    def in_ranges(self) -> bool:
        return not self._returned

    def purge(self) -> int:
        count = self.count
        for position in self._returned:
            self.log.settle(position)
        self._returned.clear()
        self._sorted = None
        self._fifo.purge()
        self.recount()
        return count

    def delete(self) -> int:
        self._returned.clear()
        self._sorted = None
        self._fifo.delete()
        return self.recount()
