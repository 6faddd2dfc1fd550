"""Sums of the whole broker, which the metrics of messages, connections and channels have.

The counters are sums of what is open and what has ended. They are summed in slices, and a channel
that closes meanwhile may be missing from one sum. So the largest value so far is written: a counter
that falls would count as a restart of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.counters import Counters, Traffic
from harebell.base.slices import Slices
from harebell.front.limits import STATISTICS_SLICE_OBJECTS

if TYPE_CHECKING:
    from harebell.front.common.totals import Sums, VhostAndVersion
    from harebell.management.metrics.source import Source

PROTOCOLS = {
    "0-8": "amqp08",
    "0-9": "amqp09",
    "0-9-1": "amqp091",
    "0-10": "amqp010",
    "0-10t": "amqp010t",
    "1-0": "amqp10",
}
"""The label `protocol` of each version of AMQP."""
USUAL = "amqp091"
"""The protocol that is always there, with zeros at first: a rate needs two samples."""


class Totals:
    """The counters of the whole broker at one moment.

    Args:
        source: the broker.
        largest: the largest values that were written so far, by their name.

    Attributes:
        counters: of messages, by protocol.
        all: of messages.
        traffic: of bytes.
        publishers: channels that have published, by protocol.
        consumers: by protocol.
        channels: the number of channels.
    """

    def __init__(self, source: Source, largest: dict[str, tuple[int, ...]]) -> None:
        self._source = source
        self._largest = largest
        self.counters: dict[str, Counters] = {USUAL: Counters()}
        self.all = Counters()
        self.traffic = Traffic()
        self.publishers: dict[str, int] = {USUAL: 0}
        self.consumers: dict[str, int] = {USUAL: 0}
        self.channels = 0

    def gather(self) -> Slices[None]:
        """Sum everything; each step is one slice of work."""
        registry = self._source.registry
        sums = yield from registry.sums()
        publishers = {USUAL: 0}
        consumers = {USUAL: 0}
        channels = 0
        for piece in registry.in_pieces(STATISTICS_SLICE_OBJECTS):
            for connection in piece:
                protocol = PROTOCOLS.get(connection.version)
                if protocol is None or connection.closing:
                    continue
                channels += len(connection.channels)
                for channel in connection.channels.values():
                    published = channel.counters.publish > 0
                    publishers[protocol] = publishers.get(protocol, 0) + published
                    consuming = len(channel.consumers or ())
                    consumers[protocol] = consumers.get(protocol, 0) + consuming
            yield
        self.publishers, self.consumers, self.channels = publishers, consumers, channels
        self._keep(sums)

    def _keep(self, totals: dict[VhostAndVersion, Sums]) -> None:
        """Keep the sums by protocol and of all."""
        by_protocol = {USUAL: Counters()}
        everything, traffic = Counters(), Traffic()
        for (_, version), sums in totals.items():
            traffic.add(sums.traffic)
            everything.add(sums.counters)
            protocol = PROTOCOLS.get(version)
            if protocol is not None:
                by_protocol.setdefault(protocol, Counters()).add(sums.counters)
        self.counters, self.all, self.traffic = by_protocol, everything, traffic

    def never_less(self, what: str, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return values, each at least as large as at the last call for the same thing."""
        before = self._largest.get(what, values)
        largest = tuple([max(pair) for pair in zip(values, before, strict=True)])
        self._largest[what] = largest
        return largest
