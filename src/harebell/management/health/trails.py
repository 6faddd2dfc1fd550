"""What a queue, and the node, have done since the last look: what rules look at.

rate of now      change since the last look, per second
steady rate      an average of these over about a minute, which begins at 0
usual age        an average over about a day, which an incident of some hours hardly changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp
from typing import TYPE_CHECKING, Any

from harebell.management.limits import RATE_SECONDS, USUAL_SECONDS

if TYPE_CHECKING:
    from harebell.base.histogram import Histogram
    from harebell.management.metrics.source import Source
    from harebell.model.dead_letter import DeadLetters
    from harebell.model.queue.contract import Queue

_MS = 1_000


def averaged(mean: float, value: float, passed: float, seconds: float) -> float:
    """Return an average of the last values, in which older ones count less.

    Args:
        mean: the average so far.
        value: the value of the last seconds.
        passed: how many seconds these were.
        seconds: how long a value counts, about.
    """
    return mean + (value - mean) * (1 - exp(-passed / seconds))


class Change:
    """How fast a number changes.

    Attributes:
        last: the number at the last look.
        rate: its change per second since the look before.
        mean: the average of the rates.
    """

    __slots__ = ("last", "mean", "rate")

    def __init__(self, value: float) -> None:
        self.last = value
        self.rate = self.mean = 0.0

    def look(self, value: float, passed: float) -> None:
        """Note the number after some seconds."""
        self.rate = (value - self.last) / passed
        self.last = value
        self.mean = averaged(self.mean, self.rate, passed, RATE_SECONDS)


class QueueTrail:
    """What a queue with messages has done.

    Args:
        queue: it.
        now: milliseconds since 1970.

    Attributes:
        queue: as given.
        now: the time of the last look.
        consumers: how many consumers it had then.
        ready: its ready messages.
        byte_count: the bytes of its ready messages, where a limit counts them.
        delivered, redelivered: its deliveries, and those that were marked as redelivered.
        letters: its dead letters by reason; empty without any.
        parks: whether dead letters come here, so that it need not have a consumer.
        alone_since: since when it has messages and nothing takes any; 0 if it is not so.
        still_since: since when its consumers have messages that they do not acknowledge, and others
            wait; 0 if it is not so.
        age: of the oldest ready message, in seconds.
        usual: the usual age.
        checked: the number of the last pass that has seen the queue.
        troubled: whether a rule has seen something of it at this look.
    """

    __slots__ = (
        *("_acked", "_heads", "age", "alone_since", "byte_count", "checked", "consumers"),
        *("delivered", "letters", "now", "parks", "queue", "ready", "redelivered"),
        *("still_since", "troubled", "usual"),
    )

    def __init__(self, queue: Queue, now: int) -> None:
        counters = queue.counters
        self.queue = queue
        self.now = now
        self.consumers = len(queue.consumers)
        self.ready = Change(queue.ready_count())
        self.byte_count = Change(_bytes_of(queue))
        self.delivered = Change(_delivered(queue))
        self.redelivered = Change(counters.redeliver)
        self.letters: dict[str, Change] = {}
        self._acked = counters.ack
        self.parks = False
        self.alone_since = self.still_since = 0
        self.age = 0.0
        self.usual = 0.0
        self._heads: dict[Any, tuple[int, int]] = {}
        self.checked = 0
        self.troubled = False

    def look(self, now: int) -> None:
        """Note what the queue has done since the last look."""
        queue, passed = self.queue, (now - self.now) / _MS
        self.now = now
        if passed <= 0:  # the clock was set back
            return
        ready, delivered, acked = queue.ready_count(), _delivered(queue), queue.counters.ack
        died = self._look_at_letters(passed)
        moved = died or delivered != self.delivered.last or acked != self._acked
        self.consumers = len(queue.consumers)
        self.ready.look(ready, passed)
        self.byte_count.look(_bytes_of(queue), passed)
        self.delivered.look(delivered, passed)
        self.redelivered.look(queue.counters.redeliver, passed)
        self._acked = acked
        waits = bool(ready) and not moved and not queue.leased
        alone = waits and not self.consumers and not queue.unacked
        self.alone_since = (self.alone_since or now) if alone else 0
        still = waits and self.consumers > 0 and queue.unacked > 0
        self.still_since = (self.still_since or now) if still else 0
        self.age = self._age(now) if ready else 0.0
        self.usual = averaged(self.usual, self.age, passed, USUAL_SECONDS)
        self.troubled = False

    def _look_at_letters(self, passed: float) -> bool:
        """Note the dead letters by reason; true if there are new ones."""
        letters: DeadLetters | None = getattr(self.queue, "dead_letters", None)
        if letters is None:
            self.letters.clear()
            return False
        for reason, count in letters.sent.items():
            change = self.letters.setdefault(reason, Change(0))
            # Another policy begins to count anew.
            change.last = min(change.last, count)
            change.look(count, passed)
        return any(change.rate for change in self.letters.values())

    def _age(self, now: int) -> float:
        """Return the age of the oldest ready message; the head of a queue is read once."""
        heads: dict[Any, tuple[int, int]] = {}
        for log, position in self.queue.heads_by_log():
            known = self._heads.get(log)
            if known is None or known[0] != position:
                # A large message on disk is not read for this.
                far = log.has_large and log.is_spilled(position)
                known = (position, 0 if far else log.time_of(position))
            heads[log] = known
        self._heads = heads
        oldest = min((moment for _, moment in heads.values() if moment), default=now)
        return max(now - oldest, 0) / _MS


def _delivered(queue: Queue) -> int:
    counted = queue.counters
    return counted.deliver + counted.deliver_no_ack + counted.get + counted.get_no_ack


def _bytes_of(queue: Queue) -> int:
    limits: Any = getattr(queue, "limits", None)
    return limits.byte_count if limits is not None and limits.counts else 0


class NodeTrail:
    """What the process has done.

    Args:
        source: the broker.
        brokers: returns the brokers that share its store.

    Attributes:
        source: as given.
        brokers: as given.
        now: the time of the last look, in milliseconds since 1970.
        memory: the memory of the process.
        disk: the free space, above the limit.
        opened: connections that were opened.
        syncs: the number of syncs of commits since the last look, and their mean in seconds.
    """

    def __init__(self, source: Source, brokers: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self.source = source
        self.brokers = brokers
        self.now = 0
        self.memory = Change(source.broker.gauge.resident())
        self.disk = Change(source.storage.free)
        self.opened = Change(source.broker.churn.connection_created)
        self.syncs = (0, 0.0)
        self._synced = self._all_syncs()

    def look(self, now: int) -> None:
        """Note what the process has done since the last look."""
        passed = (now - self.now) / _MS
        first = not self.now
        self.now = now
        if first or passed <= 0:
            return
        source = self.source
        self.memory.look(source.broker.gauge.resident(), passed)
        self.disk.look(source.storage.free, passed)
        self.opened.look(source.broker.churn.connection_created, passed)
        count, total = self._all_syncs()
        before, total_before = self._synced
        some = count - before
        self.syncs = (some, (total - total_before) / some if some > 0 else 0.0)
        self._synced = count, total

    def _all_syncs(self) -> tuple[int, float]:
        both: tuple[Histogram, ...] = (self.source.flusher.syncs, self.source.storage.files.syncs)
        return sum([each.count for each in both]), sum([each.total for each in both])
