"""What a queue has promised to a distributed transaction that is prepared.

Its commit has to work, whenever it comes: what it publishes is taken although the queue is full
meanwhile. And what it acknowledges stays out, after a restart too, until it is committed or rolled
back.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.model.queue.bounded import BoundedQueue


class PromisedQueue(BoundedQueue):
    """A queue whose messages have positions, and that keeps promises.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    def admit(self, message: Message) -> int:
        """Take a message that was promised room."""
        overflow = self._overflow
        if overflow is None:
            return self.publish(message)
        overflow.promised = True
        try:
            return self.publish(message)
        finally:
            overflow.promised = False

    def withhold(self, position: int) -> bool:
        """Let a message that was there before a restart be out; False when it is not there."""
        if self._read(position) is None or not self.hold(position):
            return False
        self.unacked += 1
        return True
