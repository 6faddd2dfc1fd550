"""Messages that were routed and wait, in their order, until all of them take effect.

A staged batch is hundreds of thousands of rows that are checked and routed first, and published
together or not at all. What most of them need is done here, compiled: to be made, routed and kept.
Whoever gathers them does the rest, row by row.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.kernels.rows import Rows
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.kind import Queue
from harebell.model.router import Router


class Routed:
    """Messages and where they go.

    Attributes:
        plain: exchanges, by name, whose rows need nothing but to be routed.
        counts: by the name of an exchange, how many rows went to it.
        lost: messages that no queue gets.
    """

    def __init__(self) -> None:
        self.plain: dict[str, Exchange] = {}
        self.counts: dict[str, int] = {}
        self.lost: list[Message] = []
        self._messages: list[Message] = []
        self._queues: list[tuple[Queue, ...]] = []

    def __len__(self) -> int:
        return len(self._messages)

    def take(self, rows: Rows, first: int, router: Router) -> int:
        """Route rows from one on as long as they need nothing else.

        Args:
            rows: the rows of a piece.
            first: the first of them.
            router: of the vhost.

        Returns:
            The row that somebody else has to look at; behind the last if there is none.

        Raises:
            BatchError: a row cannot become a message.
        """
        row, end = first, rows.rows
        count = 0
        exchange: Exchange | None = None
        name = ""
        while row < end:
            message = rows.message(row)
            if exchange is None or message.exchange != name:
                self._count(name, count)
                count = 0
                name = message.exchange
                exchange = self.plain.get(name)
            if exchange is None or rows.properties.suspect:
                break
            self.keep(message, router.route(exchange, message))
            count += 1
            row += 1
        self._count(name, count)
        return row

    def _count(self, name: str, count: int) -> int:
        if count:
            self.counts[name] = self.counts.get(name, 0) + count
        return 0

    def keep(self, message: Message, queues: tuple[Queue, ...]) -> int:
        """A message that goes to these queues, or is lost without any."""
        if queues:
            self._messages.append(message)
            self._queues.append(queues)
        else:
            self.lost.append(message)
        return 0

    def has_room(self) -> bool:
        """Whether every queue would take what goes to it."""
        sizes: dict[Queue, list[int]] = {}
        last: tuple[Queue, ...] = ()
        for queues in self._queues:
            if queues is not last:
                last = queues
                for queue in queues:
                    if queue.may_refuse() and not queue.deleted:
                        sizes[queue] = []
        if not sizes:
            return True
        for message, queues in zip(self._messages, self._queues, strict=True):
            for queue in queues:
                if queue in sizes:
                    sizes[queue].append(len(message.body))
        return all(queue.has_room(octets) for queue, octets in sizes.items())

    def publish(self) -> int:
        """Hand every message to its queues; nothing is kept afterwards."""
        messages, self._messages = self._messages, []
        every, self._queues = self._queues, []
        for at in range(len(messages)):
            message = messages[at]
            for queue in every[at]:
                if not queue.deleted:
                    queue.publish(message)
        return 0
