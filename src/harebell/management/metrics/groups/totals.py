"""Metrics of the whole broker: what is open, what came and went, and messages by protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from harebell.base.arrivals import Arrivals
from harebell.management.metrics.counted import PROTOCOLS, USUAL
from harebell.management.metrics.groups import connections
from harebell.management.metrics.groups.queues import type_name
from harebell.management.metrics.section import (
    Selection,
    Values,
    delivered_counts,
    figures,
    published_counts,
    section,
)
from harebell.management.metrics.text import Metric, Row, labels
from harebell.model.dead_letter import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED
from harebell.model.dead_letter_counts import AT_LEAST_ONCE, AT_MOST_ONCE

if TYPE_CHECKING:
    from harebell.base.counters import Traffic

_CLASSIC = "classic"
_REASONS = (EXPIRED, REJECTED, MAXLEN, DELIVERY_LIMIT)
_NOTHING = Arrivals()
_passed: Callable[[Traffic], tuple[int, ...]] = attrgetter(
    *("recv_oct", "send_oct", "recv_cnt", "send_cnt")
)


def sums(chosen: Selection) -> Iterator[tuple[tuple[Metric, ...], Row]]:
    """Yield the metrics of connections and channels with their sums, closed ones included."""
    traffic = (*connections.traffic.metrics, *connections.packets.metrics)
    sent, taken = connections.channel_published, connections.channel_delivered
    totals = chosen.totals
    for what, metrics, values in (
        ("channel published", sent.metrics, published_counts(totals.all)),
        ("channel delivered", taken.metrics, delivered_counts(totals.all)),
        ("traffic", traffic, _passed(totals.traffic)),
    ):
        yield metrics, ("", totals.never_less(what, values))


@figures("""
    gauge rabbitmq_connections Connections.
    gauge rabbitmq_channels Channels, and sessions of AMQP 0-10.
    gauge rabbitmq_consumers Consumers.
    gauge rabbitmq_queues Queues.
""")
def opened(chosen: Selection) -> Values:
    """Return what is open."""
    vhosts = chosen.source.broker.vhosts.values()
    queues = sum([len(vhost.queues) for vhost in vhosts])
    connections = len(chosen.source.registry.connections)
    return connections, chosen.totals.channels, sum(chosen.totals.consumers.values()), queues


@figures("""
    counter rabbitmq_connections_opened_total Connections that were opened.
    counter rabbitmq_connections_closed_total Connections that were closed.
    counter rabbitmq_channels_opened_total Channels that were opened.
    counter rabbitmq_channels_closed_total Channels that were closed.
    counter rabbitmq_queues_declared_total Declarations, of existing queues too.
    counter rabbitmq_queues_created_total Queues that were created.
    counter rabbitmq_queues_deleted_total Queues that were deleted.
""")
def churn(chosen: Selection) -> Values:
    """Return what came and went."""
    counted = chosen.source.broker.churn
    return (
        counted.connection_created,
        counted.connection_closed,
        counted.channel_created,
        counted.channel_closed,
        counted.queue_declared,
        counted.queue_created,
        counted.queue_deleted,
    )


@section("""
    by reason
    counter harebell_connections_closed_by_reason_total Connections that were closed: by the \
        client, lost, heartbeat, error, forced.
""")
def closed(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each reason."""
    for reason, number in chosen.source.broker.churn.closed_by.items():
        yield labels(reason=reason), (number,)


@section("""
    by protocol
    counter rabbitmq_global_messages_received_total Messages published.
    counter rabbitmq_global_messages_received_confirm_total Messages published on channels with \
        confirms.
    counter rabbitmq_global_messages_confirmed_total Publishes confirmed.
    counter rabbitmq_global_messages_routed_total Copies of them that queues were to get.
    counter rabbitmq_global_messages_unroutable_returned_total Unroutable, returned.
    counter rabbitmq_global_messages_unroutable_dropped_total Unroutable, dropped.
""")
def published(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each protocol."""
    arrivals = _arrivals(chosen)
    for protocol, counted in sorted(chosen.totals.counters.items()):
        arrived = arrivals.get(protocol, _NOTHING)
        values = (
            counted.publish,
            arrived.wanting_confirm,
            counted.confirm,
            arrived.routed,
            counted.return_unroutable,
            counted.drop_unroutable,
        )
        yield _labels(protocol), chosen.totals.never_less(f"published {protocol}", values)


@section("""
    by protocol
    counter rabbitmq_auth_attempts_total Logins.
    counter rabbitmq_auth_attempts_succeeded_total Logins that succeeded.
    counter rabbitmq_auth_attempts_failed_total Logins that failed.
""")
def logins(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each protocol, HTTP included."""
    counts = {USUAL: (0, 0)}
    for version, (succeeded, failed) in chosen.source.registry.logins.items():
        protocol = PROTOCOLS.get(version, "unknown")
        before = counts.get(protocol, (0, 0))
        counts[protocol] = before[0] + succeeded, before[1] + failed
    for row in chosen.source.login_attempts.by_protocol():
        both = row["auth_attempts_succeeded"], row["auth_attempts_failed"]
        counts[str(row["protocol"])] = both
    for protocol, both in sorted(counts.items()):
        yield _labels(protocol), (sum(both), *both)


@section("""
    by protocol remote_address username
    counter rabbitmq_auth_attempts_detailed_total Logins of an address and a user.
    counter rabbitmq_auth_attempts_detailed_succeeded_total Those that succeeded.
    counter rabbitmq_auth_attempts_detailed_failed_total Those that failed.
""")
def login_sources(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each of the most recent addresses and users."""
    for row in chosen.source.login_attempts.by_source():
        both = row["auth_attempts_succeeded"], row["auth_attempts_failed"]
        text = labels(
            protocol=PROTOCOLS.get(str(row["protocol"]), str(row["protocol"])),
            remote_address=str(row["remote_address"]),
            username=str(row["username"]),
        )
        yield text, (sum(both), *both)


@section("""
    by queue_type dead_letter_strategy
    counter rabbitmq_global_messages_dead_lettered_expired_total Dead letters: expired.
    counter rabbitmq_global_messages_dead_lettered_rejected_total Dead letters: rejected.
    counter rabbitmq_global_messages_dead_lettered_maxlen_total Dead letters: their queue was too \
        long.
    counter rabbitmq_global_messages_dead_lettered_delivery_limit_total Dead letters: over the \
        delivery limit.
""")
def letters(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each type of queue and strategy."""
    sums = {(type_name(_CLASSIC), AT_MOST_ONCE): dict.fromkeys(_REASONS, 0)}
    for (kind, strategy, reason), number in chosen.source.broker.letter_counts.sent.items():
        # Several kinds of queue are of one type.
        counts = sums.setdefault((type_name(kind), strategy), dict.fromkeys(_REASONS, 0))
        counts[reason] = counts.get(reason, 0) + number
    for (name, strategy), counts in sorted(sums.items()):
        text = labels(queue_type=name, dead_letter_strategy=strategy)
        yield text, tuple([counts[reason] for reason in _REASONS])


@section("""
    by queue_type dead_letter_strategy
    counter rabbitmq_global_messages_dead_lettered_confirmed_total Dead letters at least once that \
        other queues have stored.
""")
def letters_stored(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each type of queue that has dead letters so."""
    counts = chosen.source.broker.letter_counts
    sums: dict[str, int] = {}
    for kind in {kind for kind, strategy, _ in counts.sent if strategy == AT_LEAST_ONCE}:
        name = type_name(kind)
        sums[name] = sums.get(name, 0) + counts.confirmed.get(kind, 0)
    for name, confirmed in sorted(sums.items()):
        yield labels(queue_type=name, dead_letter_strategy=AT_LEAST_ONCE), (confirmed,)


@section("""
    by protocol
    histogram rabbitmq_message_size_bytes Sizes of the bodies that were published.
""")
def sizes(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each protocol."""
    for protocol, arrived in sorted(_arrivals(chosen).items()):
        yield _labels(protocol), (arrived.sizes(),)


def _arrivals(chosen: Selection) -> dict[str, Arrivals]:
    """Return the counters of published messages by protocol."""
    arrivals = {
        PROTOCOLS[version]: arrived
        for version, arrived in chosen.source.registry.arrivals.items()
        if version in PROTOCOLS
    }
    return {USUAL: _NOTHING, **arrivals}


@section("""
    by protocol
    counter rabbitmq_global_messages_delivered_total Messages delivered, or taken by a get.
    counter rabbitmq_global_messages_delivered_consume_auto_ack_total Deliveries to consumers that \
        do not acknowledge.
    counter rabbitmq_global_messages_delivered_consume_manual_ack_total Deliveries to consumers \
        that acknowledge.
    counter rabbitmq_global_messages_delivered_get_auto_ack_total Messages taken with basic.get, \
        no acknowledgement.
    counter rabbitmq_global_messages_delivered_get_manual_ack_total Messages taken with basic.get \
        and acknowledgement.
    counter rabbitmq_global_messages_redelivered_total Deliveries marked as redelivered.
    counter rabbitmq_global_messages_acknowledged_total Acknowledgements.
    counter rabbitmq_global_messages_get_empty_total basic.get of an empty queue.
""")
def delivered(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each protocol."""
    for protocol, counted in sorted(chosen.totals.counters.items()):
        four = (counted.deliver_no_ack, counted.deliver, counted.get_no_ack, counted.get)
        values = (sum(four), *four, counted.redeliver, counted.ack, counted.get_empty)
        yield _labels(protocol), chosen.totals.never_less(f"delivered {protocol}", values)


@section("""
    by protocol
    gauge rabbitmq_global_publishers Channels that have published.
    gauge rabbitmq_global_consumers Consumers.
""")
def peers(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each protocol."""
    for protocol, publishers in sorted(chosen.totals.publishers.items()):
        yield _labels(protocol), (publishers, chosen.totals.consumers.get(protocol, 0))


def _labels(protocol: str) -> str:
    return f'{{protocol="{protocol}"}}'
