"""A staged batch that is open in a queue.

    begin_batch       from now on no new message is ready
    stage             appends a row; messages of others come meanwhile by `publish`
    commit_batch      the batch is committed: rows and messages are ready
    roll_back_batch   the batch is refused: its rows are settled, the messages are ready

One batch is open at a time. What is hidden counts for the limits of the queue, and is seen by
consumers, from the moment on when it is ready. The message order keeps it behind a barrier.
"""

from __future__ import annotations

from harebell.base.message import Message


class OpenBatch:
    """What is hidden in one queue.

    Attributes:
        count: how many messages.
        octets: of their bodies.
        expires: whether one of them expires.
    """

    __slots__ = ("count", "expires", "octets")

    def __init__(self) -> None:
        self.count = 0
        self.octets = 0
        self.expires = False

    def add(self, message: Message) -> None:
        """Hide one more message."""
        self.count += 1
        self.octets += len(message.body)
        self.expires = self.expires or message.due > 0
