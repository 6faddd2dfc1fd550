"""What passes between one channel, exchange or queue and another, as RabbitMQ lists it.

list                       of         has a row for each
publishes                  channel    exchange
deliveries                 channel    queue
incoming                   exchange   channel
outgoing                   exchange   queue
incoming                   queue      exchange
deliveries                 queue      channel
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.admin.command import Row
from harebell.admin.rows.connections import channel_details, consumer_row
from harebell.admin.statistics import Range, Series, message_stats, with_details
from harebell.base.counters import Counters
from harebell.base.slices import Slices
from harebell.front.limits import STATISTICS_SLICE_OBJECTS

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.front.common.channel_like import AnyChannel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

PUBLISH_STATS = ("publish", "confirm", "return_unroutable", "drop_unroutable")
"""What a channel counts by exchange."""
DELIVER_STATS = (
    *("deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty"),
    *("redeliver", "ack", "deliver_get"),
)
"""What a channel counts by queue."""


class QueueDetails(NamedTuple):
    """The channels of a queue.

    Args:
        consumers: a row for each.
        deliveries: what was delivered to each channel.
    """

    consumers: list[Any]
    deliveries: list[Row]


def counted_confirms(channel: AnyChannel) -> None:
    """Count the confirms of a channel by exchange, which is only done when they are read."""
    if channel.confirms is not None:
        channel.confirms.count_details()


def channel_publishes(
    context: AdminContext, channel: AnyChannel, period: Range | None
) -> list[Row]:
    """Return what a channel has published to each exchange that still exists."""
    details = channel.details
    if details is None:
        return []
    counted_confirms(channel)
    vhost = channel.vhost
    return [
        {
            "exchange": {"name": name, "vhost": vhost.name},
            "stats": _stats(context, counters, PUBLISH_STATS, period),
        }
        for name, counters in details.exchanges.items()
        if name in vhost.exchanges
    ]


def channel_deliveries(
    context: AdminContext, channel: AnyChannel, period: Range | None
) -> list[Row]:
    """Return what a channel was given by each queue that still exists."""
    details = channel.details
    if details is None:
        return []
    vhost = channel.vhost
    return [
        {
            "queue": {"name": name, "vhost": vhost.name},
            "stats": _stats(context, counters, DELIVER_STATS, period),
        }
        for name, counters in details.queues.items()
        if name in vhost.queues
    ]


def queue_incoming(
    context: AdminContext, vhost: VHost, queue: Queue, period: Range | None
) -> list[Row]:
    """Return how many messages a queue got from each exchange that still exists."""
    return [
        {
            "exchange": {"name": name, "vhost": vhost.name},
            "stats": _arrived(arrival_series(context, queue, name), count, period),
        }
        for name, count in queue.arrivals().items()
        if name in vhost.exchanges
    ]


def queue_details(
    context: AdminContext, queue: Queue, period: Range | None
) -> Slices[QueueDetails]:
    """Return the consumers of a queue and the deliveries to each channel, in slices."""
    consumers: list[Any] = []
    deliveries: list[Row] = []
    for number, (connection, channel) in enumerate(context.channels()):
        if number % STATISTICS_SLICE_OBJECTS == STATISTICS_SLICE_OBJECTS - 1:
            yield
        if channel.details is None or channel.vhost.name != queue.vhost:
            continue
        counters = channel.details.queues.get(queue.name)
        if counters is None:
            continue
        for each in list((channel.consumers or {}).values()):
            if each.queue is queue:
                consumers.append(consumer_row(context, connection, channel, each))
            yield
        row = {
            "channel_details": channel_details(connection, channel),
            "stats": _stats(context, counters, DELIVER_STATS, period),
        }
        deliveries.append(row)
    return QueueDetails(consumers, deliveries)


def exchange_incoming(
    context: AdminContext, vhost: VHost, exchange: Exchange, period: Range | None
) -> Slices[list[Row]]:
    """Return what each open channel has published to an exchange, in slices."""
    rows: list[Row] = []
    for number, (connection, channel) in enumerate(context.channels()):
        if number % STATISTICS_SLICE_OBJECTS == STATISTICS_SLICE_OBJECTS - 1:
            yield
        if channel.details is None or channel.vhost is not vhost:
            continue
        counters = channel.details.exchanges.get(exchange.name)
        if counters is None:
            continue
        counted_confirms(channel)
        row = {
            "channel_details": channel_details(connection, channel),
            "stats": _stats(context, counters, PUBLISH_STATS, period),
        }
        rows.append(row)
    return rows


def exchange_outgoing(
    context: AdminContext, vhost: VHost, exchange: Exchange, period: Range | None
) -> Slices[list[Row]]:
    """Return how many messages each queue got from an exchange, in slices."""
    rows: list[Row] = []
    for number, queue in enumerate(list(vhost.queues.values())):
        if number % STATISTICS_SLICE_OBJECTS == STATISTICS_SLICE_OBJECTS - 1:
            yield
        count = queue.arrivals().get(exchange.name, 0)
        if count and not queue.deleted:
            series = arrival_series(context, queue, exchange.name)
            stats = _arrived(series, count, period)
            rows.append({"queue": {"name": queue.name, "vhost": vhost.name}, "stats": stats})
    return rows


def arrival_series(context: AdminContext, queue: Queue, exchange: str) -> Series:
    """Return the samples of what a queue got from an exchange.

    With a single exchange they are those of the queue.
    """
    return context.statistics.series((queue, exchange) if queue.has_sources else queue)


def _arrived(series: Series, count: int, period: Range | None) -> dict[str, Any]:
    return with_details({"publish": count}, series, period)


def _stats(
    context: AdminContext, counters: Counters, names: tuple[str, ...], period: Range | None
) -> dict[str, Any]:
    return message_stats(counters, context.statistics.series(counters), names, period)
