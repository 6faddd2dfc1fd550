"""A delivery that is not accepted, rejected or released yet."""

from __future__ import annotations

from harebell.base.c_types import C, Done, i64
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue


class Delivery:
    """A delivery of a session, kept under the number of its message.transfer.

    Args:
        queue: the queue of the message.
        consumer: the subscription that got it.
        position: its position in the queue's log.
        number: of the transfer.
        redelivered: whether it was marked as redelivered.
    """

    def __init__(
        self, queue: Queue, consumer: Consumer, position: i64, number: i64, redelivered: bool
    ) -> None:
        self.queue = queue
        self.consumer = consumer
        self.position = position
        self.number = number
        self.redelivered = redelivered

    @property
    def tag(self) -> int:
        """The number of the channel, as errors name it."""
        return self.number

    def count_ack(self) -> Done:
        """Count an acknowledgement for the session and queue."""
        self.consumer.details.ack += 1
        return 0

    def forget(self) -> None:
        """Release the credit of a delivery that now belongs to a branch."""
        self.consumer.released()

    def settle(self) -> Done:
        """Acknowledge the message."""
        self.queue.counters.ack += 1
        self.consumer.details.ack += 1
        self.consumer.released()
        return self.queue.settle(self.position)

    def reject(self) -> Done:
        """Reject the message without requeue."""
        self.consumer.released()
        return self.queue.reject(self.position)

    def requeue(self) -> Done:
        """Requeue the message as a failed delivery."""
        self.consumer.released()
        return self.queue.requeue(self.position)

    def time_out(self) -> Done:
        """Requeue the message after the acknowledgement timeout."""
        self.consumer.released()
        return self.queue.time_out(self.position)


def new_delivery(
    queue: Queue, consumer: Consumer, position: i64, number: i64, redelivered: bool
) -> C[Delivery]:
    """Make an entry without the cost of a Python call, for the hot path."""
    entry: Delivery = Delivery.__new__(Delivery)
    entry.queue = queue
    entry.consumer = consumer
    entry.position = position
    entry.number = number
    entry.redelivered = redelivered
    return entry
