"""Local transactions of a session: what is posted and retired in them (AMQP 1.0 4).

    post       a transfer whose state names a transaction       published at the commit
    retire     a disposition whose state names one              settled at the commit
    rollback   what was posted is dropped; what was retired is unsettled again, or requeued
               if its receiver has forgotten it

`harebell.model.transaction` has the work until then, as for the other versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from harebell.base.slices import Slices
from harebell.front.amqp_1_0.errors import (
    INVALID_FIELD,
    RESOURCE_LIMIT_EXCEEDED,
    ROLLBACK,
    UNKNOWN_ID,
    LinkError,
    SessionError,
)
from harebell.front.amqp_1_0.session import SERIALS
from harebell.front.amqp_1_0.verdicts import requeue_failed, verdict_of
from harebell.front.limits import TRANSACTIONS_PER_SESSION, UNACKED_BYTES
from harebell.model.feedback import is_duplicate
from harebell.model.queue.contract import Queue, unrouted
from harebell.model.transaction import ACCEPT, REJECT, REQUEUE, REQUEUE_RETURNED, Transaction
from harebell.wire.v1.composites import (
    Accepted,
    Modified,
    Rejected,
    Released,
    TransactionalState,
)
from harebell.wire.v1.performatives import decode_performative

if TYPE_CHECKING:
    from harebell.base.gauge import Gauge
    from harebell.base.message import Message
    from harebell.front.amqp_1_0.session import Session
    from harebell.front.common.unacked import Unacked

_RELEASED = Released()


class Poster(Protocol):
    """A link by which messages arrive (`ReceivingLink`).

    Attributes:
        discards: whether a message that no queue gets is accepted.
    """

    discards: bool

    def answers(self) -> bool:
        """True if an outcome of the current delivery is expected."""

    def refuse(self, outcome: bytes) -> None:
        """Note an encoded outcome of the current delivery, if one is expected."""


class Retired(Struct, frozen=True):
    """A delivery that is settled at the commit.

    Args:
        entry: the delivery.
        settled: whether its receiver has forgotten it.
        outcome: what becomes of it.
    """

    entry: Unacked
    settled: bool
    outcome: Any

    @property
    def queue(self) -> Queue:
        """The queue of the delivery."""
        return self.entry.queue

    @property
    def position(self) -> int:
        """The position in the queue."""
        return self.entry.position


class LocalTransaction(Transaction[Retired]):
    """A transaction that a client has declared.

    Args:
        name: the txn-id.
        gauge: counts the memory of what is posted.

    Attributes:
        failed: why it cannot be committed; "" if it can.
        retired: how many deliveries are settled in it.
    """

    __slots__ = ("_accepted", "_released", "failed", "name", "retired")

    def __init__(self, name: bytes, gauge: Gauge) -> None:
        super().__init__(gauge)
        self.name = name
        self.failed = ""
        self.retired = 0
        self._accepted = TransactionalState(name, Accepted()).encoded()
        self._released = TransactionalState(name, _RELEASED).encoded()

    def post(self, link: Poster, message: Message, queues: tuple[Queue, ...]) -> None:
        """Keep a routed message for the commit, and note its outcome."""
        if queues or message.once is not None:
            # Without queues for those that keep it all the same, such as a history.
            self.publish(message, queues, 0)
        if queues or is_duplicate(message) or link.discards:
            link.refuse(self._accepted)
            return
        # What its sender does not learn as an outcome, the commit has to say.
        if not link.answers():
            self.failed = f"a settled message reaches no queue: {message.routing_key!r:.100}"
        link.refuse(self._released)

    def pending(self) -> tuple[int, int]:
        """Return how many publishes and how many settled deliveries are pending."""
        return len(self.publishes), self.retired

    def retire(self, entry: Unacked, outcome: Any, kind: int, *, settled: bool) -> None:
        """Keep the settlement of a delivery for the commit; `kind` is `kind_of` the outcome."""
        self.retired += 1
        self.settle([Retired(entry, settled, outcome)], kind)


def kind_of(outcome: Any) -> int:
    """Return what an outcome does at a commit.

    Raises:
        SessionError: invalid-field, there is no such outcome.
    """
    if type(outcome) is Accepted:
        return ACCEPT
    if type(outcome) not in (Rejected, Released, Modified):
        raise SessionError(
            INVALID_FIELD, f"Unrecognised outcome in a transaction: {outcome!r:.100}"
        )
    # What it has may be wrong, too, which its sender has to hear before the commit.
    verdict_of(outcome)
    if type(outcome) is Rejected:
        return REJECT
    if type(outcome) is Released:
        return REQUEUE_RETURNED
    if outcome.undeliverable_here:
        return REJECT
    return REQUEUE if outcome.delivery_failed else REQUEUE_RETURNED


class Transactions:
    """The open transactions of a session; listings show their sum.

    Args:
        session: whose deliveries are retired in them.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[bytes, LocalTransaction] = {}
        # Those whose discharge may be in its slices when the session ends.
        self._ending: list[LocalTransaction] = []
        self._last = 0

    @property
    def byte_count(self) -> int:
        """Return the memory of what is posted and retired, in bytes."""
        every = self._open.values()
        return sum([each.byte_count + UNACKED_BYTES * each.retired for each in every])

    def pending(self) -> tuple[int, int]:
        """Return how many publishes and how many settled deliveries wait for a commit."""
        counts = [each.pending() for each in self._open.values()]
        return sum([posted for posted, _ in counts]), sum([retired for _, retired in counts])

    def declare(self) -> LocalTransaction:
        """Begin a transaction.

        Raises:
            LinkError: resource-limit-exceeded.
        """
        if len(self._open) >= TRANSACTIONS_PER_SESSION:
            text = f"at most {TRANSACTIONS_PER_SESSION} transactions of a session may be open"
            raise LinkError(RESOURCE_LIMIT_EXCEEDED, text)
        self._last += 1
        name = self._last.to_bytes(4)
        transaction = LocalTransaction(name, self._session.connection.registry.gauge)
        self._open[name] = transaction
        return transaction

    def find(self, name: bytes) -> LocalTransaction:
        """Return an open transaction.

        Raises:
            LinkError: unknown-id.
        """
        transaction = self._open.get(name)
        if transaction is None:
            raise LinkError(UNKNOWN_ID, f"there is no open transaction with txn-id {name.hex()}")
        return transaction

    def end(self, name: bytes) -> LocalTransaction:
        """Return an open transaction, which nothing is added to from now on.

        Raises:
            LinkError: unknown-id.
        """
        transaction = self.find(name)
        del self._open[name]
        self._ending.append(transaction)
        return transaction

    def committing(self, transaction: LocalTransaction) -> Slices[int]:
        """Commit; return the bits of the queues.

        Raises:
            LinkError: rollback, a queue has no room; nothing is done.
        """
        commit = self._session.connection.commit
        return (yield from transaction.in_one_commit(commit, self._committing(transaction)))

    def _committing(self, transaction: LocalTransaction) -> Slices[int]:
        session = self._session
        # Before the first publish: afterwards nothing could be undone.
        if transaction.failed:
            raise LinkError(ROLLBACK, transaction.failed)
        if not transaction.has_room():
            raise LinkError(ROLLBACK, "a queue of the transaction is full")
        party = _Party(session)
        now = session.connection.broker.clock.steady
        result = yield from transaction.commit(party, session.connection.commit, now)
        party.finish()
        self._has_ended(transaction)
        return result

    def undoing(self, transaction: LocalTransaction) -> Slices[None]:
        """Roll back: deliveries are unsettled again, or requeued."""
        queues: dict[Queue, None] = {}

        def unsettle(some: Sequence[Retired]) -> None:
            for each in some:
                self._unsettle(each, queues)

        yield from transaction.forgetting(unsettle)
        for queue in queues:
            if not queue.deleted:
                queue.drain()
        self._has_ended(transaction)

    def _has_ended(self, transaction: LocalTransaction) -> None:
        if transaction in self._ending:
            self._ending.remove(transaction)
        connection = self._session.connection
        connection.registry.publishers.check_finished(connection)

    def _unsettle(self, retired: Retired, queues: dict[Queue, None]) -> None:
        entry, session = retired.entry, self._session
        left = retired.settled or getattr(entry.consumer, "ended", False)
        if left and not session.ended:
            # Its receiver has forgotten the delivery, or is gone: the message is delivered again.
            requeue_failed(entry)
            queues[entry.queue] = None
        else:
            session.unacked.put(entry.tag, entry)

    @property
    def work(self) -> int:
        """Return how much there is at most to roll back."""
        every = (*self._open.values(), *self._ending)
        return sum([sum(each.pending()) for each in every])

    def forgetting(self) -> Slices[None]:
        """Roll everything back, as the session ends: its deliveries are requeued afterwards."""

        def unsettle(some: Sequence[Retired]) -> None:
            for each in some:
                self._unsettle(each, {})

        for transaction in (*self._open.values(), *self._ending):
            yield from transaction.forgetting(unsettle)
        self._open.clear()
        self._ending.clear()


class _Party:
    """Carries out the work of a transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._queues: dict[Queue, None] = {}

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a message to its queues; return the bits that they returned."""
        result = 0 if queues else unrouted(message)
        for queue in queues:
            result |= queue.publish(message)
        return result

    def take_effect(self, entries: Sequence[Retired], kind: int) -> None:
        """Settle deliveries in one of the ways."""
        session = self._session
        for each in entries:
            entry = each.entry
            self._queues[entry.queue] = None
            if kind == ACCEPT:
                entry.settle()
                session.counters.ack += 1
            else:
                verdict_of(each.outcome)(entry)
            if not each.settled and not session.ended:
                # The receiver keeps the delivery until it knows that its outcome holds.
                outcome = each.outcome.encoded()
                frames = session.connection.frames
                tag = entry.tag % SERIALS
                frames.disposition(session.number, False, tag, tag, True, outcome)

    def finish(self) -> None:
        """Serve the queues: no message is delivered before an earlier one."""
        for queue in self._queues:
            if not queue.deleted:
                queue.drain()
        self._session.connection.touch()


def transaction_of(session: Session, state: bytes) -> LocalTransaction:
    """Return the transaction that the state of a transfer names.

    Raises:
        LinkError: invalid-field, it is no such state; unknown-id.
    """
    composite, _ = decode_performative(state)
    if not isinstance(composite, TransactionalState):
        text = f"the state of a transfer must be transactional-state, not {composite.NAME}"
        raise LinkError(INVALID_FIELD, text)
    return open_transaction(session, composite)


def open_transaction(session: Session, state: TransactionalState) -> LocalTransaction:
    """Return the transaction that a state names.

    Raises:
        LinkError: unknown-id.
    """
    transactions = session.transaction
    if transactions is None:
        raise LinkError(UNKNOWN_ID, "no transaction was declared in this session")
    found: LocalTransaction = transactions.find(state.txn_id)
    return found
