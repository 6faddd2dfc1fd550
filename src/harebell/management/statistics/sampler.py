"""Sample the counters every few seconds, in slices.

A pass looks at every queue, exchange, channel and connection, and stores a sample of those that
have changed. One that never had traffic costs the comparison of a number. Histories of single
things are kept for STATISTICS_HISTORIES of them; further ones have rates and no history.

A slice is so many looks, and not so many things: a queue may have counters of a thousand exchanges,
and a connection of thousands of channels, each of which has thousands.

    key of a sample        what
    a queue, ...           itself
    Counters               those of a channel for one exchange or queue
    (queue, exchange)      arrivals of a queue that has several exchanges
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from harebell.admin.sampling_plan import Retention, SamplingPlan
from harebell.admin.statistics import CHANNEL_STATS, NO_RATES, Series, value_of
from harebell.base.counters import Churn, Counters
from harebell.base.slices import Slices, in_pieces
from harebell.front.limits import STATISTICS_SLICE_OBJECTS
from harebell.management.limits import STATISTICS_HISTORIES
from harebell.management.statistics.history import History, Latest, Unchanged

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.totals import Sums, VhostAndVersion
    from harebell.model.broker import Broker
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue

_MS = 1000
_LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")
_OCTETS = ("recv_oct", "send_oct")
_QUEUE = (*CHANNEL_STATS, *_LENGTHS)
_EXCHANGE = ("publish_in", "publish_out")
_ARRIVALS = ("publish",)
_VHOST = (*CHANNEL_STATS, *_LENGTHS, *_OCTETS)
_BROKER = (*_VHOST, *Churn.NAMES)
_USUAL = SamplingPlan()
_BROKER_KEY = "broker"
_NODE_KEY = "node"


class Sampler:
    """The samples of a broker; `Statistics` for commands.

    Args:
        broker: whose queues and exchanges are sampled.
        registry: its connections.
        node: returns the names and the values of the figures of the process.
        wake: called when samples are wanted and none are taken.
        plan: what is sampled.
    """

    def __init__(
        self,
        broker: Broker,
        registry: ConnectionRegistry,
        node: Callable[[], dict[str, int]],
        wake: Callable[[], object] = lambda: None,
        plan: SamplingPlan = _USUAL,
    ) -> None:
        self.plan = plan
        self._broker = broker
        self._registry = registry
        self._node = node
        self._wake = wake
        self._latest = Latest()
        self._kept_seconds = max([each.seconds for each in plan.objects], default=0)
        self._unchanged = Unchanged(self._latest, self._kept_seconds) if plan.samples else NO_RATES
        self._pass = 0
        # The time of the first pass: nothing is known from before.
        self._first = 0
        # By the thing itself: queues, exchanges, channels and connections compare by identity.
        self._things: dict[object, History] = {}
        # By the name of the vhost, and for broker and node.
        self._vhosts: dict[str, History] = {}
        self._whole: dict[str, History] = {}

    @property
    def every_ms(self) -> int:
        """Milliseconds between two samples; 0 if none are taken."""
        return round(self.plan.seconds * _MS) if self.plan.samples else 0

    # --- for commands -----------------------------------------------------------------------------

    def series(self, resource: object) -> Series:
        """Return the samples of a queue, exchange, channel, connection or vhost (by its name)."""
        # Asked for thousands of queues at a time: samples are taken for good once they are taken.
        if not self._latest.at:
            self._wake()
        history = (
            self._vhosts.get(resource) if isinstance(resource, str) else self._things.get(resource)
        )
        return self._unchanged if history is None else history

    def broker(self) -> Series:
        """Return the samples of the whole broker."""
        self._wake()
        return self._whole.get(_BROKER_KEY, self._unchanged)

    def node(self) -> Series:
        """Return the samples of the process."""
        self._wake()
        return self._whole.get(_NODE_KEY, self._unchanged)

    def idle_since(self, moved_at: int) -> int | None:
        """Return since when a thing is idle that has last changed then; None if it is not idle.

        Args:
            moved_at: milliseconds since 1970; 0 for never.
        """
        latest = self._latest.at
        if not latest or moved_at >= latest:
            return None
        return moved_at or self._first

    def tracked(self, resource: object) -> bool:
        """True if there are samples of a thing."""
        return resource in self._things

    # --- a pass -----------------------------------------------------------------------------------

    def take(self, now: int) -> Slices[None]:
        """Take a sample of everything that has changed.

        Args:
            now: milliseconds since 1970.
        """
        if not self.plan.samples:
            return
        self._pass += 1
        self._first = self._first or now
        since = self._latest.at or now
        lengths: dict[str, tuple[int, int]] = {}
        for looks, _ in enumerate(self._looks(lengths, now, since), 1):
            if looks % STATISTICS_SLICE_OBJECTS == 0:
                yield
        self._take_totals((yield from self._registry.sums()), lengths, now, since)
        self._latest.add(now)
        yield from self._sweep(now)

    def _looks(self, lengths: dict[str, tuple[int, int]], now: int, since: int) -> Iterator[None]:
        """Sample everything; yield after each look at counters.

        Args:
            lengths: gets the ready and the unacknowledged messages of each vhost.
            now: the time of this pass.
            since: the time of the pass before.
        """
        for vhost in list(self._broker.vhosts.values()):
            ready = unacked = 0
            for queue in list(vhost.queues.values()):
                some, out = queue.ready_count(), queue.unacked
                ready, unacked = ready + some, unacked + out
                yield from self._take_queue(queue, some, out, now, since)
            lengths[vhost.name] = (ready, unacked)
            for exchange in list(vhost.exchanges.values()):
                self._take_exchange(exchange, now, since)
                yield
        for connection in list(self._registry.connections):
            yield from self._take_connection(connection, now, since)

    def _take_queue(
        self, queue: Queue, ready: int, unacked: int, now: int, since: int
    ) -> Iterator[None]:
        """Sample a queue, and what it counts by exchange."""
        first = not queue.counters.seen
        if queue.counters.moved(now) or queue in self._things:
            values = (*_values(queue.counters), ready + unacked, ready, unacked)
            self._store(queue, _QUEUE, values, now, since, first=first)
            if queue.has_sources and self.plan.samples_details:
                for exchange, count in queue.arrivals().items():
                    key = (queue, exchange)
                    kept = self.plan.retention_of_details
                    self._store(key, _ARRIVALS, (count,), now, since, first=first, kept=kept)
                    yield
        yield

    def _take_exchange(self, exchange: Exchange, now: int, since: int) -> None:
        first = not exchange.seen
        if exchange.moved() or exchange in self._things:
            values = (exchange.published, exchange.routed)
            self._store(exchange, _EXCHANGE, values, now, since, first=first)

    def _take_connection(self, connection: BaseConnection, now: int, since: int) -> Iterator[None]:
        traffic = connection.traffic
        first = not traffic.seen
        if traffic.moved() or connection in self._things:
            values = (traffic.recv_oct, traffic.send_oct)
            self._store(connection, _OCTETS, values, now, since, first=first)
        yield
        for channel in list(connection.channels.values()):
            counters = channel.counters
            first = not counters.seen
            if counters.moved(now) or channel in self._things:
                self._store(channel, CHANNEL_STATS, _values(counters), now, since, first=first)
                if channel.details is not None and self.plan.samples_details:
                    yield from self._take_details(channel, now, since)
            yield

    def _take_details(self, channel: AnyChannel, now: int, since: int) -> Iterator[None]:
        """Sample what a channel counts by exchange and by queue."""
        if channel.confirms is not None:
            channel.confirms.count_details()
        details, kept = channel.details, self.plan.retention_of_details
        assert details is not None, "the caller has checked it"
        for table in (details.exchanges, details.queues):
            for counters in list(table.values()):
                first = not counters.seen
                if counters.moved(now) or counters in self._things:
                    values = _values(counters)
                    self._store(counters, CHANNEL_STATS, values, now, since, first=first, kept=kept)
                yield

    def _store(
        self,
        resource: object,
        names: Sequence[str],
        values: Sequence[int],
        now: int,
        since: int,
        *,
        first: bool,
        kept: Sequence[Retention] | None = None,
    ) -> None:
        """Store the sample of a thing if it has changed.

        Args:
            resource: what has the counters, and gets the samples.
            names: the names of its values.
            values: the counters now, in the order of the names.
            now: the time of this pass.
            since: the time of the pass before.
            first: whether all values were 0 at the pass before.
            kept: how long samples are kept; None as for queues.
        """
        history = self._things.get(resource)
        if history is None:
            kept = self.plan.objects if kept is None else kept
            kept = kept if len(self._things) < STATISTICS_HISTORIES else ()
            before = [0] * len(values) if first else values
            history = History(names, before, since, kept, self._latest)
            self._things[resource] = history
        history.checked = self._pass
        if tuple(values) != history.last:
            history.add(now, values, since)

    def _take_totals(
        self,
        sums: dict[VhostAndVersion, Sums],
        lengths: dict[str, tuple[int, int]],
        now: int,
        since: int,
    ) -> None:
        """Sample the vhosts, the broker and the node."""
        everything = [0] * len(_VHOST)
        for name, (ready, unacked) in lengths.items():
            values = _sum_of(sums, name, ready, unacked)
            everything = [a + b for a, b in zip(everything, values, strict=True)]
            self._add(self._vhosts, name, _VHOST, values, now, since)
        # Connections without a vhost, and vhosts that were deleted.
        for name in {place[0] for place in sums} - lengths.keys():
            values = _sum_of(sums, name, 0, 0)
            everything = [a + b for a, b in zip(everything, values, strict=True)]
        for name in self._vhosts.keys() - lengths.keys():
            del self._vhosts[name]
        churn = self._broker.churn
        whole = (*everything, *(getattr(churn, name) for name in Churn.NAMES))
        self._add(self._whole, _BROKER_KEY, _BROKER, whole, now, since)
        node = self._node()
        self._add(self._whole, _NODE_KEY, tuple(node), tuple(node.values()), now, since)

    def _add(
        self,
        histories: dict[str, History],
        key: str,
        names: Sequence[str],
        values: Sequence[int],
        now: int,
        since: int,
    ) -> None:
        """Store the sample of a total."""
        history = histories.get(key)
        if history is None:
            history = History(names, values, since, self.plan.totals, self._latest)
            histories[key] = history
        history.add(now, values, since)

    def _sweep(self, now: int) -> Slices[None]:
        """Forget what is gone, and what has not changed for longer than samples are kept."""
        oldest = now - self._kept_seconds * _MS
        for pairs in in_pieces(list(self._things.items()), STATISTICS_SLICE_OBJECTS):
            for resource, history in pairs:
                if history.checked != self._pass or history.at < oldest:
                    del self._things[resource]
            yield


def _values(counters: Counters) -> tuple[int, ...]:
    return (*counters.values(), value_of(counters, "deliver_get"))


def _sum_of(
    sums: dict[tuple[str, str], Sums], vhost: str, ready: int, unacked: int
) -> tuple[int, ...]:
    """Return the values of a vhost, over all versions."""
    counters, received, sent = Counters(), 0, 0
    for (name, _), each in sums.items():
        if name == vhost:
            counters.add(each.counters)
            received += each.traffic.recv_oct
            sent += each.traffic.send_oct
    return (*_values(counters), ready + unacked, ready, unacked, received, sent)
