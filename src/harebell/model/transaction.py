"""A transaction: publishes and settlements that take effect together, or not at all.

It knows no protocol. Whoever serves a peer gathers here what the peer does; at the commit the work
is handed back to a `Party`, which does it by its own rules: a channel sends what is unroutable back
and serves its consumers, a branch of a distributed transaction just does it. Routing and every
check come before, when a message is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from harebell.base import limits
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.base.slices import Slices
from harebell.model.queue.contract import Queue
from harebell.model.queue.features.limits import Incoming

ACCEPT = 0
"""The message is done with."""
REJECT = 1
"""It is refused for good: dead-lettered, or done with."""
REQUEUE = 2
"""It goes back, as a failed delivery."""
GIVE_BACK = 3
"""It goes back, and the client says that nothing failed."""
KINDS = (ACCEPT, REJECT, REQUEUE, GIVE_BACK)
"""What a settlement can be."""


class Entry(Protocol):
    """A delivery that was acknowledged, rejected or given back."""

    @property
    def queue(self) -> Queue:
        """Where it came from."""

    @property
    def position(self) -> int:
        """Its position there."""


_Publish = tuple[Message, tuple[Queue, ...], int]
T = TypeVar("T")
Done = TypeVar("Done", bound=Entry)
_Given = TypeVar("_Given", bound=Entry, contravariant=True)


class Party(Protocol[_Given]):
    """Who does the work of a transaction when it is committed."""

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Hand a message to queues that are all there; returns the bits that they answered."""

    def take_effect(self, entries: Sequence[_Given], kind: int) -> None:
        """Settle deliveries in one of the ways above."""


def due_at_commit(ttl: int) -> int:
    """The due time of a message that lasts so many milliseconds from its commit on."""
    return -ttl - 1


def ttl_until_commit(due: int) -> int:
    """The way back: what `due_at_commit` was told."""
    return -due - 1


def pinned(commit: Commit, slices: Slices[T]) -> Slices[T]:
    """The same, in one commit of the disk however many turns it takes."""
    while not commit.pin():
        yield
    try:
        return (yield from slices)
    finally:
        commit.unpin()


class Transaction(Generic[Done]):
    """What was done and is not committed.

    Args:
        gauge: counts what the publishes take in memory; None where somebody else does.

    Attributes:
        octets: what they take, where it is counted.
        publishes: messages, the queues that they were routed to, and the publisher's flags.
        settled: deliveries, and what was done with them.
    """

    __slots__ = ("_before", "_changes", "_gauge", "_ways", "octets", "publishes", "settled")

    def __init__(self, gauge: Gauge | None = None) -> None:
        self._gauge = gauge
        self.octets = 0
        self.publishes: list[_Publish] = []
        self.settled: list[tuple[list[Done], int]] = []
        # How many queues and positions change; from two on a crash could come between them.
        self._changes = 0
        # Where it all goes. Most go where the one before went.
        self._ways: set[tuple[Queue, ...]] = set()
        self._before: tuple[Queue, ...] = ()

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the commit.

        Raises:
            Refusal: it is too much; a single message never is.
        """
        gauge = self._gauge
        if gauge is not None:
            taken = message.footprint()
            if self.octets and self.octets + taken > limits.TRANSACTION_BYTES:
                raise Refusal(
                    ErrorKind.PRECONDITION_FAILED,
                    f"the transaction publishes more than {limits.TRANSACTION_BYTES} octets",
                )
            self.octets += taken
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
        self._changes += len(entries) * (2 if kind == REJECT else 1)

    def pending(self) -> tuple[int, int]:
        """How many publishes, and how many settled deliveries, wait for the commit."""
        return len(self.publishes), sum(len(entries) for entries, _ in self.settled)

    @property
    def large(self) -> bool:
        """Whether it is too much for one turn."""
        return sum(self.pending()) > limits.TRANSACTION_AT_ONCE

    def has_room(self) -> bool:
        """Whether every queue would take what is published to it."""
        if not self._may_be_refused():
            return True
        incoming: dict[Queue, Incoming] = {}
        for message, queues, _ in self.publishes:
            for queue in queues:
                if not queue.deleted:
                    incoming.setdefault(queue, Incoming()).add(len(message.body))
        return all(queue.has_room(messages) for queue, messages in incoming.items())

    def _may_be_refused(self) -> bool:
        """Whether it goes to a queue that refuses messages when it is full."""
        return any(queue.refuses for queues in self._ways for queue in queues)

    def commit(self, party: Party[Done], commit: Commit, now: int, more: int = 0) -> Slices[int]:
        """Do it all, publishes first; the transaction is empty from the beginning on.

        What takes several turns has to be `pinned`, with the check for room and all that a crash
        must not part from it.

        Args:
            party: does it.
            commit: the group commit that it all becomes part of, whole or not at all.
            now: the time that never jumps, in milliseconds: what was to last for a while from the
                commit on is due that much later.
            more: what else changes that a crash must not part from this.

        Returns:
            The bits that the queues answered, all together.
        """
        # Others fill a queue meanwhile, so where one refuses there can be no pause after the check.
        hurry = self._may_be_refused()
        publishes, self.publishes = self.publishes, []
        # Taken from the end one by one: to free all of them is work, too.
        publishes.reverse()
        self._release()
        settled, self.settled = self.settled, []
        changes, self._changes = self._changes, 0
        if changes + more > 1:
            commit.joint = True
        result = 0
        while publishes:
            message, queues, flags = publishes.pop()
            if message.due < 0:
                message.due = now + ttl_until_commit(message.due)
            if any(queue.deleted for queue in queues):
                queues = tuple(queue for queue in queues if not queue.deleted)
            result |= party.accept(message, queues, flags)
            if not hurry and len(publishes) % limits.TRANSACTION_SLICE == 0:
                yield
        for entries, kind in settled:
            # What goes back is not delivered again before all of it is there.
            size = limits.TRANSACTION_SLICE if kind in (ACCEPT, REJECT) else len(entries)
            for at in range(0, len(entries), size):
                some = entries[at : at + size]
                party.take_effect(some, kind)
                for queue in {entry.queue: None for entry in some}:
                    result |= queue.sync_soon()
                yield
        return result

    def forget(self) -> list[list[Done]]:
        """Do none of it; returns the deliveries that are as if nobody had settled them."""
        self.publishes.clear()
        self._release()
        self._changes = 0
        settled, self.settled = self.settled, []
        return [entries for entries, _ in settled]

    def _release(self) -> None:
        """What was published is somewhere else now, or forgotten."""
        self._ways.clear()
        self._before = ()
        if self._gauge is not None:
            self._gauge.take(self.octets)
            self._gauge.uncommitted -= self.octets
            self.octets = 0
