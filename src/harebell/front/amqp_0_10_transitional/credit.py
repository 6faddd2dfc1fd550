"""Limits of unacknowledged deliveries: message.qos.

It counts the deliveries of class message on a session, or with `global` those of a connection, in
messages and in bytes. Both limits also apply to existing consumers.
"""

from __future__ import annotations

from harebell.front.amqp_0_9_1.prefetch_size_window import TOO_LONG, Window
from harebell.model.queue.contract import Queue


class Credit(Window):
    """The limits of a session, or of a connection.

    Attributes:
        limit: the limit of unacknowledged messages; 0 is no limit.
        out: the unacknowledged messages.
    """

    __slots__ = ("limit", "out")

    def __init__(self) -> None:
        super().__init__()
        self.limit = 0
        self.out = 0

    @property
    def limited(self) -> bool:
        """True if an acknowledgement can permit another delivery."""
        return bool(self.limit or self.size)

    def admits(self, queue: Queue) -> int:
        """True if the next message of a queue may be sent."""
        if self.limit and self.out >= self.limit:
            return TOO_LONG
        return super().admits(queue)

    def add(self, size: int) -> None:
        """Count a delivery of this many bytes."""
        super().add(size)
        self.out += 1

    def remove(self, size: int) -> None:
        """Stop counting a delivery of this many bytes."""
        super().remove(size)
        self.out -= 1
