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
from harebell.model.queue.kind import Queue
from harebell.model.queue.overflow import Incoming

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


class Transaction(Generic[Done]):
    """What was done and is not committed.

    Args:
        gauge: counts what the publishes take in memory; None where somebody else does.

    Attributes:
        octets: what they take, where it is counted.
        publishes: messages, the queues that they were routed to, and the publisher's flags.
        settled: deliveries, and what was done with them.
    """

    __slots__ = ("_changes", "_gauge", "octets", "publishes", "settled")

    def __init__(self, gauge: Gauge | None = None) -> None:
        self._gauge = gauge
        self.octets = 0
        self.publishes: list[tuple[Message, tuple[Queue, ...], int]] = []
        self.settled: list[tuple[list[Done], int]] = []
        # How many queues and positions change; from two on a crash could come between them.
        self._changes = 0

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
        self._changes += len(queues)

    def settle(self, entries: list[Done], kind: int) -> None:
        """Keep an acknowledgement or rejection for the commit."""
        self.settled.append((entries, kind))
        self._changes += len(entries) * (2 if kind == REJECT else 1)

    def pending(self) -> tuple[int, int]:
        """How many publishes, and how many settled deliveries, wait for the commit."""
        return len(self.publishes), sum(len(entries) for entries, _ in self.settled)

    def has_room(self) -> bool:
        """Whether every queue would take what is published to it."""
        incoming: dict[Queue, Incoming] = {}
        for message, queues, _ in self.publishes:
            for queue in queues:
                if not queue.deleted:
                    incoming.setdefault(queue, Incoming()).add(len(message.body))
        return all(queue.has_room(messages) for queue, messages in incoming.items())

    def commit(self, party: Party[Done], commit: Commit, now: int, more: int = 0) -> int:
        """Do it all, publishes first; the transaction is empty afterwards.

        Args:
            party: does it.
            commit: the group commit that it all becomes part of, whole or not at all.
            now: the time that never jumps, in milliseconds: what was to last for a while from the
                commit on is due that much later.
            more: what else changes that a crash must not part from this.

        Returns:
            The bits that the queues answered, all together.
        """
        publishes, self.publishes = self.publishes, []
        self._release()
        settled, self.settled = self.settled, []
        changes, self._changes = self._changes, 0
        if changes + more > 1:
            commit.joint = True
        result = 0
        for message, queues, flags in publishes:
            if message.due < 0:
                message.due = now + ttl_until_commit(message.due)
            result |= party.accept(message, tuple(q for q in queues if not q.deleted), flags)
        for entries, kind in settled:
            party.take_effect(entries, kind)
            for queue in {entry.queue: None for entry in entries}:
                result |= queue.sync_soon()
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
        if self._gauge is not None:
            self._gauge.take(self.octets)
            self._gauge.uncommitted -= self.octets
            self.octets = 0
