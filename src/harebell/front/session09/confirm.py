"""confirm.select, and the confirms of one channel (RabbitMQ's extension, class 85).

Publishes are numbered from 1. What was accepted in one turn leaves as one basic.ack with
`multiple`; a message that a queue rejected leaves as basic.nack at once, after the acks of all
before it, so that numbers go out in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.session09.replies import soft
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel
    from harebell.front.session09.connection import Connection


class Confirms:
    """Numbers publishes and tells the publisher what became of them.

    Args:
        connection: where confirms are written.
        number: the channel's number.
    """

    __slots__ = ("_connection", "_number", "_waiting", "sent", "taken")

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self.taken = 0
        self.sent = 0
        self._waiting = False

    def published(self, rejected: int) -> int:
        """Another message was taken; `rejected` is not 0 when a queue refused it."""
        self.taken += 1
        if rejected:
            self.taken -= 1
            self.flush()
            self.taken += 1
            self.sent = self.taken
            nack = methods.BasicNack(delivery_tag=self.taken)
            self._connection.send(self._number, nack)
            return 0
        if not self._waiting:
            self._waiting = True
            self._connection.confirming.append(self)
        return 0

    def flush(self) -> int:
        """Write the acks that are due."""
        self._waiting = False
        if self.taken > self.sent:
            multiple = self.taken - self.sent > 1
            self.sent = self.taken
            self._connection.out.ack(self._number, self.taken, multiple)
            self._connection.touch()
        return 0


def select(channel: Channel, method: methods.ConfirmSelect) -> None:
    """confirm.select: confirm every publish from now on. Selecting twice changes nothing."""
    if channel.transaction is not None:
        raise soft(406, "cannot switch from tx to confirm mode", 85, 10)
    if channel.confirms is None:
        channel.confirms = Confirms(channel.connection, channel.number)
    if not method.nowait:
        channel.connection.send(channel.number, methods.ConfirmSelectOk())


HANDLERS = {methods.ConfirmSelect: select}
