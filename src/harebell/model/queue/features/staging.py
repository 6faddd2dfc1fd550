"""A staged batch that is open in a queue.

    begin_batch       new messages are not ready from now on
    stage             append a row; other messages are published meanwhile
    commit_batch      make rows and other messages ready
    roll_back_batch   settle the rows, make the other messages ready

One batch is open at a time. Hidden messages count for the limits of the queue, and reach consumers,
only when they become ready. The message order keeps them behind a barrier.
"""

from __future__ import annotations

from harebell.base.message import Message


class OpenBatch:
    """The hidden messages of one queue.

    Attributes:
        count: the number of messages.
        byte_count: bytes of their bodies.
        expires: whether one of them has an expiry.
    """

    __slots__ = ("byte_count", "count", "expires")

    def __init__(self) -> None:
        self.count = 0
        self.byte_count = 0
        self.expires = False

    def add(self, message: Message) -> int:
        """Count one more hidden message."""
        self.count += 1
        self.byte_count += len(message.body)
        self.expires = self.expires or message.due > 0
        return 0

    def add_rows(self, count: int, byte_count: int) -> int:
        """Count more hidden messages, which do not expire, and the bytes of their bodies."""
        self.count += count
        self.byte_count += byte_count
        return 0
