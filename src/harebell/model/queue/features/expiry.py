"""Message expiry: per-queue and per-message TTL.

Expired messages leave at the head of the queue only, as in RabbitMQ, and dead letters of them are
sent then. Expiry uses a monotonic clock. A queue has this part from the first message on that can
expire, or while a message TTL is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message, copy_message
from harebell.base.timers import NEVER, Timer

if TYPE_CHECKING:
    from harebell.model.queue.features.host import Host

FOR_EVER = -1


class Expiry:
    """What one queue knows of the times of its messages.

    Args:
        queue: the queue.

    Attributes:
        ttl: milliseconds that messages of the queue live; -1 for ever.
        active: whether messages that expire may be ready, delivered or leased.
        mixed: whether the first message need not be the first to expire.
    """

    __slots__ = ("_queue", "_timer", "active", "mixed", "ttl")

    def __init__(self, queue: Host) -> None:
        self._queue = queue
        self._timer: Timer | None = None
        self.ttl = FOR_EVER
        self.active = False
        self.mixed = False

    def found(self) -> int:
        """Messages were there from the start, and may expire."""
        self.active = self.mixed = True
        return 0

    def use_ttl(self, ttl: int) -> int:
        """Set the time for messages that are published from now on."""
        # Messages that are here keep their time, so the oldest need not be the first to expire.
        self.mixed = self.mixed or ttl != self.ttl
        self.ttl = ttl
        return 0

    def dated(self, message: Message, now: int) -> Message:
        """Return a copy that expires with the TTL of the queue, or earlier by its own property."""
        due = now + self.ttl
        if message.due:
            self.mixed = True
            due = min(due, message.due)
        # Other queues, with other times, may get the same object.
        message = copy_message(message, message.exchange, message.routing_key)
        message.due = due
        return message

    def came_back(self) -> int:
        """A message is ready again that is older than the one that the timer was set for."""
        self.mixed = self.mixed or self.active
        return 0

    def kept(self) -> int:
        """A message that expires was put into the queue."""
        self.active = True
        self.mixed = self.mixed or self.ttl < 0
        return 0

    def wake_at(self, due: int) -> int:
        """Look at the head of the queue at that time, or earlier."""
        context = self._queue.context
        if self._timer is None and context is not None:
            self._timer = context.timers.timer(self._queue.expire)
        if self._timer is not None:
            self._timer.set_earlier(due)
        return 0

    def sees_head(self) -> bool:
        """Return whether a new head of the queue has to be looked at.

        Where all messages live equally long, the new head expires later than the one that the
        timer was set for.
        """
        return self.mixed or self._timer is None or self._timer.due == NEVER

    def stop(self) -> int:
        """Stop the timer of a deleted queue."""
        if self._timer is not None:
            self._timer.stop()
        return 0
