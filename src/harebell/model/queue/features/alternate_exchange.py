"""The alternate exchange of a queue (AMQP 0-10): rejected messages, and the rest on deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message
from harebell.model.queue.contract import unrouted

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue.features.queue_internals import QueueInternals

ALTERNATE = "x-alternate-exchange"
"""The argument that names the exchange."""


def leaves_messages(queue: Queue) -> bool:
    """True if messages go to the alternate exchange when the queue is deleted now."""
    held = queue.ready_count() + queue.unacked + queue.leased + queue.delayed_count()
    return held > 0 and ALTERNATE in queue.arguments


class AlternateExchange:
    """The alternate exchange of one queue.

    Args:
        queue: whose messages go there.
        name: the name of the exchange, which need not exist.
    """

    def __init__(self, queue: QueueInternals, name: str) -> None:
        self._queue = queue
        self._name = name

    def send(self, message: Message) -> None:
        """Route a message through the exchange, unchanged."""
        context = self._queue.context
        if context is None:
            return
        router = context.router
        exchange = router.exchanges.get(self._name)
        mine: object = self._queue
        queues = () if exchange is None else router.route(exchange, message)
        if not queues:
            unrouted(message)
        for queue in queues:
            # A message that came back would never leave the queue.
            if queue is not mine:
                queue.take_over(message)

    def send_all(self) -> None:
        """Route all messages that are not settled: ready, delivered, leased or delayed."""
        order = self._queue.order
        quorum = self._queue.quorum
        handed_on = set() if quorum is None else quorum.handed_on()
        for level, each in order.levels():
            log = each.log
            position = log.first()
            while position < log.end():
                # Without levels `level_bits` and the level are 0.
                whole = position << order.level_bits | level
                # Dead letters in `handed_on` are in other queues already, and rows of an open batch
                # were never published.
                if whole not in handed_on and not each.has_row(position):
                    message = log.read(position)
                    if message is not None:
                        self.send(message)
                position = log.next(position + 1)
