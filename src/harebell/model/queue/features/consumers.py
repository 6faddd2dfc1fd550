"""The consumers of a queue: who is there, and whose turn it is.

Consumers of equal priority take turns; higher ones come first as long as they are ready. With a
single active consumer the others wait until it goes.

    priority 5   Rank   head -> a -> b -> c -> a ...      the head is asked first
    priority 0   Rank   head -> d -> d ...

Each rank is a ring, so a consumer comes, goes and is served without a look at the others: there may
be a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterator

from harebell.base.work import Work
from harebell.model.consumer import Consumer

_DISMISS_UNITS = 4


class Rank:
    """The consumers of one priority, in a ring.

    Args:
        priority: of all of them.

    Attributes:
        head: who is asked first; None in an empty ring, which no queue keeps.
        count: how many there are.
    """

    __slots__ = ("count", "head", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.head: Consumer | None = None
        self.count = 0

    def add(self, consumer: Consumer) -> int:
        """Let a consumer have its turn after everybody who is there."""
        head = self.head
        if head is None or head.before is None:
            self.head = consumer.before = consumer.after = consumer
        else:
            last = head.before
            consumer.before, consumer.after = last, head
            last.after = head.before = consumer
        self.count += 1
        return 0

    def remove(self, consumer: Consumer) -> int:
        """Close the ring where a consumer was; whose turn it is does not change for others."""
        before, after = consumer.before, consumer.after
        if before is None or after is None:
            return 0
        before.after, after.before = after, before
        if self.head is consumer:
            self.head = None if after is consumer else after
        consumer.before = consumer.after = None
        self.count -= 1
        return 0


class Consumers:
    """Those who consume from a queue.

    Args:
        single: whether only one of them is served at a time.
        preempts: whether a consumer of higher priority takes over from that one.

    Attributes:
        count: how many there are.
    """

    __slots__ = ("_active", "_preempts", "_ranks", "_single", "count")

    def __init__(self, single: bool = False, preempts: bool = False) -> None:
        self.count = 0
        self._single = single
        self._preempts = preempts
        self._active: Consumer | None = None
        self._ranks: list[Rank] = []

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Consumer]:
        """Those who are there now, the highest first, then by turn; they may go meanwhile."""
        return iter(self.in_order())

    def in_order(self) -> list[Consumer]:
        """All of them, the highest first, then by turn."""
        found: list[Consumer] = []
        for rank in self._ranks:
            consumer = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                found.append(consumer)
                consumer = consumer.after
        return found

    def first(self) -> Consumer | None:
        """Who is asked first; None when nobody is there."""
        return self._ranks[0].head if self.count else None

    def add(self, consumer: Consumer) -> int:
        """Take a new consumer in, after those of the same priority, and before lower ones."""
        rank = self._rank_of(consumer)
        if rank is None:
            rank = Rank(consumer.priority)
            at = len(self._ranks)
            while at and self._ranks[at - 1].priority < rank.priority:
                at -= 1
            self._ranks.insert(at, rank)
        rank.add(consumer)
        self.count += 1
        if self._single and self._active is None:
            self._active = consumer
        return 0

    def remove(self, consumer: Consumer) -> bool:
        """Let a consumer go; False for one that is not there."""
        rank = self._rank_of(consumer)
        if rank is None or consumer.after is None:
            return False
        rank.remove(consumer)
        self.count -= 1
        if rank.count == 0:
            self._ranks.remove(rank)
        if consumer is self._active:
            self._active = self.first()
        return True

    def take_all(self) -> list[Consumer]:
        """Let all of them go; returns who was there."""
        left = self.in_order()
        for consumer in left:
            consumer.before = consumer.after = None
        self._ranks = []
        self._active = None
        self.count = 0
        return left

    def _rank_of(self, consumer: Consumer) -> Rank | None:
        # By halves, for every consumer may have a priority of its own.
        ranks = self._ranks
        low, high = 0, len(ranks)
        while low < high:
            middle = (low + high) // 2
            rank = ranks[middle]
            if rank.priority == consumer.priority:
                return rank
            if rank.priority > consumer.priority:
                low = middle + 1
            else:
                high = middle
        return None

    # --- whose turn it is -----------------------------------------------------------------------

    def pick(self) -> Consumer | None:
        """The consumer whose turn it is among those that are ready; it goes behind its equals."""
        if self._single:
            return self.active()
        for rank in self._ranks:
            consumer = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                if consumer.ready():
                    rank.head = consumer.after
                    return consumer
                consumer = consumer.after
        return None

    def any_ready(self) -> bool:
        """Whether `pick` would find somebody."""
        if self._single:
            return self.active() is not None
        for rank in self._ranks:
            consumer = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                if consumer.ready():
                    return True
                consumer = consumer.after
        return False

    def pick_least_busy(self) -> Consumer | None:
        """Of the ready consumers of the highest priority the one with the least to do.

        Its turn is over only with `served`.
        """
        if self._single:
            return self.active()
        for rank in self._ranks:
            best: Consumer | None = None
            consumer = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                if (best is None or consumer.unacked < best.unacked) and consumer.ready():
                    best = consumer
                consumer = consumer.after
            if best is not None:
                return best
        return None

    def served(self, consumer: Consumer) -> int:
        """A consumer got something: those behind it come first."""
        rank = self._rank_of(consumer)
        if rank is not None and consumer.after is not None:
            rank.head = consumer.after
        return 0

    def active(self) -> Consumer | None:
        """The single active consumer if it is ready.

        Where it can be replaced by one of higher priority it gets nothing more until it has
        settled what it has; then the other one is active.
        """
        active = self._active
        if active is None:
            return None
        if self._preempts:
            first = self.first()
            if first is not None and first.priority > active.priority:
                if active.unacked:
                    return None
                active = self._active = first
        return active if active.ready() else None


def dismiss(consumers: list[Consumer], work: Work) -> None:
    """Tell consumers that their queue is gone, in slices: there may be a hundred thousand.

    Args:
        consumers: of the queue, which knows them no longer.
        work: counts what is done.
    """
    left = iter(consumers)

    def step() -> bool:
        for consumer in left:
            consumer.queue_deleted()
            if work.charge(_DISMISS_UNITS):
                return False
        return True

    if not step():
        work.later(step)
