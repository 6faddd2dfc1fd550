"""Route the rows of a staged batch, and append them hidden to their queues.

A batch may have millions of rows, so they are routed in slices, and are hidden until the batch
ends. This module is compiled and does what most rows need; the front handles all others.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i64, isize
from harebell.base.message import Message
from harebell.kernels.rows import Rows
from harebell.model.exchange.kind import Exchange
from harebell.model.feedback import Feedback, feedback_of, routed_now
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.limits import Incoming
from harebell.model.router import Router


class Routed:
    """The rows of one batch, and their queues.

    Attributes:
        plain: exchanges, by name, whose rows only have to be routed.
        counts: the number of rows by exchange name.
        single: the number of rows that were appended one by one.
        lost: unroutable messages; the caller removes them.
        queues: the queues with hidden rows.
    """

    def __init__(self) -> None:
        self.plain: dict[str, Exchange] = {}
        self.counts: dict[str, int] = {}
        self.single: i64 = 0
        self.lost: list[Message] = []
        self.queues: list[Queue] = []
        # Messages for queues that may refuse them.
        self._incoming: dict[Queue, Incoming] = {}
        # What exchanges hear at the end of the batch, by exchange and value, and its message.
        self._staged: dict[tuple[int, bytes], tuple[Feedback, Message]] = {}

    def take(self, rows: Rows, first: isize, end: isize, router: Router) -> isize:
        """Route rows from one on, until one needs more than routing.

        Args:
            rows: the rows of a piece.
            first: the first row.
            end: the row to stop at.
            router: the router of the vhost.

        Returns:
            The row that the caller has to handle; `end` if there is none.

        Raises:
            BatchError: a row cannot become a message.
        """
        row: isize = first
        count: isize = 0
        exchange: Exchange | None = None
        name: str = ""
        while row < end:
            message: Message = rows.message(row)
            if exchange is None or message.exchange != name:
                self._count(name, count)
                count = 0
                name = message.exchange
                exchange = self.plain.get(name)
            if exchange is None or rows.properties.suspect:
                break
            found: tuple[Queue, ...] = router.route(exchange, message)
            behind: isize = row + 1
            # Rows that differ in their bodies only go the same way, if the routing key alone
            # decides.
            if found and router.same_for(exchange, message.routing_key):
                behind = rows.same_until(row, end)
            if behind == row + 1:
                self.put(message, found)
            else:
                if len(found) > 1:
                    # `route` has charged for the first of these rows.
                    router.work.charge(len(found) * (behind - row - 1))
                self._put_rows(rows, row, behind, message, found)
            exchange.routed += len(found) * (behind - row)
            count += behind - row
            row = behind
        self._count(name, count)
        return row

    def _count(self, name: str, count: isize) -> Done:
        if count:
            self.counts[name] = self.counts.get(name, 0) + count
        return 0

    def put(self, message: Message, queues: tuple[Queue, ...]) -> C[tuple[Queue, ...]]:
        """Append a message to these queues, or note that it is unroutable.

        Returns:
            Its queues: others if a row before it has made it a duplicate, which is counted here.
        """
        self.single += 1
        if message.once is not None:
            queues = self._stage_feedback(message, queues)
        if not queues:
            self.lost.append(message)
        queue: Queue
        for queue in queues:
            # A batch takes many turns: a queue may be deleted after a row was routed to it.
            if queue.deleted:
                continue
            if not queue.staging:
                self._begin_batch(queue)
            if self._incoming:
                incoming: Incoming | None = self._incoming.get(queue)
                if incoming is not None:
                    incoming.add(len(message.body))
            queue.stage(message)
        return queues

    def _stage_feedback(self, message: Message, queues: tuple[Queue, ...]) -> C[tuple[Queue, ...]]:
        """Have exchanges hear of a row at the end of the batch; return its queues."""
        queues = routed_now(message, queues, self._staged)
        for feedback in feedback_of(message):
            if feedback.stage(message):
                self._staged[feedback.same] = feedback, message
        message.once = None
        return queues

    def _put_rows(
        self, rows: Rows, first: isize, end: isize, like: Message, queues: tuple[Queue, ...]
    ) -> Done:
        """Append rows that differ in their bodies only to these queues.

        Args:
            rows: the rows of a piece.
            first: the first row.
            end: the row behind the last.
            like: the message of the first row.
            queues: the queues that all of the rows are routed to.
        """
        queue: Queue
        for queue in queues:
            if queue.deleted:
                continue
            if not queue.staging:
                self._begin_batch(queue)
            if self._incoming:
                incoming: Incoming | None = self._incoming.get(queue)
                if incoming is not None:
                    last = rows.body_bytes(end - 1, end)
                    incoming.add_rows(end - first, rows.body_bytes(first, end), last)
            queue.stage_rows(rows, first, end, like)
        return 0

    def _begin_batch(self, queue: Queue) -> Done:
        queue.begin_batch()
        self.queues.append(queue)
        if queue.may_refuse():
            self._incoming[queue] = Incoming()
        return 0

    def has_room(self) -> bool:
        """True if every queue takes all its messages."""
        return all(
            queue.deleted or queue.has_room(incoming) for queue, incoming in self._incoming.items()
        )

    def commit_batch(self) -> Done:
        """Commit the batch: make its rows ready in all queues."""
        queues, self.queues = self.queues, []
        queue: Queue
        for queue in queues:
            if not queue.deleted:
                queue.commit_batch()
        return self._end_feedback(True)

    def roll_back_batch(self) -> Done:
        """Roll back the batch: remove its rows from all queues."""
        queues, self.queues = self.queues, []
        queue: Queue
        for queue in queues:
            if not queue.deleted:
                queue.roll_back_batch()
        return self._end_feedback(False)

    def _end_feedback(self, committed: bool) -> Done:
        """Tell exchanges what has become of their rows."""
        ended, self._staged = self._staged, {}
        for feedback, message in ended.values():
            feedback.end_batch(message, committed)
        return 0
