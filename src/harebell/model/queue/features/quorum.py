"""The quorum queue on one node: delivery limit, and dead-lettering at least once.

There is one copy, as there is one node. The other properties of quorum queues are here: failed
deliveries are counted, and a message above the delivery limit is dead-lettered or dropped; with the
strategy at-least-once a dead letter is removed only when its new queues have it on disk; and some
operations are refused. The message order is `order.counted`, and all messages are stored, whatever
their delivery mode (`MessageQueue.publish`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import Done, i32, i64
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.model.dead_letter import DELIVERY_LIMIT as OVER_THE_LIMIT
from harebell.model.dead_letter import GONE, NOWHERE
from harebell.model.limits import DEAD_LETTERS_PER_TICK, DELIVERY_LIMIT
from harebell.model.queue.contract import PENDING, REJECTED
from harebell.model.queue.features.failure_counts import FAILURES, with_failures
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.resource import rendered

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals
    from harebell.model.remark import Remark

NO_LIMIT = -1
_FAILURES: i32 = FAILURES


class Quorum:
    """The part of a quorum queue.

    Args:
        queue: the queue whose deliveries are counted.
        commit: the group commit of the store.
    """

    def __init__(self, queue: QueueInternals, commit: Commit) -> None:
        self._queue = queue
        self._order: MessageOrder = queue.order
        self._commit = commit
        self._limit: i64 = DELIVERY_LIMIT
        self._at_least_once = False
        # Positions of dead letters that other queues took, with the commit they wait for.
        self._leaving: deque[tuple[int, int]] = deque()
        # Positions of dead letters that no queue took.
        self._stuck: deque[tuple[int, str, set[str], int, Remark | None]] = deque()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set the delivery limit and the dead-letter strategy."""
        # Any negative limit means no limit, as in RabbitMQ.
        self._limit = max(settings.get("delivery-limit", DELIVERY_LIMIT), NO_LIMIT)
        # As in RabbitMQ, at-least-once requires a queue that does not drop its head.
        self._at_least_once = (
            settings.get("dead-letter-strategy") == "at-least-once"
            and settings.get("overflow") == "reject-publish"
        )

    # --- failed deliveries ----------------------------------------------------------------------

    def requeue(self, position: i64, failed: bool) -> Done:
        """Count a delivery that ended, and make its message ready, delayed or dead.

        Args:
            position: the position of the message, which is no longer unacknowledged.
            failed: whether the delivery failed; False if the client says that it did not.
        """
        queue = self._queue
        count: i32 = self._order.delivery_count(position) + 1
        failures: i32 = count & _FAILURES
        if self._limit != NO_LIMIT and failures > self._limit:
            if queue.keyed is not None:
                queue.keyed.keys.release(position)
            # Before the log forgets the count.
            if queue.failures is not None:
                queue.failures.end(position)
            self.dead_letter(position, OVER_THE_LIMIT)
            return 0
        if failures:
            # The log cannot store a higher count.
            self._order.set_delivery_count(position, count)
        if queue.retry is None or not queue.retry.requeued(position, failures, failed=failed):
            queue.restore(position, True)
        return 0

    # --- dead-lettering at least once -----------------------------------------------------------

    def dead_letter(self, position: i64, reason: str, remark: Remark | None = None) -> Done:
        """Dead-letter a message; it stays in the log until other queues have stored it."""
        queue = self._queue
        replaced: bool = queue.values is not None and queue.values.is_outdated(position)
        if queue.dead_letters is None or replaced:
            self._order.settle(position)
        elif self._at_least_once:
            queue.dead_letters.count(reason)
            self._send(position, reason, set(), 0, remark)
        else:
            message: Message | None = self._order.read(position)
            if message is not None:
                message = with_failures(message, self._order, position)
                queue.dead_letters.send(message, reason, None, remark)
                self._order.settle(position)
        return 0

    def _send(
        self, position: i64, reason: str, taken: set[str], ticket: i64, remark: Remark | None
    ) -> Done:
        """Send a dead letter to the queues that have not taken it yet.

        Args:
            position: the position of the message.
            reason: why it is dead-lettered.
            taken: the names of the queues that have taken it.
            ticket: the commit of their last copy; 0 if none waits for a commit.
            remark: what the consumer says that has rejected it.
        """
        queue = self._queue
        message: Message | None = self._order.read(position)
        if message is None:
            return 0
        if queue.dead_letters is None:
            self._order.settle(position)
            return 0
        message = with_failures(message, self._order, position)
        outcome: i32 = queue.dead_letters.send(message, reason, taken, remark)
        if outcome & PENDING:
            # The copies are gathered by this commit: settled earlier, a crash would lose both.
            ticket = self._commit.ticket
        if outcome & (GONE | NOWHERE | REJECTED) and self._at_least_once:
            # `tick` tries again. `taken` keeps queues that have a copy from getting another one.
            self._stuck.append((position, reason, taken, ticket, remark))
        elif ticket > self._commit.done:
            # No publisher waits for this commit, which would otherwise come at its own time.
            self._commit.urgent = True
            self._leaving.append((ticket, position))
        else:
            self._order.settle(position)
            queue.dead_letters.confirm()
        return 0

    def tick(self) -> None:
        """Settle dead letters that are stored elsewhere, and resend those that no queue took."""
        while self._leaving and self._leaving[0][0] <= self._commit.done:
            self._order.settle(self._leaving.popleft()[1])
            if self._queue.dead_letters is not None:
                self._queue.dead_letters.confirm()
        for _ in range(min(len(self._stuck), DEAD_LETTERS_PER_TICK)):
            position, reason, taken, ticket, remark = self._stuck.popleft()
            self._send(position, reason, taken, ticket, remark)
            if self._queue.work.charge(1):
                return

    def handed_on(self) -> set[int]:
        """Return the positions of dead letters that other queues took but have not stored."""
        return {position for _, position in self._leaving}

    def clear(self) -> None:
        """Forget the dead letters of a deleted queue."""
        self._leaving.clear()
        self._stuck.clear()

    # --- refused as in RabbitMQ -----------------------------------------------------------------

    def check_get(self) -> None:
        """Refuse basic.get if the queue serves a single active consumer."""
        if self._queue.single:
            raise Refusal(
                ErrorKind.RESOURCE_LOCKED,
                f"cannot obtain access to locked {self._resource()}. basic.get operations are not "
                "supported by quorum queues with single active consumer",
            )

    def check_prefetch_global(self) -> None:
        """Refuse one prefetch limit for a whole channel."""
        raise Refusal(ErrorKind.NOT_IMPLEMENTED, f"{self._resource()} does not support global qos")

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Refuse conditions of queue.delete."""
        for condition, asked in (("if-unused", if_unused), ("if-empty", if_empty)):
            if asked:
                raise Refusal(
                    ErrorKind.NOT_IMPLEMENTED,
                    f"cannot delete {self._resource()}. queue.delete operations with {condition} "
                    "flag set are not supported by quorum queues",
                )

    def _resource(self) -> str:
        return rendered("queue", self._queue.name, self._queue.vhost)
