"""The quorum queue, on one node: everything in it is durable, and failed deliveries are counted.

There is one copy, for there is one node. What clients of quorum queues count on besides is here:
every message is kept on disk whatever its delivery-mode; a message whose delivery fails goes out
again before those that wait, with its count in `x-delivery-count`; when the count exceeds the
limit it is dead-lettered or dropped. With the strategy at-least-once a dead message leaves only
when its new queues have it on disk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import DEAD_LETTERS_PER_TICK, DELIVERY_LIMIT
from harebell.base.message import Message
from harebell.base.ports import Commit, Log
from harebell.model.dead_letter import DELIVERY_LIMIT as OVER_THE_LIMIT
from harebell.model.dead_letter import NOWHERE
from harebell.model.queue.key_leases import KeyLeasedQueue
from harebell.model.queue.kind import PENDING, REJECTED
from harebell.model.queue.leased import Run
from harebell.model.queue.overflow import Incoming, Overflow
from harebell.model.queue.retry import FAILURES
from harebell.model.resource import rendered

NO_LIMIT = -1
_FAILURES = FAILURES


class QuorumQueue(KeyLeasedQueue):
    """A classic queue that counts, and keeps everything.

    Args:
        name: its name.
        vhost: the name of its vhost.
        log: where its messages are kept; what is in it is ready.
        commit: of the store.
        **options: as for `Queue`.
    """

    KIND = "quorum"
    LASTING = True
    TICKS = True
    LETTERS_REFUSED = False
    PREEMPTS = True

    def __init__(self, name: str, vhost: str, log: Log, commit: Commit, **options: Any) -> None:
        super().__init__(name, vhost, log, **options)
        self._limit = DELIVERY_LIMIT
        self._at_least_once = False
        self._commit = commit
        self._returned: deque[int] = deque()
        # The same in the order of the log, made when somebody looks for something in it.
        self._back: list[int] | None = None
        self._leaving: deque[tuple[int, int]] = deque()
        self._stuck: deque[tuple[int, str, set[str], int]] = deque()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take the limit of deliveries, and how dead letters leave."""
        super().configure(settings)
        self._limit = max(settings.get("delivery-limit", DELIVERY_LIMIT), NO_LIMIT)
        # RabbitMQ gives the stronger promise only to a queue that does not drop its head either.
        self._at_least_once = (
            settings.get("dead-letter-strategy") == "at-least-once"
            and settings.get("overflow") == "reject-publish"
        )

    def declared(self) -> None:
        """A quorum queue that is declared again is not used by that, as with RabbitMQ."""

    # --- failed deliveries ----------------------------------------------------------------------

    def requeue(self, position: int) -> int:
        """A delivery failed: the message goes out again, unless that was once too often."""
        return self._return(position, True)

    def give_back(self, position: int) -> int:
        """The same, where the client says that nothing failed; it counts all the same."""
        return self._return(position, False)

    def _return(self, position: int, failed: bool) -> int:
        if self.deleted:
            return 0
        self.unacked -= 1
        log = self._order.log
        count = log.count(position) + 1
        failures = count & _FAILURES
        if self._limit != NO_LIMIT and failures > self._limit:
            if self._groups is not None:
                self._groups.release(position)
            self._bury(position, OVER_THE_LIMIT)
            return 0
        if failures:
            # It counts no further than it can.
            log.set_count(position, count)
        if self._retry is None or not self._retry.given_back(position, failures, failed=failed):
            self._put_back(position)
            if self._overflow is not None:
                self._came_back(self._overflow, position)
        return 0

    def _put_back(self, position: int) -> int:
        if self._groups is not None:
            return KeyLeasedQueue._put_back(self, position)  # noqa: SLF001  # as for any key
        self._returned.append(position)
        self._back = None
        self._ready += 1
        return 0

    def _take(self) -> Message | None:
        if self._groups is not None:
            return KeyLeasedQueue._take(self)  # noqa: SLF001  # as for any key
        order = self._order
        while self._returned:
            position = self._returned.popleft()
            self._back = None
            self._ready -= 1
            message = order.log.read(position)
            if message is not None:
                self._position = position
                self._again = True
                return self._counted(message)
        message = order.take()
        self._ready = order.count
        self._position = order.position
        self._again = order.again
        if message is not None and self._again:
            return self._counted(message)
        return message

    def _peek(self) -> Message | None:
        if self._groups is not None:
            return KeyLeasedQueue._peek(self)  # noqa: SLF001  # as for any key
        order = self._order
        while self._returned:
            message = order.log.read(self._returned[0])
            if message is not None:
                return message
            self._returned.popleft()
            self._back = None
            self._ready -= 1
        message = order.peek()
        self._ready = order.count
        return message

    # --- browsers -------------------------------------------------------------------------------

    def _look(self, cursors: list[int]) -> int:
        found = KeyLeasedQueue._look(self, cursors)  # noqa: SLF001  # what was never delivered
        if self._returned:
            if self._back is None:
                self._back = sorted(self._returned)
            at = bisect_left(self._back, cursors[0])
            if at < len(self._back) and (found < 0 or self._back[at] < found):
                return self._back[at]
        return found

    def _was_out(self, position: int) -> bool:
        if position in self._returned:
            return True
        return KeyLeasedQueue._was_out(self, position)  # noqa: SLF001  # what was never delivered

    def _take_out(self, position: int) -> bool:
        if position in self._returned:
            self._returned.remove(position)
            self._back = None
            self._ready -= 1
            return True
        out = self._order.take_out(position)
        self._ready -= out
        return out

    def _untouched(self, position: int) -> int:
        """What came back stands in no order that knows the difference."""
        if self._groups is None:
            return 0
        return KeyLeasedQueue._untouched(self, position)  # noqa: SLF001  # as for any key

    def _drop_ready(self) -> int:
        for position in self._returned:
            self._drop(position)
        self._returned.clear()
        self._back = None
        return KeyLeasedQueue._drop_ready(self)  # noqa: SLF001  # and what waits for its key

    def _drop_all(self) -> int:
        self._returned.clear()
        self._leaving.clear()
        self._stuck.clear()
        return KeyLeasedQueue._drop_all(self)  # noqa: SLF001  # and what waits for its key

    # --- leases ---------------------------------------------------------------------------------

    def _one_by_one(self) -> bool:
        """What came back goes first, and stands in no order."""
        return bool(self._returned) or KeyLeasedQueue._one_by_one(self)  # noqa: SLF001  # any queue

    def _untake(self, position: int) -> int:
        if self._groups is not None:
            return KeyLeasedQueue._untake(self, position)  # noqa: SLF001  # as for any key
        if self._again:
            self._returned.appendleft(position)
            self._back = None
        else:
            self._order.put_back(position)
            self._order.untouched(position)
        self._ready += 1
        return 0

    def _recount(self) -> int:
        KeyLeasedQueue._recount(self)  # noqa: SLF001  # what was never delivered, or has a key
        self._ready += len(self._returned)
        return 0

    def _give_back(self, runs: Sequence[Run]) -> int:
        """Every message counts that it was delivered in vain, as when it is requeued."""
        log = self._order.log
        for run in runs:
            self._order.end_lease_out(run.first, run.end)
            position = log.next(run.first)
            while position < run.end:
                self.unacked += 1
                self._return(position, True)
                position = log.next(position + 1)
        return 0

    def _count_again(self, overflow: Overflow, runs: Sequence[Run], messages: int) -> int:
        """Each body was counted when it came back, for some do not."""
        return 0

    # --- how much may wait ----------------------------------------------------------------------

    def _refuses(self, overflow: Overflow, message: Message) -> bool:
        """Whether the queue was too full, and has not become empty enough since.

        As with RabbitMQ the message that is one too many is taken, and those after it are not
        until there is room again.
        """
        return overflow.refusing and not (overflow.drops or overflow.promised)

    def take_over(self, message: Message) -> int:
        """Take a message however full the queue is, as with RabbitMQ: refused it would be lost."""
        return self.admit(message)

    def has_room(self, incoming: Incoming) -> bool:
        """Whether it would take messages that are to come together, were there no consumer."""
        overflow = self._overflow
        if overflow is None or overflow.drops:
            return True
        return not overflow.refusing and overflow.has_room(self._ready, incoming, True)

    def _grown(self) -> int:
        overflow = self._overflow
        if overflow is not None and overflow.over(self._ready):
            if overflow.drops:
                self._trim()
            else:
                overflow.refusing = True
        return 0

    # --- dead-lettering at least once -----------------------------------------------------------

    def _bury(self, position: int, reason: str) -> int:
        if self.dead_letters is None:
            self._drop(position)
            return 0
        if self._at_least_once:
            return self._hand_on(position, reason, set(), 0)
        message = self._read(position)
        if message is not None:
            self.dead_letters.send(message, reason)
            self._drop(position)
        return 0

    def _hand_on(self, position: int, reason: str, taken: set[str], ticket: int) -> int:
        """Send a dead letter to the queues that have not taken it yet.

        Args:
            position: of the message.
            reason: why it is dead.
            taken: the names of the queues that have it.
            ticket: of the commit that the last of their copies is part of; 0 when none waits.
        """
        message = self._read(position)
        if message is None:
            return 0
        if self.dead_letters is None:
            self._drop(position)
            return 0
        outcome = self.dead_letters.send(message, reason, taken)
        if outcome & PENDING:
            ticket = self._commit.ticket
        if outcome & (NOWHERE | REJECTED) and self._at_least_once:
            self._stuck.append((position, reason, taken, ticket))
        elif ticket > self._commit.done:
            self._commit.urgent = True
            self._leaving.append((ticket, position))
        else:
            self._drop(position)
        return 0

    def tick(self) -> None:
        """Let go what is safe elsewhere, and try again what nobody took."""
        while self._leaving and self._leaving[0][0] <= self._commit.done:
            self._drop(self._leaving.popleft()[1])
        for _ in range(min(len(self._stuck), DEAD_LETTERS_PER_TICK)):
            position, reason, taken, ticket = self._stuck.popleft()
            self._hand_on(position, reason, taken, ticket)

    def _handed_on(self) -> set[int]:
        """What left as a dead letter, and waits for the disk."""
        return {position for _, position in self._leaving}

    # --- what clients may ask -------------------------------------------------------------------

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """The flag exclusive means nothing here, as with RabbitMQ."""
        return super().check_consumer(
            tag, arguments, no_ack=no_ack, exclusive=False, prefetch=prefetch
        )

    def get(self) -> tuple[Message, int, bool] | None:
        """One message, unless the queue serves a single active consumer, as with RabbitMQ."""
        if self._single:
            thing = rendered("queue", self.name, self.vhost)
            raise Refusal(
                ErrorKind.RESOURCE_LOCKED,
                f"cannot obtain access to locked {thing}. basic.get operations are not supported "
                "by quorum queues with single active consumer",
            )
        return super().get()

    def check_prefetch_global(self) -> None:
        """One limit for a whole channel is refused, as with RabbitMQ."""
        thing = rendered("queue", self.name, self.vhost)
        raise Refusal(ErrorKind.NOT_IMPLEMENTED, f"{thing} does not support global qos")

    def check_delete(self, *, if_unused: bool, if_empty: bool) -> None:
        """Conditions are refused, as with RabbitMQ."""
        for condition, asked in (("if-unused", if_unused), ("if-empty", if_empty)):
            if asked:
                thing = rendered("queue", self.name, self.vhost)
                raise Refusal(
                    ErrorKind.NOT_IMPLEMENTED,
                    f"cannot delete {thing}. queue.delete operations with {condition} flag set "
                    "are not supported by quorum queues",
                )
