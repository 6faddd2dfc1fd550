"""Counters of one channel by exchange and by queue, as RabbitMQ's "fine" statistics.

    channel 1   exchanges   "orders"  publish 120, confirm 118
                            ""        publish 3
                queues      "jobs"    deliver 40, ack 38

The counters of the exchange that is published to are kept by the channel beside the exchange, and
those of a queue by each of its consumers, so that a message costs an increment and no lookup. They
stay when a consumer is cancelled. A channel that was idle all the time has none.
"""

from __future__ import annotations

from typing import Protocol

from harebell.base.counters import Counters
from harebell.front.limits import STATISTICS_CHANNEL_DETAILS

_MAX = STATISTICS_CHANNEL_DETAILS


class ChannelDetails:
    """The counters of a channel by exchange and by queue.

    Of more than STATISTICS_CHANNEL_DETAILS names the oldest are forgotten.

    Attributes:
        exchanges: `publish`, `confirm`, `return_unroutable` and `drop_unroutable`, by exchange.
        queues: deliveries, gets and acknowledgements, by queue.
    """

    __slots__ = ("exchanges", "queues")

    def __init__(self) -> None:
        self.exchanges: dict[str, Counters] = {}
        self.queues: dict[str, Counters] = {}

    def exchange(self, name: str) -> Counters:
        """Return the counters of what is published to an exchange."""
        exchange = self.exchanges.get(name)
        return _added(self.exchanges, name) if exchange is None else exchange

    def queue(self, name: str) -> Counters:
        """Return the counters of what is delivered from a queue."""
        queue = self.queues.get(name)
        return _added(self.queues, name) if queue is None else queue


def _added(table: dict[str, Counters], name: str) -> Counters:
    if len(table) >= _MAX:
        # A client that publishes to ever new names must not fill the memory.
        del table[next(iter(table))]
    counters = table[name] = Counters()
    return counters


class Detailed(Protocol):
    """A channel or a session, as far as its details need it."""

    details: ChannelDetails | None


def details_of(channel: Detailed) -> ChannelDetails:
    """Return the counters of a channel by exchange and by queue, made on first use."""
    details = channel.details
    if details is None:
        details = channel.details = ChannelDetails()
    return details
