"""A transaction: publishes and settlements that take effect together at its commit.

It is independent of protocols. The front collects the work of a peer here; at the commit a `Party`
carries it out: a channel returns unroutable messages and drains its queues, a branch of a
distributed transaction only does the work. Messages are routed and checked when they are published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from harebell.base import limits as base_limits
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.base.slices import Slices, at_once
from harebell.model import limits
from harebell.model.feedback import routed_now
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.limits import Incoming

ACCEPT = 0
"""Acknowledge: remove the message."""
REJECT = 1
"""Reject: dead-letter or remove the message."""
REQUEUE = 2
"""Requeue as a failed delivery."""
REQUEUE_RETURNED = 3
"""Requeue; the client says that the delivery did not fail."""
KINDS = (ACCEPT, REJECT, REQUEUE, REQUEUE_RETURNED)
"""The kinds of settlements."""


class Entry(Protocol):
    """A delivery that was acknowledged, rejected or requeued."""

    @property
    def queue(self) -> Queue:
        """The queue of the delivery."""

    @property
    def position(self) -> int:
        """The position in the queue."""


_Publish = tuple[Message, tuple[Queue, ...], int]
T = TypeVar("T")
Done = TypeVar("Done", bound=Entry)
_Given = TypeVar("_Given", bound=Entry, contravariant=True)


class Party(Protocol[_Given]):
    """Carries out the work of a transaction at its commit."""

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a message to queues that exist; return the bits that they returned."""

    def take_effect(self, entries: Sequence[_Given], kind: int) -> None:
        """Settle deliveries in one of the ways above."""


def due_at_commit(ttl: int) -> int:
    """Return a negative due time, for an expiration that starts at the commit."""
    return -ttl - 1


def ttl_until_commit(due: int) -> int:
    """Return the milliseconds that were given to `due_at_commit`."""
    return -due - 1


def pinned(commit: Commit, slices: Slices[T]) -> Slices[T]:
    """Yield the slices in one commit of the store, however many turns they take."""
    while not commit.pin():
        yield
    try:
        return (yield from slices)
    finally:
        commit.unpin()


class Transaction(Generic[Done]):
    """The work of a transaction that is not committed.

    Args:
        gauge: counts the memory of the publishes; None if the caller counts it.

    Attributes:
        byte_count: memory of the publishes in bytes, if it is counted.
        publishes: messages with their queues and the publish flags.
        settled: deliveries with how they were settled.
    """

    __slots__ = (
        "_before",
        "_changes",
        "_gauge",
        "_rejects",
        "_ways",
        "byte_count",
        "publishes",
        "settled",
    )

    def __init__(self, gauge: Gauge | None = None) -> None:
        self._gauge = gauge
        self.byte_count = 0
        self.publishes: list[_Publish] = []
        self.settled: list[tuple[list[Done], int]] = []
        # How many queue positions change; from two on a crash could separate them.
        self._changes = 0
        self._rejects = 0
        # The queues of all publishes, and of the last one: most have the same queues.
        self._ways: set[tuple[Queue, ...]] = set()
        self._before: tuple[Queue, ...] = ()

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the commit.

        Raises:
            Refusal: the transaction is too large; a single message never is.
        """
        gauge = self._gauge
        if gauge is not None:
            taken = message.footprint()
            if self.byte_count and self.byte_count + taken > limits.TRANSACTION_BYTES:
                raise Refusal(
                    ErrorKind.PRECONDITION_FAILED,
                    f"the transaction publishes more than {limits.TRANSACTION_BYTES} bytes",
                )
            self.byte_count += taken
            gauge.add(taken)
            gauge.uncommitted += taken
        self.publishes.append((message, queues, flags))
        if queues is not self._before:
            self._before = queues
            self._ways.add(queues)
        self._changes += len(queues)

    def settle(self, entries: list[Done], kind: int) -> None:
        """Keep an acknowledgement or rejection for the commit."""
        self.settled.append((entries, kind))
        # A rejected message may be dead-lettered: then a second queue changes, too.
        self._changes += len(entries) * (2 if kind == REJECT else 1)
        self._rejects += len(entries) if kind == REJECT else 0

    def pending(self) -> tuple[int, int]:
        """Return how many publishes and how many settled deliveries are pending."""
        return len(self.publishes), sum(len(entries) for entries, _ in self.settled)

    @property
    def large(self) -> bool:
        """True if it is too large for one turn, by its changes in each queue or its bytes."""
        if max(self._changes, sum(self.pending())) > limits.TRANSACTION_AT_ONCE:
            return True
        # A dead letter takes as long as the history that its publisher has written.
        if self._rejects > 1:
            return True
        byte_count = sum([len(message.body) for message, _, _ in self.publishes])
        return byte_count > limits.TRANSACTION_AT_ONCE_BYTES

    def in_one_commit(self, commit: Commit, slices: Slices[T]) -> Slices[T]:
        """Yield the slices of its work so that they are in one commit of the store.

        A small transaction is charged first and then done in one turn, even if that uses up the
        budget of its user: the commit might be closed before the next turn. A large one is
        `pinned`.

        Args:
            commit: the group commit.
            slices: the work.
        """
        if self.large:
            return (yield from pinned(commit, slices))
        for _ in range(0, sum(self.pending()), base_limits.TRANSACTION_SLICE):
            yield
        return at_once(slices)

    def has_room(self) -> bool:
        """True if every queue would take its messages."""
        if not self._may_be_refused():
            return True
        incoming: dict[Queue, Incoming] = {}
        for message, queues, _ in self.publishes:
            for queue in queues:
                if not queue.deleted:
                    incoming.setdefault(queue, Incoming()).add(len(message.body))
        return all(queue.has_room(messages) for queue, messages in incoming.items())

    def _may_be_refused(self) -> bool:
        """True if a queue may refuse messages."""
        return any(queue.refuses for queues in self._ways for queue in queues)

    def commit(self, party: Party[Done], commit: Commit, now: int, more: int = 0) -> Slices[int]:
        """Carry out the work, publishes first; the transaction is empty at once.

        It has to be `in_one_commit`, together with the check for room and everything that a crash
        must not separate from it.

        Args:
            party: carries it out.
            commit: the group commit; a crash keeps all of the work or nothing.
            now: monotonic time in milliseconds, for expirations that start at the commit.
            more: the number of other changes that a crash must not separate from this.

        Returns:
            The bits that the queues returned, combined.
        """
        # Others fill queues meanwhile: if one may refuse, do not pause after the check for room.
        hurry = self._may_be_refused()
        publishes, self.publishes = self.publishes, []
        # Removed from the end one by one: freeing all at once is slow.
        publishes.reverse()
        self._release()
        settled, self.settled = self.settled, []
        changes, self._changes, self._rejects = self._changes, 0, 0
        if changes + more > 1:
            commit.joint = True
        result = 0
        # RabbitMQ commits publishes before acknowledgements, too.
        while publishes:
            message, queues, flags = publishes.pop()
            if message.due < 0:
                message.due = now + ttl_until_commit(message.due)
            # Routed when it was published, as in RabbitMQ: queues that were bound since get
            # nothing.
            if any(queue.deleted for queue in queues):
                queues = tuple(queue for queue in queues if not queue.deleted)
            if message.once is not None:
                queues = routed_now(message, queues)
            result |= party.accept(message, queues, flags)
            if not hurry and len(publishes) % base_limits.TRANSACTION_SLICE == 0:
                yield
        settled.reverse()
        while settled:
            entries, kind = settled.pop()
            # Drain after all requeues, so that no message is delivered before an earlier one.
            size = {ACCEPT: base_limits.TRANSACTION_SLICE, REJECT: 1}.get(kind, len(entries))
            for at in range(0, len(entries), size):
                some = entries[at : at + size]
                party.take_effect(some, kind)
                for queue in {entry.queue: None for entry in some}:
                    result |= queue.sync_soon()
                yield
        return result

    def forgetting(self, unsettle: Callable[[Sequence[Done]], object]) -> Slices[None]:
        """Roll back in slices; what is left when the peer is gone meanwhile is for `forget`.

        Args:
            unsettle: gets the deliveries that are unsettled again.
        """
        publishes, self.publishes = self.publishes, []
        self._release()
        self._changes = self._rejects = 0
        # From the end, where a list is cut without moving what is left.
        while publishes:
            del publishes[-base_limits.TRANSACTION_SLICE :]
            yield
        while self.settled:
            some: list[Done] = []
            while self.settled and len(some) < base_limits.TRANSACTION_SLICE:
                entries, _ = self.settled[-1]
                at = -(base_limits.TRANSACTION_SLICE - len(some))
                some += entries[at:]
                del entries[at:]
                if not entries:
                    self.settled.pop()
            unsettle(some)
            yield

    def forget(self) -> list[list[Done]]:
        """Roll back; return the deliveries that are unsettled again."""
        self.publishes.clear()
        self._release()
        self._changes = self._rejects = 0
        settled, self.settled = self.settled, []
        return [entries for entries, _ in settled]

    def _release(self) -> None:
        """Release the memory of the publishes."""
        self._ways.clear()
        self._before = ()
        if self._gauge is not None:
            self._gauge.take(self.byte_count)
            self._gauge.uncommitted -= self.byte_count
            self.byte_count = 0
