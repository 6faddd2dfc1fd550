"""Consumer selection: which consumer of a queue gets the next message.

Consumers of equal priority are served round robin, those of higher priority first while they are
ready. With a single active consumer the others wait until it is removed.

    priority 5   Rank   head -> a -> b -> c -> a ...      the head is next
    priority 0   Rank   head -> d -> d ...

Each rank is a ring, so adding, removing and serving a consumer takes constant time: there may be
100,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from harebell.base.c_types import C, Cdef, Done, i32, isize
from harebell.base.work import Work
from harebell.model.consumer import Consumer

_DISMISS_UNITS = 4


class Rank:
    """The consumers of one priority, in a ring.

    Args:
        priority: higher numbers are served first.

    Attributes:
        head: the consumer that is next; None if the ring is empty, which no queue keeps.
        count: the number of consumers.
    """

    def __init__(self, priority: i32) -> None:
        self.priority = priority
        self.head: Consumer | None = None
        self.count: isize = 0

    def add(self, consumer: Consumer) -> Cdef[Done]:
        """Add a consumer at the end of the round robin."""
        head = self.head
        if head is None or head.before is None:
            self.head = consumer.before = consumer.after = consumer
        else:
            last: Consumer = head.before
            consumer.before, consumer.after = last, head
            last.after = head.before = consumer
        self.count += 1
        return 0

    def remove(self, consumer: Consumer) -> Cdef[Done]:
        """Remove a consumer; the order of the others does not change."""
        before: Consumer | None
        after: Consumer | None
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
    """The consumers of one queue.

    Args:
        single: whether there is a single active consumer.
        preempts: whether a consumer of higher priority replaces the active one.

    Attributes:
        count: how many there are.
    """

    def __init__(self, single: bool = False, preempts: bool = False) -> None:
        self.count: isize = 0
        self._single = single
        self._preempts = preempts
        self._active: Consumer | None = None
        self._ranks: list[Rank] = []
        # The consumer if there is one alone, as most queues have: it needs no round robin.
        self._sole: Consumer | None = None
        # How many messages of its run the next consumer has got.
        self._of_run: i32 = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Consumer]:
        """Iterate over a copy: highest priority first, then round robin order."""
        return iter(self.in_order())

    def in_order(self) -> C[list[Consumer]]:
        """Return all consumers, highest priority first, then in round robin order."""
        consumers: list[Consumer] = []
        rank: Rank
        for rank in self._ranks:
            consumer: Consumer | None = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                consumers.append(consumer)
                consumer = consumer.after
        return consumers

    def first(self) -> C[Consumer | None]:
        """Return the consumer that is next; None if there is none."""
        return self._ranks[0].head if self.count else None

    def active_tag(self) -> str | None:
        """Return the tag of the single active consumer; None without one."""
        return self._active.tag if self._single and self._active is not None else None

    def add(self, consumer: Consumer) -> Done:
        """Add a consumer after those of equal priority."""
        rank = self._rank_of(consumer)
        if rank is None:
            rank = Rank(consumer.priority)
            index: isize = len(self._ranks)
            while index and self._ranks[index - 1].priority < rank.priority:
                index -= 1
            self._ranks.insert(index, rank)
        rank.add(consumer)
        self.count += 1
        self._sole = consumer if self.count == 1 else None
        # The first one stays active; only quorum queues change to a higher priority (`active`).
        if self._single and self._active is None:
            self._active = consumer
            consumer.is_active(True)
        elif self._preempts:
            # Now, and not with the next message: both are told.
            self.active()
        return 0

    def has_active(self, consumer: Consumer) -> bool:
        """True if a consumer is the single active one."""
        return self._active is consumer

    def remove(self, consumer: Consumer) -> C[bool]:
        """Remove a consumer; False if it is not there."""
        rank = self._rank_of(consumer)
        # A rank of this priority may exist though the consumer was removed before.
        if rank is None or consumer.after is None:
            return False
        rank.remove(consumer)
        self.count -= 1
        if rank.count == 0:
            self._ranks.remove(rank)
        self._sole = self.first() if self.count == 1 else None
        if consumer is self._active:
            # RabbitMQ, too, takes the next one by priority, then by the order of registration. Its
            # unsettled deliveries do not delay the hand-over: they are requeued or settled later.
            active: Consumer | None = self.first()
            self._active = active
            if active is not None and self._single:
                active.is_active(True)
        return True

    def take_all(self) -> C[list[Consumer]]:
        """Remove all consumers, and return them."""
        consumers = self.in_order()
        consumer: Consumer
        for consumer in consumers:
            # The ring is a cycle of references, which only the garbage collector would free.
            consumer.before = consumer.after = None
        self._ranks = []
        self._sole = None
        self._active = None
        self.count = 0
        return consumers

    def _rank_of(self, consumer: Consumer) -> C[Rank | None]:
        # Binary search: every consumer may have a priority of its own.
        ranks = self._ranks
        low: isize
        high: isize
        low, high = 0, len(ranks)
        while low < high:
            middle: isize = (low + high) // 2
            rank: Rank = ranks[middle]
            if rank.priority == consumer.priority:
                return rank
            if rank.priority > consumer.priority:
                low = middle + 1
            else:
                high = middle
        return None

    # --- whose turn it is -----------------------------------------------------------------------

    def pick(self, run: i32 = 1) -> C[Consumer | None]:
        """Return the next ready consumer, and advance the round robin of its rank.

        Args:
            run: how many times a consumer is picked before the next one.
        """
        if self._single:
            return self.active()
        sole: Consumer | None = self._sole
        if sole is not None:
            return sole if (sole.group is None or not sole.group.ended) and sole.ready() else None
        rank: Rank
        for rank in self._ranks:
            consumer: Consumer | None = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                group = consumer.group
                if (group is None or not group.ended) and consumer.ready():
                    # Consumers that are not ready keep their turn only until another one is served.
                    self._of_run += 1
                    if self._of_run < run:
                        rank.head = consumer
                    else:
                        rank.head = consumer.after
                        self._of_run = 0
                    return consumer
                consumer = consumer.after
        return None

    def ready_alone(self) -> C[Consumer | None]:
        """Return the only consumer, if it takes each message without acknowledgement, and now."""
        sole: Consumer | None = self._sole
        if self._single or sole is None or sole.group is not None or not sole.no_ack:
            return None
        return sole if sole.ready() else None

    def pick_selective(self, lowest: i32) -> C[Consumer | None]:
        """Return the next ready selective consumer, and advance the round robin of its rank.

        Args:
            lowest: those of lower priority are left out.
        """
        if self._single:
            active = self.active()
            return None if active is None or active.group is None else active
        rank: Rank
        for rank in self._ranks:
            if rank.priority < lowest:
                break
            consumer: Consumer | None = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                group = consumer.group
                if group is not None and not group.ended and consumer.ready():
                    rank.head = consumer.after
                    return consumer
                consumer = consumer.after
        return None

    def may_begin_with(self, consumer: Consumer) -> C[bool]:
        """True if a consumer may be served out of its turn: up to its prefetch, or it is alone."""
        if self._sole is not None:
            return self._sole is consumer and not self._single
        return (
            not self._single
            and consumer.prefetch > 0
            and consumer.after is not None
            and len(self._ranks) == 1
        )

    def any_ready(self) -> bool:
        """True if `pick` would return a consumer that takes the next message."""
        if self._single:
            return self.active() is not None
        for rank in self._ranks:
            consumer = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                if consumer.group is None and consumer.ready():
                    return True
                consumer = consumer.after
        return False

    def pick_least_busy(self) -> C[Consumer | None]:
        """Return the ready consumer of the highest priority with the fewest deliveries.

        Selective consumers are left out. `served` advances the round robin.
        """
        if self._single:
            active = self.active()
            return None if active is None or active.group is not None else active
        rank: Rank
        for rank in self._ranks:
            best: Consumer | None = None
            consumer: Consumer | None = rank.head
            for _ in range(rank.count):
                if consumer is None:
                    break
                if (
                    consumer.group is None
                    and (best is None or consumer.unacked < best.unacked)
                    and consumer.ready()
                ):
                    best = consumer
                consumer = consumer.after
            if best is not None:
                return best
        return None

    def served(self, consumer: Consumer) -> Done:
        """Advance the round robin past a consumer."""
        rank = self._rank_of(consumer)
        if rank is not None and consumer.after is not None:
            rank.head = consumer.after
        return 0

    def active(self) -> C[Consumer | None]:
        """Return the single active consumer if it is ready.

        If a consumer of higher priority can replace it, it gets no more messages until its
        deliveries are settled; then the other one becomes active.
        """
        active: Consumer | None = self._active
        if active is None:
            return None
        if self._preempts:
            first = self.first()
            if first is not None and first.priority > active.priority:
                if active.unacked:
                    # As in RabbitMQ: two consumers must never have deliveries at the same time.
                    return None
                active.is_active(False)
                active = self._active = first
                active.is_active(True)
        if active.group is not None and active.group.ended:
            return None
        return active if active.ready() else None


def dismiss(consumers: list[Consumer], work: Work) -> None:
    """Notify consumers that their queue was deleted, in slices: there may be 100,000.

    Args:
        consumers: the consumers of the queue.
        work: the work budget, charged for each call.
    """
    remaining = iter(consumers)

    def step() -> bool:
        for consumer in remaining:
            consumer.queue_deleted()
            if work.charge(_DISMISS_UNITS):
                return False
        return True

    if not step():
        work.later(step)
