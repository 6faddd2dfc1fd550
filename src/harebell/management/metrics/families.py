"""The families of `/metrics/detailed`: which sections each has.

A family is asked for by its name; two families may share a section, which is written once. Families
of RabbitMQ whose figures do not exist here are known and empty.
"""

from __future__ import annotations

from harebell.management.metrics.groups import (
    connections,
    exchanges,
    node,
    queues,
    storage,
    totals,
)
from harebell.management.metrics.section import Section

FAMILIES: dict[str, tuple[Section, ...]] = {
    "queue_coarse_metrics": (queues.coarse, queues.info),
    "queue_consumer_count": (queues.consumers, queues.info),
    "queue_metrics": (
        *(
            queues.consumers,
            queues.published,
            queues.delayed,
            queues.replaced,
            queues.unselected,
            queues.info,
        ),
    ),
    "queue_delivery_metrics": (queues.delivery,),
    "exchange_metrics": (exchanges.published,),
    "connection_coarse_metrics": (connections.traffic,),
    "connection_metrics": (connections.packets, connections.channels),
    "connection_churn_metrics": (totals.churn,),
    "channel_metrics": (connections.channel_state,),
    "channel_exchange_metrics": (connections.channel_exchanges,),
    "channel_queue_metrics": (connections.channel_queues,),
    "channel_queue_exchange_metrics": (queues.published,),
    "node_coarse_metrics": (node.coarse,),
    "node_metrics": (node.limits, node.alarms),
    "node_persister_metrics": (node.persister,),
    "auth_attempt_metrics": (totals.logins,),
    "auth_attempt_detailed_metrics": (totals.login_sources,),
    "vhost_status": (exchanges.vhosts,),
    "exchange_bindings": (exchanges.bindings,),
    "exchange_names": (exchanges.names,),
    "harebell_queue_ages": (queues.ages,),
    "harebell_delivery_counts": (queues.counts,),
    "harebell_connection_blocked": (connections.blocked,),
    "harebell_connections_closed": (totals.closed,),
    "harebell_certificates": (node.certificates,),
    "harebell_health": (node.health, node.memory),
    "harebell_findings": (node.findings, node.each_finding),
    "harebell_backups": (storage.backups,),
    "harebell_storage": (storage.storage, storage.standbys, storage.passed_on),
}
"""The sections of each family."""

EMPTY = frozenset(
    (
        *("queue_exchange_metrics", "channel_process_metrics", "stream_consumer_metrics"),
        *("ra_metrics", "ra_simple_metrics"),
    )
)
"""Families of RabbitMQ without figures here."""

OF_QUEUES: tuple[Section, ...] = (
    *(queues.coarse, queues.consumers, queues.published, queues.delayed, queues.replaced),
    *(queues.counts, queues.ages),
)
"""What `/metrics` has sums over queues of, or the largest ages."""

PER_OBJECT: tuple[Section, ...] = (
    *(queues.coarse, queues.consumers, queues.published, queues.delivery, queues.info),
    *(
        queues.delayed,
        queues.replaced,
        queues.unselected,
        queues.ages,
        queues.counts,
        exchanges.published,
    ),
    *(connections.traffic, connections.packets, connections.channels, connections.blocked),
    *(connections.channel_state, connections.channel_published, connections.channel_delivered),
)
"""What `/metrics/per-object` has instead of totals."""

MEMORY_BREAKDOWN: tuple[Section, ...] = (node.coarse, node.limits, node.memory)
"""What `/metrics/memory-breakdown` has."""

IDENTITY: tuple[Section, ...] = (node.identity, node.build)
"""What every endpoint begins with."""

OF_THE_BROKER: tuple[Section, ...] = (
    *(totals.opened, totals.published, totals.sizes, totals.delivered, totals.peers),
    *(totals.letters, totals.letters_stored),
)
"""Messages of the broker as a whole, which every complete endpoint has."""

OF_THE_NODE: tuple[Section, ...] = (
    *(totals.churn, totals.closed, totals.logins),
    *(node.coarse, node.limits, node.alarms, node.persister, node.memory, node.health),
    *(node.findings, node.certificates, storage.backups, storage.storage, storage.standbys),
    storage.passed_on,
)
"""What the process uses, which every complete endpoint has."""
