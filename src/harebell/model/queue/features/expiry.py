"""Message expiry: per-queue and per-message TTL.

Expired messages are removed, and dead-lettered, at the head of the queue only, as in RabbitMQ.
Expiry uses a monotonic clock. A queue has this part from its first message with an expiration on,
or while a message TTL is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message, copy_message
from harebell.base.timers import NEVER, Timer

if TYPE_CHECKING:
    from harebell.model.queue.features.host import Host

FOR_EVER = -1


class Expiry:
    """The expiry of one queue.

    Args:
        queue: whose messages expire.

    Attributes:
        ttl: message TTL in milliseconds; -1 for none.
        active: whether messages with an expiry may be ready, delivered or leased.
        mixed: whether a later message may expire before the first one.
    """

    __slots__ = ("_queue", "_timer", "active", "mixed", "ttl")

    def __init__(self, queue: Host) -> None:
        self._queue = queue
        self._timer: Timer | None = None
        self.ttl = FOR_EVER
        self.active = False
        self.mixed = False

    def found(self) -> int:
        """Note that the queue was restored with messages, which may expire."""
        self.active = self.mixed = True
        return 0

    def use_ttl(self, ttl: int) -> int:
        """Set the TTL of messages that are published from now on."""
        # Messages in the queue keep their expiry, so the oldest need not be the first to expire.
        self.mixed = self.mixed or ttl != self.ttl
        self.ttl = ttl
        return 0

    def dated(self, message: Message, now: int) -> Message:
        """Return a copy that expires by the TTL, or earlier by its own property `expiration`."""
        due = now + self.ttl
        if message.due:
            self.mixed = True
            due = min(due, message.due)
        # Other queues, with other TTLs, may get the same object.
        message = copy_message(message, message.exchange, message.routing_key)
        message.due = due
        return message

    def came_back(self) -> int:
        """Note that an older message is ready again than the one the timer is set for."""
        self.mixed = self.mixed or self.active
        return 0

    def kept(self) -> int:
        """Note that a message with an expiry is in the queue."""
        self.active = True
        self.mixed = self.mixed or self.ttl < 0
        return 0

    def wake_at(self, due: int) -> int:
        """Check the head of the queue at that time at the latest."""
        context = self._queue.context
        if self._timer is None and context is not None:
            self._timer = context.timers.timer(self._queue.expire)
        if self._timer is not None:
            self._timer.set_earlier(due)
        return 0

    def sees_head(self) -> bool:
        """True if a new head of the queue has to be checked.

        With one TTL for all messages the new head expires later than the one that the timer was set
        for.
        """
        return self.mixed or self._timer is None or self._timer.due == NEVER

    def stop(self) -> int:
        """Stop the timer of a deleted queue."""
        if self._timer is not None:
            self._timer.stop()
        return 0
