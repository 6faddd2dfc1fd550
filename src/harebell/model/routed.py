"""Rows of a staged batch on their way: made, routed, and handed to queues that keep them back.

A batch may have millions of rows, so they come in slices, and nobody sees any of them before its
end. What most rows need is done here, compiled. Whoever publishes the batch does the rest.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.kernels.rows import Rows
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.limits import Incoming
from harebell.model.router import Router


class Routed:
    """The rows of one batch, and the queues that get them.

    Attributes:
        plain: exchanges, by name, whose rows need nothing but to be routed.
        counts: by the name of an exchange, how many rows went to it.
        lost: messages that no queue gets, until somebody takes them from here.
        queues: those that keep rows back.
    """

    def __init__(self) -> None:
        self.plain: dict[str, Exchange] = {}
        self.counts: dict[str, int] = {}
        self.lost: list[Message] = []
        self.queues: list[Queue] = []
        # What comes to queues that may refuse.
        self._incoming: dict[Queue, Incoming] = {}

    def take(self, rows: Rows, first: int, end: int, router: Router) -> int:
        """Route rows from one on as long as they need nothing else.

        Args:
            rows: the rows of a piece.
            first: the first of them.
            end: the row to stop at.
            router: of the vhost.

        Returns:
            The row that somebody else has to look at; `end` if there is none.

        Raises:
            BatchError: a row cannot become a message.
        """
        row = first
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
            self.put(message, router.route(exchange, message))
            count += 1
            row += 1
        self._count(name, count)
        return row

    def _count(self, name: str, count: int) -> int:
        if count:
            self.counts[name] = self.counts.get(name, 0) + count
        return 0

    def put(self, message: Message, queues: tuple[Queue, ...]) -> int:
        """A message goes to these queues, or is lost without any."""
        if not queues:
            self.lost.append(message)
        for queue in queues:
            if queue.deleted:
                continue
            if not queue.staging:
                self._begin_batch(queue)
            if self._incoming:
                incoming = self._incoming.get(queue)
                if incoming is not None:
                    incoming.add(len(message.body))
            queue.stage(message)
        return 0

    def _begin_batch(self, queue: Queue) -> int:
        queue.begin_batch()
        self.queues.append(queue)
        if queue.may_refuse():
            self._incoming[queue] = Incoming()
        return 0

    def has_room(self) -> bool:
        """Whether every queue takes what has come for it."""
        return all(
            queue.deleted or queue.has_room(incoming) for queue, incoming in self._incoming.items()
        )

    def commit_batch(self) -> int:
        """The batch is committed: everybody may see its rows."""
        queues, self.queues = self.queues, []
        for queue in queues:
            if not queue.deleted:
                queue.commit_batch()
        return 0

    def roll_back_batch(self) -> int:
        """The batch is refused: its rows go."""
        queues, self.queues = self.queues, []
        for queue in queues:
            if not queue.deleted:
                queue.roll_back_batch()
        return 0
