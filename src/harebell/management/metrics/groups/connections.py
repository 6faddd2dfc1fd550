"""Metrics of connections and channels.

RabbitMQ has one label for both, `channel`, with the identifier of a process. Here it is the name
that RabbitMQ's listings show, such as `127.0.0.1:50412 -> 127.0.0.1:5672 (1)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.text import COUNTER, GAUGE, Metric, Row, Value, escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.base.counters import Counters
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.management.metrics.source import Source

TRAFFIC = (
    Metric("connection_incoming_bytes_total", COUNTER, "Bytes received, without TLS."),
    Metric("connection_outgoing_bytes_total", COUNTER, "Bytes sent, without TLS."),
)
PACKETS = (
    Metric("connection_incoming_packets_total", COUNTER, "Reads from the socket."),
    Metric("connection_outgoing_packets_total", COUNTER, "Writes to the socket."),
)
CHANNELS = (Metric("connection_channels", GAUGE, "Open channels."),)
BLOCKED = (
    Metric(
        "connection_blocked_seconds_total",
        COUNTER,
        "Time that the connection was blocked because memory or disk was short.",
    ),
)
CHANNEL_STATE = (
    Metric("channel_consumers", GAUGE, "Consumers."),
    Metric("channel_messages_unacked", GAUGE, "Deliveries that are not acknowledged."),
    Metric("channel_messages_unconfirmed", GAUGE, "Publishes that are not confirmed."),
    Metric("channel_messages_uncommitted", GAUGE, "Publishes of the open transaction."),
    Metric("channel_acks_uncommitted", GAUGE, "Acknowledgements of the open transaction."),
    Metric("consumer_prefetch", GAUGE, "Prefetch limit of consumers started from now on."),
    Metric("channel_prefetch", GAUGE, "Prefetch limit of the channel as a whole."),
)
CHANNEL_PUBLISHED = (
    Metric("channel_messages_published_total", COUNTER, "Messages published."),
    Metric("channel_messages_confirmed_total", COUNTER, "Publishes confirmed."),
    Metric(
        "channel_messages_unroutable_returned_total",
        COUNTER,
        "Unroutable messages returned to the publisher.",
    ),
    Metric("channel_messages_unroutable_dropped_total", COUNTER, "Unroutable messages dropped."),
)
CHANNEL_DELIVERED = (
    Metric("channel_get_ack_total", COUNTER, "Messages taken with basic.get and acknowledgement."),
    Metric("channel_get_total", COUNTER, "Messages taken with basic.get, no acknowledgement."),
    Metric(
        "channel_messages_delivered_ack_total",
        COUNTER,
        "Deliveries to consumers that acknowledge.",
    ),
    Metric(
        "channel_messages_delivered_total",
        COUNTER,
        "Deliveries to consumers that do not acknowledge.",
    ),
    Metric("channel_messages_redelivered_total", COUNTER, "Deliveries marked as redelivered."),
    Metric("channel_messages_acked_total", COUNTER, "Acknowledgements."),
    Metric("channel_get_empty_total", COUNTER, "basic.get of an empty queue."),
)

_MS = 1_000


def connection_rows(
    source: Source, values: Callable[[BaseConnection], tuple[Value, ...]]
) -> Iterator[Row]:
    """Yield a row for each connection."""
    for connection in source.connections():
        name = escaped(connection.peer.connection_name)
        yield f'{{channel="{name}"}}', values(connection)


def traffic(connection: BaseConnection) -> tuple[Value, ...]:
    """Return the values of `TRAFFIC`."""
    return connection.traffic.recv_oct, connection.traffic.send_oct


def packets(connection: BaseConnection) -> tuple[Value, ...]:
    """Return the values of `PACKETS`."""
    return connection.traffic.recv_cnt, connection.traffic.send_cnt


def channel_count(connection: BaseConnection) -> tuple[Value, ...]:
    """Return the values of `CHANNELS`."""
    return (len(connection.channels),)


def blocked_seconds(connection: BaseConnection) -> tuple[Value, ...]:
    """Return the values of `BLOCKED`."""
    return (connection.registry.publishers.ms_of(connection) / _MS,)


def channel_rows(
    source: Source,
    vhosts: frozenset[str] | None,
    values: Callable[[AnyChannel], tuple[Value, ...]],
) -> Iterator[Row]:
    """Yield a row for each channel."""
    for connection, channel in source.channels(vhosts):
        name = escaped(f"{connection.peer.connection_name} ({channel.number})")
        yield f'{{channel="{name}"}}', values(channel)


def exchange_rows(source: Source, vhosts: frozenset[str] | None) -> Iterator[Row | None]:
    """Yield a row of `CHANNEL_PUBLISHED` for each channel and exchange."""
    for connection, channel in source.channels(vhosts):
        if channel.confirms is not None:
            channel.confirms.count_details()
        if channel.details is not None:
            before = _labels(connection, channel)
            for name, counted in list(channel.details.exchanges.items()):
                yield f'{before},exchange="{escaped(name)}"}}', _published(counted)
        yield None


def queue_rows(source: Source, vhosts: frozenset[str] | None) -> Iterator[Row | None]:
    """Yield a row of `CHANNEL_DELIVERED` for each channel and queue."""
    for connection, channel in source.channels(vhosts):
        if channel.details is not None:
            before = _labels(connection, channel)
            for name, counted in list(channel.details.queues.items()):
                yield f'{before},queue="{escaped(name)}"}}', _delivered(counted)
        yield None


def _labels(connection: BaseConnection, channel: AnyChannel) -> str:
    name = escaped(f"{connection.peer.connection_name} ({channel.number})")
    return f'{{channel="{name}",vhost="{escaped(channel.vhost.name)}"'


def channel_state(channel: AnyChannel) -> tuple[Value, ...]:
    """Return the values of `CHANNEL_STATE`."""
    confirms, transaction = channel.confirms, channel.transaction
    publishes, acks = (0, 0) if transaction is None else transaction.pending()
    return (
        len(channel.consumers or ()),
        channel.unacked.count,
        0 if confirms is None else confirms.taken - confirms.sent,
        publishes,
        acks,
        channel.prefetch,
        channel.prefetch_global,
    )


def channel_published(channel: AnyChannel) -> tuple[Value, ...]:
    """Return the values of `CHANNEL_PUBLISHED`."""
    return _published(channel.counters)


def _published(counted: Counters) -> tuple[Value, ...]:
    return (
        counted.publish,
        counted.confirm,
        counted.return_unroutable,
        counted.drop_unroutable,
    )


def channel_delivered(channel: AnyChannel) -> tuple[Value, ...]:
    """Return the values of `CHANNEL_DELIVERED`."""
    return _delivered(channel.counters)


def _delivered(counted: Counters) -> tuple[Value, ...]:
    return (
        counted.get,
        counted.get_no_ack,
        counted.deliver,
        counted.deliver_no_ack,
        counted.redeliver,
        counted.ack,
        counted.get_empty,
    )
