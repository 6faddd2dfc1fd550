"""Failed deliveries of the messages of one queue: shown to consumers, and counted at the end.

    count of a position in the log   delayed rejections << 16 | failed deliveries
    x-delivery-count                 the sum of both, and what the message came with: a dead letter
                                     has the failed deliveries of the queues where it died
    histogram                        messages that have left, by that sum

A quorum queue has this part, and a queue with retry delays. Any other has one only from its first
failed delivery on that is counted (`MessageQueue.requeue_failed`), and no histogram.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i32, i64
from harebell.base.histogram import DELIVERY_COUNTS, Histogram
from harebell.base.message import Message, copy_message
from harebell.model.queue.order.contract import MessageOrder

REJECTIONS_SHIFT = 16
FAILURES = (1 << REJECTIONS_SHIFT) - 1
_FAILURES: i32 = FAILURES
_REJECTIONS_SHIFT: i32 = REJECTIONS_SHIFT


def with_failures(message: Message, order: MessageOrder, position: i64) -> C[Message]:
    """Return a message with its failed deliveries here added to those of the queues before."""
    count: i32 = order.delivery_count(position)
    count = (count & _FAILURES) + (count >> _REJECTIONS_SHIFT)
    if count:
        # Other queues may hold the same object, so it is copied.
        message = copy_message(message, message.exchange, message.routing_key)
        message.deliveries += count
    return message


class FailureCounts:
    """The failed deliveries in one queue.

    Args:
        order: the message order of the queue, which keeps the count of each message.
    """

    def __init__(self, order: MessageOrder) -> None:
        self._order = order
        # Messages that left without a failed delivery, and the counts of the others.
        self._at_first: i64 = 0
        self._failed: Histogram | None = None

    def shown(self, message: Message) -> C[Message]:
        """Return the message that was just taken with its delivery count."""
        order = self._order
        if not order.redelivered:
            return message
        return with_failures(message, order, order.position)

    def add(self, position: i64) -> Done:
        """Count a failed delivery of a message."""
        count: i32 = self._order.delivery_count(position)
        # The log cannot store a higher count.
        if count & _FAILURES < _FAILURES:
            self._order.set_delivery_count(position, count + 1)
        return 0

    def end(self, position: i64) -> Done:
        """Count the failed deliveries of a message that leaves, before the log forgets them."""
        count: i32 = self._order.delivery_count(position)
        if count == 0:
            self._at_first += 1
        else:
            if self._failed is None:
                self._failed = Histogram(DELIVERY_COUNTS)
            self._failed.observe((count & _FAILURES) + (count >> _REJECTIONS_SHIFT))
        return 0

    def histogram(self) -> Histogram:
        """Return the failed deliveries of messages that have left."""
        counts = Histogram(DELIVERY_COUNTS)
        counts.counts[0] = self._at_first
        if self._failed is not None:
            counts.add(self._failed)
        return counts
