"""The classic queue: first in, first out, each message to one consumer.

    log      | settled ... | delivered . ready again . delivered | ready ready ready |
                                                                 ^ cursor            ^ end

Everything from the cursor to the end of the log is ready in order. What came back lies before the
cursor, in a heap, and goes out first, so a requeued message returns to its original place. Nothing
else is remembered per message.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from harebell.base.message import PERSISTENT, Message
from harebell.base.ports import Log
from harebell.model.consumer import Consumer
from harebell.model.queue.kind import ACCEPTED, PENDING, Queue

NO_POSITION = -1
_ACCEPTED = ACCEPTED
_PENDING = PENDING
_PERSISTENT = PERSISTENT


class ClassicQueue(Queue):
    """A log, a cursor, and the positions that came back.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept.
        **options: as for `Queue`.
    """

    KIND = "classic"

    def __init__(self, name: str, vhost: str, log: Log, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._log = log
        self._cursor = log.end()
        self._returned: list[int] = []
        self._ready = 0
        self._turn = 0
        self._ranked = False

    def publish(self, message: Message) -> int:
        """Take a message; behind ready ones it waits, for then no consumer is ready."""
        self.published += 1
        if self._ready == 0 and self.consumers:
            consumer = self._pick()
            if consumer is not None:
                if consumer.no_ack:
                    consumer.deliver(message, NO_POSITION, False)
                    return _ACCEPTED
                position = self._log.append(message)
                self._cursor = position + 1
                self.unacked += 1
                consumer.deliver(message, position, False)
                return self._taken(message)
        self._log.append(message)
        self._ready += 1
        return self._taken(message)

    def _taken(self, message: Message) -> int:
        """Whether a message that is in the log now has to reach the disk."""
        return _PENDING if self.durable and message.delivery_mode == _PERSISTENT else _ACCEPTED

    def ready_count(self) -> int:
        """Messages waiting for a consumer."""
        return self._ready

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message and one of them."""
        while self._ready > 0:
            consumer = self._pick()
            if consumer is None:
                return 0
            self._serve(consumer)
        return 0

    def get(self) -> tuple[Message, int, bool] | None:
        """Take the next message, to be settled or requeued later."""
        if self._ready == 0:
            return None
        position, redelivered = self._next()
        message = self._log.read(position)
        assert message is not None, "a ready position has a record"
        self.unacked += 1
        return message, position, redelivered

    def settle(self, position: int) -> int:
        """A delivered message is done with."""
        if not self.deleted:
            self.unacked -= 1
            self._log.settle(position)
        return 0

    def requeue(self, position: int) -> int:
        """A delivered message comes back to its place; the caller drains afterwards."""
        if not self.deleted:
            self.unacked -= 1
            self._ready += 1
            heappush(self._returned, position)
        return 0

    def sync_soon(self) -> int:
        """What was settled here shall be part of the next commit."""
        if not self.durable or self.deleted:
            return _ACCEPTED
        self._log.sync_soon()
        return _PENDING

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
        count = self._ready
        for position in self._returned:
            self._log.settle(position)
        self._returned.clear()
        for position in range(self._cursor, self._log.end()):
            self._log.settle(position)
        self._cursor = self._log.end()
        self._ready = 0
        return count

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer after those of the same priority, and before lower ones."""
        at = len(self.consumers)
        while at and self.consumers[at - 1].priority < consumer.priority:
            at -= 1
        self.consumers.insert(at, consumer)
        self.had_consumers = True
        self._ranked = self.consumers[0].priority != self.consumers[-1].priority
        self.drain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            self._turn = 0
            self._ranked = bool(
                self.consumers and self.consumers[0].priority != self.consumers[-1].priority
            )

    def delete(self) -> int:
        """Tell the consumers, drop everything."""
        count = self._ready
        self.deleted = True
        consumers, self.consumers = self.consumers, []
        for consumer in consumers:
            consumer.queue_deleted()
        self._log.delete()
        self._returned.clear()
        self._ready = 0
        self.unacked = 0
        self.itself = ()
        return count

    def _serve(self, consumer: Consumer) -> int:
        """Hand the next ready message to a consumer that is ready."""
        if self._returned:
            position = heappop(self._returned)
            redelivered = True
        else:
            position = self._cursor
            self._cursor = position + 1
            redelivered = False
        self._ready -= 1
        message = self._log.read(position)
        assert message is not None, "a ready position has a record"
        if consumer.no_ack:
            consumer.deliver(message, NO_POSITION, redelivered)
            self._log.settle(position)
        else:
            self.unacked += 1
            consumer.deliver(message, position, redelivered)
        return 0

    def _next(self) -> tuple[int, bool]:
        """Take the next ready position, and whether it was delivered before."""
        self._ready -= 1
        if self._returned:
            return heappop(self._returned), True
        position = self._cursor
        self._cursor = position + 1
        return position, False

    def _pick(self) -> Consumer | None:
        """The consumer whose turn it is among those that are ready."""
        if self._ranked:
            return self._pick_ranked()
        count = len(self.consumers)
        turn = self._turn
        for _ in range(count):
            if turn >= count:
                turn = 0
            consumer = self.consumers[turn]
            turn += 1
            if consumer.ready():
                self._turn = turn
                return consumer
        return None

    def _pick_ranked(self) -> Consumer | None:
        """The first ready consumer in order of priority; it goes behind its equals."""
        for at, consumer in enumerate(self.consumers):
            if consumer.ready():
                last = at
                while (
                    last + 1 < len(self.consumers)
                    and self.consumers[last + 1].priority == consumer.priority
                ):
                    last += 1
                self.consumers.insert(last + 1, consumer)
                del self.consumers[at]
                return consumer
        return None
