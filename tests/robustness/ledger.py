"""What clients sent and saw, over restarts of the broker, and what must be true of it.

Every publish is *sent*, and then *confirmed*, *refused*, or neither (the broker died before it
said). Every delivery is noted with its mark of redelivery. What a consumer acknowledged is
*settled*: perhaps, when the broker may not have heard it or may have forgotten it in a crash;
for good, when the acknowledgement is known to be on disk. When everything is over, after the
queues were drained, `judge` compares:

    lost        confirmed, never settled by anybody, and not in its queue
    phantom     delivered, and nobody sent it, or not to that queue
    changed     delivered with another body than it was sent with
    inverted    two messages of one source, never delivered before, in the wrong order to one reader
    unmarked    delivered once more without the mark of redelivery; of two readers one may read the
                first delivery later than the other reads the second, in one life of the broker
    returned    delivered after it was settled for good, or a transient message after a restart
    split       of a transaction some messages or acknowledgements outlived a restart, some did not

What is neither confirmed nor refused may be there or not. A log of a stream that several readers
read is as many queues here as there are readers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

Item = tuple[str, int]
KINDS = ("lost", "phantom", "changed", "inverted", "unmarked", "returned", "split")
_SHOWN = 5


@dataclass(slots=True)
class Verdict:
    """What was found, each violation as a sentence, and how much was looked at."""

    lost: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    inverted: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    sent: int = 0
    confirmed: int = 0
    delivered: int = 0
    again: int = 0

    @property
    def violations(self) -> list[str]:
        """Every violation, with its kind in front."""
        return [f"{kind}: {text}" for kind in KINDS for text in getattr(self, kind)]

    def check(self, where: str = "") -> Verdict:
        """Raise AssertionError when a promise was broken.

        Args:
            where: how to come back here, such as a seed and a number; it leads the message.
        """
        found = self.violations
        if found:
            shown = "\n  ".join(found[:_SHOWN])
            raise AssertionError(f"{where}: {len(found)} violations\n  {shown}".lstrip(": "))
        return self

    def __str__(self) -> str:
        counts = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in KINDS)
        return (
            f"{self.sent} sent, {self.confirmed} confirmed, {self.delivered} delivered "
            f"({self.again} again): {counts}"
        )


@dataclass(frozen=True, slots=True)
class Transaction:
    """What takes effect as a whole, or not at all.

    Args:
        puts: messages that it publishes.
        takes: messages that it acknowledges.
        life: of the broker, in which it was sent.
    """

    puts: tuple[Item, ...]
    takes: tuple[Item, ...]
    life: int


class Ledger:
    """The accounts of one run.

    A message has a number that no other of the run has; its queues are those that it must reach.
    """

    __slots__ = (
        "_bodies",
        "_confirmed",
        "_delivered",
        "_dropped",
        "_final",
        "_first",
        "_kept",
        "_last",
        "_life",
        "_met",
        "_queues",
        "_settled",
        "_sources",
        "_transactions",
        "_transient",
        "_verdict",
    )

    def __init__(self) -> None:
        self._bodies: dict[int, int] = {}
        self._sources: dict[int, Hashable] = {}
        self._queues: dict[int, tuple[str, ...]] = {}
        self._transient: set[int] = set()
        self._confirmed: set[int] = set()
        self._delivered: set[Item] = set()
        # Who met a message first, in which life, while it has not come without mark.
        self._first: dict[Item, tuple[int, Hashable]] = {}
        self._settled: set[Item] = set()
        self._final: set[Item] = set()
        self._kept: set[Item] = set()
        self._last: dict[tuple[Hashable, str, Hashable], int] = {}
        self._dropped: set[Item] = set()
        self._transactions: list[Transaction] = []
        self._life = 0
        # The last life of the broker in which a message was met.
        self._met: dict[Item, int] = {}
        self._verdict = Verdict()

    def copy(self) -> Ledger:
        """Accounts that go on from here on their own: one of several things that may happen."""
        other = Ledger()
        for name in ("_bodies", "_sources", "_queues", "_last", "_met", "_first"):
            setattr(other, name, dict(getattr(self, name)))
        for name in ("_transient", "_confirmed", "_delivered", "_settled", "_final", "_kept"):
            setattr(other, name, set(getattr(self, name)))
        other._dropped = set(self._dropped)
        other._transactions = list(self._transactions)
        other._life = self._life
        mine, its = self._verdict, other._verdict
        for name in KINDS:
            setattr(its, name, list(getattr(mine, name)))
        its.sent, its.confirmed = mine.sent, mine.confirmed
        its.delivered, its.again = mine.delivered, mine.again
        return other

    # --- publishers -----------------------------------------------------------------------------

    def sends(
        self,
        number: int,
        body: bytes,
        queues: Iterable[str],
        source: Hashable = 0,
        *,
        persistent: bool = True,
    ) -> None:
        """A message is about to be sent.

        Args:
            number: who it is; one source sends growing numbers.
            body: what it is; only its hash is kept.
            queues: where it must go.
            source: the publishing channel: its messages keep their order.
            persistent: whether it must outlive the process, once confirmed.
        """
        assert number not in self._bodies, f"message {number} is sent twice"
        self._bodies[number] = hash(body)
        self._sources[number] = source
        self._queues[number] = tuple(queues)
        if not persistent:
            self._transient.add(number)
        self._verdict.sent += 1

    def confirms(self, number: int) -> None:
        """The broker has taken responsibility."""
        if number not in self._bodies:
            self._verdict.phantom.append(f"message {number} is confirmed, and nobody sent it")
        elif number not in self._confirmed:
            self._confirmed.add(number)
            self._verdict.confirmed += 1

    def transacts(self, puts: Iterable[Item], takes: Iterable[Item] = ()) -> None:
        """A transaction is about to be committed.

        Args:
            puts: the messages that it publishes, with their queues.
            takes: the messages that it acknowledges. Those that are not confirmed say nothing: a
                crash may take them as well as their acknowledgement.
        """
        put = tuple(item for item in puts if item[1] not in self._transient)
        owed = self._confirmed - self._transient
        taken = tuple(item for item in takes if item[1] in owed)
        self._transactions.append(Transaction(put, taken, self._life))

    # --- consumers ------------------------------------------------------------------------------

    def delivers(
        self,
        queue: str,
        number: int | None,
        body: bytes,
        *,
        redelivered: bool = False,
        reader: Hashable = 0,
    ) -> None:
        """A message came from a queue.

        Args:
            queue: where from.
            number: who it says it is; None when its body does not say.
            body: what it is.
            redelivered: its mark.
            reader: the consuming channel, another one after every reconnection.
        """
        found = self._verdict
        if number is None or number not in self._bodies:
            found.phantom.append(f"{body[:40]!r} came from {queue!r}, and nobody sent it")
            return
        if queue not in self._queues[number]:
            found.phantom.append(f"message {number} came from {queue!r}, and was not sent there")
            return
        item = (queue, number)
        if hash(body) != self._bodies[number]:
            found.changed.append(f"message {number} of {queue!r} came as {body[:40]!r}")
        if item in self._final:
            found.returned.append(f"message {number} came back to {queue!r}")
        if item in self._delivered:
            found.again += 1
            life, other = self._first.pop(item, (-1, reader)) if not redelivered else (-1, reader)
            if not redelivered and (life != self._life or other == reader):
                found.unmarked.append(f"message {number} came again from {queue!r} without mark")
        elif redelivered:
            self._first[item] = (self._life, reader)
        else:
            self._in_order(reader, queue, number)
        found.delivered += 1
        self._delivered.add(item)
        self._met[item] = self._life

    def _in_order(self, reader: Hashable, queue: str, number: int) -> None:
        source = (reader, queue, self._sources[number])
        last = self._last.get(source, -1)
        if last > number:
            self._verdict.inverted.append(f"message {number} came from {queue!r} after {last}")
        self._last[source] = number

    def settles(self, queue: str, number: int, *, durable: bool = False) -> None:
        """A consumer is done with a message (without acknowledgements: when it came).

        Args:
            queue: where it came from.
            number: who it is.
            durable: whether that is known to be on disk. False when the broker may not have
                heard it, or may not have written it down yet.
        """
        self._settled.add((queue, number))
        self._met[queue, number] = self._life
        if durable:
            self._final.add((queue, number))

    def keeps(self, queue: str, number: int) -> None:
        """A message was seen in its queue when everything was over, and left there."""
        self._kept.add((queue, number))
        self._met[queue, number] = self._life

    # --- the broker -----------------------------------------------------------------------------

    def restarts(self) -> None:
        """The broker was restarted: nothing is owed of transient messages, and none comes back."""
        for number in self._transient:
            items = [(queue, number) for queue in self._queues[number]]
            self._settled.update(items)
            self._final.update(items)
        self._transient.clear()
        self._life += 1

    def drops(self, queue: str) -> None:
        """A queue was deleted or emptied: nothing that was sent to it so far is owed."""
        for number, queues in self._queues.items():
            if queue in queues:
                self._settled.add((queue, number))
                self._dropped.add((queue, number))

    def delivered(self, queue: str, number: int) -> bool:
        """Whether a message was delivered."""
        return (queue, number) in self._delivered

    # --- the end --------------------------------------------------------------------------------

    def judge(self) -> Verdict:
        """Everything is over, and the queues were drained, or looked at (`keeps`)."""
        found = self._verdict
        found.lost = []
        for number in sorted(self._confirmed):
            for queue in self._queues[number]:
                item = (queue, number)
                if item not in self._settled and item not in self._kept:
                    how = "was delivered once" if item in self._delivered else "never came"
                    found.lost.append(f"message {number} of {queue!r} was confirmed; it {how}")
        found.split = [text for each in self._transactions for text in self._halves(each)]
        return found

    def _halves(self, transaction: Transaction) -> Iterator[str]:
        """What is wrong with what became of a transaction in the lives after its own."""
        puts = [item for item in transaction.puts if item not in self._dropped]
        takes = [item for item in transaction.takes if item not in self._dropped]
        there = [item for item in puts if self._met.get(item, 0) > transaction.life]
        # One that was settled before the end of that life may have been on disk or not.
        gone = [item for item in puts if item not in there and item not in self._settled]
        back = [item for item in takes if self._met.get(item, 0) > transaction.life]
        for some, others, text in (
            (there, gone, "message {1} of {0!r} was there later, {3} of {2!r} was not"),
            (there, back, "message {1} of {0!r} was there later, acknowledged {3} of {2!r} too"),
        ):
            if some and others:
                yield "a transaction: " + text.format(*some[0], *others[0])
        if back and len(back) < len(takes):
            yield f"a transaction: {len(back)} of {len(takes)} acknowledged messages came back"
        if gone and takes and not back:
            yield "a transaction: message {1} of {0!r} is lost, what it acknowledged too".format(
                *gone[0]
            )
