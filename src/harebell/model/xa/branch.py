"""A branch of a distributed transaction: its work, and the sessions associated with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.timers import Timer
from harebell.model import limits
from harebell.model.queue.contract import Queue, unrouted
from harebell.model.transaction import ACCEPT, REJECT, REQUEUE, REQUEUE_RETURNED, Entry, Transaction
from harebell.model.xa.states import DONE, Fault, State
from harebell.model.xa.xid import Xid

_KINDS = {
    Fault.UNKNOWN_XID: ErrorKind.NOT_FOUND,
    Fault.ALREADY_KNOWN: ErrorKind.NOT_ALLOWED,
    Fault.ILLEGAL_STATE: ErrorKind.PRECONDITION_FAILED,
    Fault.INVALID: ErrorKind.NOT_ALLOWED,
    Fault.BAD_VALUE: ErrorKind.PRECONDITION_FAILED,
    Fault.TOO_MUCH: ErrorKind.RESOURCE_ERROR,
    Fault.FAILED: ErrorKind.INTERNAL_ERROR,
}
ADMINISTRATOR = "administrator"
"""The tag of users who may see and end every branch."""


class Asker(Protocol):
    """The user of a request."""

    @property
    def name(self) -> str:
        """The name of the user."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The current tags of the user."""


class _Operator(NamedTuple):
    name: str = ""
    tags: tuple[str, ...] = (ADMINISTRATOR,)


OPERATOR: Asker = _Operator()
"""The user of the control socket."""


class BranchError(Refusal):
    """A refused call.

    Args:
        fault: the reason; each protocol version has a code for it.
        text: the explanation, naming the branch.
    """

    def __init__(self, fault: Fault, text: str) -> None:
        super().__init__(_KINDS[fault], text)
        self.fault = fault


class SettledDelivery(NamedTuple):
    """A delivery that the branch has settled."""

    queue: Queue
    position: int


class Committer:
    """Does the work of a branch at its commit, whichever session did it first.

    Args:
        promised: whether the queues have reserved room for the messages.
    """

    def __init__(self, *, promised: bool = False) -> None:
        self._promised = promised

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a message to its queues; unroutable ones were returned before."""
        result = 0 if queues else unrouted(message)
        # `admit` takes it even if the queue is full: a prepared branch has to be able to commit.
        for queue in queues:
            result |= queue.admit(message) if self._promised else queue.publish(message)
        return result

    def take_effect(self, entries: Sequence[SettledDelivery], kind: int) -> None:
        """Settle deliveries, and drain the queues."""
        for queue, position in entries:
            if kind == ACCEPT:
                queue.counters.ack += 1
                queue.settle(position)
            elif kind == REJECT:
                queue.reject(position)
            elif kind == REQUEUE_RETURNED:
                queue.requeue_returned(position)
            else:
                queue.requeue(position)
        # After all of them: a message must not be delivered before an earlier one that is requeued.
        for queue in {entry.queue: None for entry in entries}:
            queue.drain()


class Branch:
    """A branch.

    Args:
        xid: its name.
        vhost: the name of the vhost of its messages.
        user: the user that started it.
        gauge: counts the memory of its publishes.

    Attributes:
        state: see `states.py`.
        sessions: how many are associated with it, suspended or not.
        work: their work, until it is prepared or finished.
        byte_count: memory of the publishes, in bytes.
        timeout: its timeout in seconds.
        timer: rolls it back at the timeout.
        position: the position of its record in the log of the branches; -1 without one.
        moment: when it was prepared, in milliseconds since 1970; 0 before.
        counted: publishes and settlements of a prepared branch.
        busy: whether it is being prepared, committed or rolled back, in several turns.
        held: for a restored branch, the settlements whose message is still there: number of the
            queue, and position. None for a branch that this process prepared.
    """

    __slots__ = (
        "_gauge",
        "_settled",
        "busy",
        "byte_count",
        "counted",
        "held",
        "moment",
        "position",
        "sessions",
        "state",
        "timeout",
        "timer",
        "user",
        "vhost",
        "work",
        "xid",
    )

    def __init__(self, xid: Xid, vhost: str, user: str, gauge: Gauge) -> None:
        self.xid = xid
        self.vhost = vhost
        self.user = user
        self.state = State.UNKNOWN
        self.sessions = 0
        self.work: Transaction[SettledDelivery] = Transaction()
        self.byte_count = 0
        self.timeout = 0
        self.timer: Timer | None = None
        self.position = -1
        self.moment = 0
        self.counted = (0, 0)
        self.busy = False
        self.held: set[tuple[int, int]] | None = None
        self._settled = 0
        self._gauge = gauge

    def open_to(self, asker: Asker) -> bool:
        """True if a user may see, work on and end this branch: its own user and administrators."""
        return asker.name == self.user or ADMINISTRATOR in asker.tags

    def pending(self) -> tuple[int, int]:
        """Return how many publishes and how many settled deliveries are pending."""
        done = self.work.pending()
        return done if done != (0, 0) else self.counted

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the commit.

        Raises:
            BranchError: the branch is too large.
        """
        # Rolled back already, by a timeout or by another session: the answer to `end` says so.
        if self.state in DONE:
            return
        taken = message.footprint()
        if self.byte_count + taken > limits.BRANCH_BYTES:
            raise BranchError(
                Fault.TOO_MUCH,
                f"xid {self.xid} publishes more than {limits.BRANCH_BYTES} octets",
            )
        self.byte_count += taken
        self._gauge.add(taken)
        self.work.publish(message, queues, flags)

    def settle(self, entries: Sequence[Entry], kind: int) -> None:
        """Keep a settlement for the commit.

        Raises:
            BranchError: the branch is too large.
        """
        taken = [SettledDelivery(entry.queue, entry.position) for entry in entries]
        if self.state in DONE:
            take_back(taken)
            return
        self._settled += len(taken)
        # The deliveries that are refused are requeued, as the client can no longer settle them.
        if self._settled > limits.BRANCH_SETTLED_MESSAGES:
            take_back(taken)
            raise BranchError(
                Fault.TOO_MUCH,
                f"xid {self.xid} settles more than {limits.BRANCH_SETTLED_MESSAGES} deliveries",
            )
        self.work.settle(taken, kind)

    def release(self) -> None:
        """Release the memory of its publishes: they are stored or dropped."""
        self._gauge.take(self.byte_count)
        self.byte_count = 0

    def undo(self) -> None:
        """Drop the publishes, and requeue what was acknowledged."""
        self.release()
        for entries in self.work.forget():
            take_back(entries)


def take_back(entries: Sequence[SettledDelivery]) -> None:
    """Requeue deliveries whose acknowledgement was rolled back, and drain the queues."""
    Committer().take_effect(entries, REQUEUE)
