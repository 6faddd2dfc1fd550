"""The classic queue: first in, first out, each message to one consumer, over one log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.queue.kind import ACCEPTED, PENDING
from harebell.model.queue.spans import Span, span_of
from harebell.model.queue.staging import StagingQueue
from harebell.model.queue.staging_order import StagingOrder


class ClassicQueue(StagingQueue):
    """A log and its ready order.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept; what is in it is ready.
        **options: as for `Queue`.
    """

    KIND = "classic"

    def __init__(self, name: str, vhost: str, log: Log, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._order = StagingOrder(log, self.durable)
        self._found(self._order.count)

    def _order_for(self, message: Message) -> StagingOrder:
        return self._order

    def _keep(self, message: Message) -> int:
        return self._order.keep(message)

    def _hand_over(self, message: Message) -> int:
        return self._order.hand_over(message)

    def _take(self) -> Message | None:
        order = self._order
        message = order.take()
        self._ready = order.count
        self._position = order.position
        self._again = order.again
        if self._retry is not None and message is not None and order.again:
            return self._counted(message)
        return message

    def _is_far(self) -> bool:
        return self._order.far() >= 0

    def _fetch(self, done: Callable[[], object]) -> int:
        self._order.log.fetch(self._order.far(), done)
        return 0

    def _skip(self) -> int:
        self._position = self._order.skip()
        self._ready = self._order.count
        return 0

    def _peek(self) -> Message | None:
        message = self._order.peek()
        self._ready = self._order.count
        return message

    def _read(self, position: int) -> Message | None:
        return self._order.log.read(position)

    def _drop(self, position: int) -> int:
        return self._order.log.settle(position)

    def _put_back(self, position: int) -> int:
        self._order.put_back(position)
        self._ready = self._order.count
        return 0

    def _look(self, cursors: list[int]) -> int:
        return self._order.look(cursors[0])

    def _pass(self, cursors: list[int], position: int) -> int:
        cursors[0] = position + 1
        return 0

    def _was_out(self, position: int) -> bool:
        return self._order.was_out(position)

    def _take_out(self, position: int) -> bool:
        out = self._order.take_out(position)
        self._again = self._order.again
        self._ready -= out
        return out

    def _untouched(self, position: int) -> int:
        return self._order.untouched(position)

    def _levels(self) -> list[tuple[int, StagingOrder]]:
        return [(0, self._order)]

    def _recount(self) -> int:
        self._ready = self._order.count
        return 0

    def span(self, moment: int) -> Span:
        """What its log has."""
        return span_of(self._order.log, self._order.end(), moment, self._order.hidden)

    def pour(self, first: int, end: int, into: BatchBuilder) -> int:
        """What is in its log, delivered or not."""
        log = self._order.log
        self._order.mark(into)
        return log.pour(first, min(end, self._order.end()), into)

    def next_position(self, message: Message) -> int:
        """Messages stand in their log one after the other."""
        return self._order.log.end()

    def failures(self, position: int) -> int:
        """The count of a message in its log."""
        return self._order.log.count(position)

    def set_failures(self, position: int, count: int) -> int:
        """Remember the count of a message in its log."""
        return self._order.log.set_count(position, count)

    def failed_ones(self) -> list[int]:
        """The positions of messages with failed deliveries."""
        return self._order.log.counted()

    def holds(self, position: int) -> bool:
        """Whether it is not settled."""
        return self._order.log.next(position) == position

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before the restart."""
        held = self._order.hold(position)
        self._ready = self._order.count
        return held

    def _drop_ready(self) -> int:
        self._order.purge()
        return 0

    def _drop_all(self) -> int:
        return self._order.delete()

    def sync_soon(self) -> int:
        """What was settled here shall be part of the next commit."""
        if not self.durable or self.deleted:
            return ACCEPTED
        self._order.log.sync_soon()
        return PENDING
