"""A delivery that has not been acknowledged yet."""

from __future__ import annotations

from harebell.base.counters import Counters
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue


class Unacked:
    """One entry of a channel's unacknowledged deliveries, kept under its delivery tag.

    Args:
        queue: the queue of the message.
        consumer: its consumer; None for basic.get.
        position: its position in the queue's log.
        tag: its delivery tag.
    """

    __slots__ = ("consumer", "position", "queue", "tag")

    def __init__(self, queue: Queue, consumer: Consumer | None, position: int, tag: int) -> None:
        self.queue = queue
        self.consumer = consumer
        self.position = position
        self.tag = tag

    def count_ack(self) -> int:
        """Count an acknowledgement for the channel and queue."""
        if self.consumer is not None:
            self.consumer.details.ack += 1
        return 0

    def forget(self) -> None:
        """Release the consumer's credit: the message is delivered again under another tag."""
        if self.consumer is not None:
            self.consumer.released()

    def settle(self) -> int:
        """Acknowledge the delivery."""
        # Counted here and not in the queue, which settles messages without an acknowledgement, too.
        self.queue.counters.ack += 1
        if self.consumer is not None:
            self.consumer.details.ack += 1
            self.consumer.released()
        return self.queue.settle(self.position)

    def reject(self) -> int:
        """Reject the message without requeue."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.reject(self.position)

    def requeue(self) -> int:
        """Requeue the message in its position; the caller drains the queue."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.requeue(self.position)

    def requeue_returned(self) -> int:
        """Requeue the message without counting a failed delivery."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.requeue_returned(self.position)

    def time_out(self) -> int:
        """Requeue the message after the acknowledgement timeout."""
        if self.consumer is not None:
            self.consumer.released()
        return self.queue.time_out(self.position)


class UnackedGet(Unacked):
    """A message that was taken with basic.get, and is not acknowledged.

    Args:
        queue, position, tag: as for `Unacked`.
        details: the counters of the channel and queue.
    """

    __slots__ = ("details",)

    def __init__(self, queue: Queue, position: int, tag: int, details: Counters) -> None:
        super().__init__(queue, None, position, tag)
        self.details = details

    def count_ack(self) -> int:
        """Count an acknowledgement for the channel and queue."""
        self.details.ack += 1
        return 0

    def settle(self) -> int:
        """Acknowledge the message."""
        self.details.ack += 1
        # Cython has no `super()` without arguments in a method that C calls.
        return Unacked.settle(self)


def new_unacked(queue: Queue, consumer: Consumer | None, position: int, tag: int) -> Unacked:
    """Make an entry without the cost of a Python call, for the hot path."""
    entry = Unacked.__new__(Unacked)
    entry.queue = queue
    entry.consumer = consumer
    entry.position = position
    entry.tag = tag
    return entry
