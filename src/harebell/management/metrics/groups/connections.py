"""Metrics of connections and channels.

RabbitMQ has one label for both, `channel`, with the identifier of a process. Here it is the name
that RabbitMQ's listings show, such as `127.0.0.1:50412 -> 127.0.0.1:5672 (1)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.section import (
    Selection,
    Values,
    delivered_counts,
    of_each,
    published_counts,
)
from harebell.management.metrics.text import Row, escaped

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel

_MS = 1_000


def _connections(chosen: Selection) -> Iterator[tuple[str, BaseConnection]]:
    for connection in chosen.source.connections():
        yield f'{{channel="{escaped(connection.peer.connection_name)}"}}', connection


def _channels(chosen: Selection) -> Iterator[tuple[str, AnyChannel]]:
    for connection, channel in chosen.source.channels(chosen.vhosts):
        name = escaped(f"{connection.peer.connection_name} ({channel.number})")
        yield f'{{channel="{name}"}}', channel


_of_connections = of_each(_connections)
_of_channels = of_each(_channels)


@_of_connections("""
    by channel
    counter rabbitmq_connection_incoming_bytes_total Bytes received, without TLS.
    counter rabbitmq_connection_outgoing_bytes_total Bytes sent, without TLS.
""")
def traffic(connection: BaseConnection) -> Values:
    """Return the bytes that passed."""
    return connection.traffic.recv_oct, connection.traffic.send_oct


@_of_connections("""
    by channel
    counter rabbitmq_connection_incoming_packets_total Reads from the socket.
    counter rabbitmq_connection_outgoing_packets_total Writes to the socket.
""")
def packets(connection: BaseConnection) -> Values:
    """Return how often the socket was used."""
    return connection.traffic.recv_cnt, connection.traffic.send_cnt


@_of_connections("""
    by channel
    gauge rabbitmq_connection_channels Open channels.
""")
def channels(connection: BaseConnection) -> Values:
    """Return how many channels are open."""
    return (len(connection.channels),)


@_of_connections("""
    by channel
    counter harebell_connection_blocked_seconds_total Time that the connection was blocked because \
        memory or disk was short.
""")
def blocked(connection: BaseConnection) -> Values:
    """Return how long it was blocked."""
    return (connection.registry.publishers.ms_of(connection) / _MS,)


@_of_channels("""
    by channel
    gauge rabbitmq_channel_consumers Consumers.
    gauge rabbitmq_channel_messages_unacked Deliveries that are not acknowledged.
    gauge rabbitmq_channel_messages_unconfirmed Publishes that are not confirmed.
    gauge rabbitmq_channel_messages_uncommitted Publishes of the open transaction.
    gauge rabbitmq_channel_acks_uncommitted Acknowledgements of the open transaction.
    gauge rabbitmq_consumer_prefetch Prefetch limit of consumers started from now on.
    gauge rabbitmq_channel_prefetch Prefetch limit of the channel as a whole.
""")
def channel_state(channel: AnyChannel) -> Values:
    """Return what is open on the channel."""
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


@_of_channels("""
    by channel
    counter rabbitmq_channel_messages_published_total Messages published.
    counter rabbitmq_channel_messages_confirmed_total Publishes confirmed.
    counter rabbitmq_channel_messages_unroutable_returned_total Unroutable messages returned to \
        the publisher.
    counter rabbitmq_channel_messages_unroutable_dropped_total Unroutable messages dropped.
""")
def channel_published(channel: AnyChannel) -> Values:
    """Return what the channel has published."""
    return published_counts(channel.counters)


@_of_channels("""
    by channel
    counter rabbitmq_channel_get_ack_total Messages taken with basic.get and acknowledgement.
    counter rabbitmq_channel_get_total Messages taken with basic.get, no acknowledgement.
    counter rabbitmq_channel_messages_delivered_ack_total Deliveries to consumers that acknowledge.
    counter rabbitmq_channel_messages_delivered_total Deliveries to consumers that do not \
        acknowledge.
    counter rabbitmq_channel_messages_redelivered_total Deliveries marked as redelivered.
    counter rabbitmq_channel_messages_acked_total Acknowledgements.
    counter rabbitmq_channel_get_empty_total basic.get of an empty queue.
""")
def channel_delivered(channel: AnyChannel) -> Values:
    """Return what the channel has taken from queues."""
    return delivered_counts(channel.counters)


def _exchange_rows(chosen: Selection) -> Iterator[Row | None]:
    """Yield a row of `channel_published` for each channel and exchange."""
    for labels, channel in _channels(chosen):
        if channel.confirms is not None:
            channel.confirms.count_details()
        if channel.details is not None:
            before = f'{labels[:-1]},vhost="{escaped(channel.vhost.name)}"'
            for name, counted in list(channel.details.exchanges.items()):
                yield f'{before},exchange="{escaped(name)}"}}', published_counts(counted)
        yield None


def _queue_rows(chosen: Selection) -> Iterator[Row | None]:
    """Yield a row of `channel_delivered` for each channel and queue."""
    for labels, channel in _channels(chosen):
        if channel.details is not None:
            before = f'{labels[:-1]},vhost="{escaped(channel.vhost.name)}"'
            for name, counted in list(channel.details.queues.items()):
                yield f'{before},queue="{escaped(name)}"}}', delivered_counts(counted)
        yield None


channel_exchanges = channel_published._replace(
    rows=_exchange_rows, labels=("channel", "vhost", "exchange")
)
channel_queues = channel_delivered._replace(rows=_queue_rows, labels=("channel", "vhost", "queue"))
