"""Limits of unacknowledged deliveries: message.qos.

It counts the deliveries of class message on a session, or with `global` those of a connection, in
messages and in bytes. Both limits also apply to existing consumers.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.front.amqp_0_9_1.prefetch_window import TOO_LONG, Window
from harebell.front.common.unacked import Unacked
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue


class Credit(Window):
    """The limits of a session, or of a connection.

    Attributes:
        most: the limit of unacknowledged messages; 0 is no limit.
        out: the unacknowledged messages.
    """

    __slots__ = ("most", "out")

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self.out = 0

    @property
    def limited(self) -> bool:
        """True if an acknowledgement can permit another delivery."""
        return bool(self.most or self.size)

    def admits(self, queue: Queue) -> int:
        """True if the next message of a queue may be sent."""
        if self.most and self.out >= self.most:
            return TOO_LONG
        return super().admits(queue)


class CreditedUnacked(Unacked):
    """An unacknowledged delivery that counts.

    Args:
        against: the limits that it counts against.
        message: the delivered message.
        queue, consumer, position, tag: as for `Unacked`.
    """

    __slots__ = ("_byte_count", "_credits")

    def __init__(
        self,
        against: tuple[Credit, ...],
        message: Message,
        queue: Queue,
        consumer: Consumer,
        position: int,
        tag: int,
    ) -> None:
        super().__init__(queue, consumer, position, tag)
        self._credits = against
        self._byte_count = len(message.body)
        for credit in against:
            credit.out += 1
            credit.used += self._byte_count

    def _leave(self) -> None:
        against, self._credits = self._credits, ()
        for credit in against:
            credit.out -= 1
            credit.used -= self._byte_count

    def settle(self) -> int:
        """Acknowledge the delivery."""
        self._leave()
        return super().settle()

    def reject(self) -> int:
        """Reject the message without requeue."""
        self._leave()
        return super().reject()

    def requeue(self) -> int:
        """Requeue the message in its position."""
        self._leave()
        return super().requeue()

    def give_back(self) -> int:
        """Requeue the message without counting a failed delivery."""
        self._leave()
        return super().give_back()

    def time_out(self) -> int:
        """Requeue the message after the acknowledgement timeout."""
        self._leave()
        return super().time_out()
