"""Message expiry: per-queue and per-message TTL.

Expired messages are removed, and dead-lettered, at the head of the queue only, as in RabbitMQ.
Expiry uses a monotonic clock. A queue has this part from its first message with an expiration on,
or while a message TTL is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, Py, i64
from harebell.base.message import Message, copy_message
from harebell.base.timers import Timer

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals

FOR_EVER = -1


class Expiry:
    """The expiry of one queue.

    Args:
        queue: whose messages expire.

    Attributes:
        ttl: TTL in milliseconds of messages that are published from now on; -1 for none.
        active: whether messages with an expiry may be ready, delivered or leased.
    """

    def __init__(self, queue: QueueInternals) -> None:
        self._queue: Py[QueueInternals] = queue
        self._timer: Timer | None = None
        self.ttl: i64 = FOR_EVER
        self.active = False

    def dated(self, message: Message, now: i64) -> C[Message]:
        """Return a copy that expires by the TTL, or earlier by its own property `expiration`."""
        due: i64 = now + self.ttl
        if message.due:
            due = min(due, message.due)
        # Other queues, with other TTLs, may get the same object.
        message = copy_message(message, message.exchange, message.routing_key)
        message.due = due
        return message

    def wake_at(self, due: i64) -> Done:
        """Check the head of the queue at that time at the latest."""
        context = self._queue.context
        if self._timer is None and context is not None:
            self._timer = context.timers.timer(self._queue.expire)
        if self._timer is not None:
            self._timer.set_earlier(due)
        return 0

    def stop(self) -> Done:
        """Stop the timer of a deleted queue."""
        if self._timer is not None:
            self._timer.stop()
        return 0
