"""The families of `/metrics/detailed`: which metrics each has, and where their values come from.

A family is asked for by its name; two families may share a section, which is written once. Families
of RabbitMQ whose figures do not exist here are known and empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from harebell.management.metrics.groups import (
    connections,
    exchanges,
    node,
    queues,
    storage,
    totals,
)
from harebell.management.metrics.text import Metric, Row, Value

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.management.metrics.ages import Ages
    from harebell.management.metrics.groups.totals import Totals
    from harebell.management.metrics.source import Source
    from harebell.model.queue.contract import Queue

RABBITMQ = "rabbitmq_"
CLUSTER = "rabbitmq_cluster_"
HAREBELL = "harebell_"
_QUEUE = ("vhost", "queue")
_CHANNEL = ("channel",)
_EXCHANGE = ("vhost", "exchange")
_PROTOCOL = ("protocol",)
_LETTERS = ("queue_type", "dead_letter_strategy")


class Selection(Struct, frozen=True):
    """What one scrape reads.

    Args:
        source: the broker.
        ages: finds the ages of messages.
        totals: sums of the whole broker.
        vhosts: the vhosts that are read; None for all.
        named: true for the queues that are read, by name; None for all.
    """

    source: Source
    ages: Ages
    totals: Totals
    vhosts: frozenset[str] | None = None
    named: Callable[[str], bool] | None = None

    def queues(self) -> Iterator[Queue]:
        """Yield the selected queues."""
        for queue in self.source.queues(self.vhosts):
            if self.named is None or self.named(queue.name):
                yield queue


class Section(NamedTuple):
    """Metrics that are written together.

    Args:
        prefix: RABBITMQ, CLUSTER or HAREBELL.
        metrics: the names, types and texts of its families.
        rows: returns the objects with their values.
        labels: the names of the labels of these objects.
    """

    prefix: str
    metrics: tuple[Metric, ...]
    rows: Callable[[Selection], Iterator[Row | None]]
    labels: tuple[str, ...] = ()


def _of_queues(
    prefix: str, metrics: tuple[Metric, ...], values: Callable[[Queue], tuple[Value, ...]]
) -> Section:
    return Section(prefix, metrics, lambda chosen: queues.rows(chosen.queues(), values), _QUEUE)


def _of_connections(
    prefix: str, metrics: tuple[Metric, ...], values: Callable[[BaseConnection], tuple[Value, ...]]
) -> Section:
    return Section(
        prefix,
        metrics,
        lambda chosen: connections.connection_rows(chosen.source, values),
        _CHANNEL,
    )


def _of_channels(
    prefix: str, metrics: tuple[Metric, ...], values: Callable[[AnyChannel], tuple[Value, ...]]
) -> Section:
    return Section(
        prefix,
        metrics,
        lambda chosen: connections.channel_rows(chosen.source, chosen.vhosts, values),
        _CHANNEL,
    )


_COARSE = _of_queues(RABBITMQ, queues.COARSE, queues.coarse)
_CONSUMERS = _of_queues(RABBITMQ, queues.CONSUMERS, queues.consumers)
_PUBLISHED = _of_queues(RABBITMQ, queues.PUBLISHED, queues.published)
_DELIVERY = _of_queues(RABBITMQ, queues.DELIVERY, queues.delivery)
_INFO = Section(
    RABBITMQ,
    queues.INFO,
    lambda chosen: queues.info_rows(chosen.queues()),
    (*_QUEUE, "queue_type", "durable"),
)
_DELAYED = _of_queues(HAREBELL, queues.DELAYED, queues.delayed)
_COUNTS = _of_queues(HAREBELL, queues.COUNTS, queues.counts)
_AGES = Section(
    HAREBELL,
    queues.AGES,
    lambda chosen: queues.age_rows(chosen.queues(), chosen.ages),
    _QUEUE,
)
_TRAFFIC = _of_connections(RABBITMQ, connections.TRAFFIC, connections.traffic)
_PACKETS = _of_connections(RABBITMQ, connections.PACKETS, connections.packets)
_CHANNELS = _of_connections(RABBITMQ, connections.CHANNELS, connections.channel_count)
_BLOCKED = _of_connections(HAREBELL, connections.BLOCKED, connections.blocked_seconds)
_CHANNEL_STATE = _of_channels(RABBITMQ, connections.CHANNEL_STATE, connections.channel_state)
_CHANNEL_PUBLISHED = _of_channels(
    RABBITMQ, connections.CHANNEL_PUBLISHED, connections.channel_published
)
_CHANNEL_DELIVERED = _of_channels(
    RABBITMQ, connections.CHANNEL_DELIVERED, connections.channel_delivered
)
_CHANNEL_EXCHANGES = Section(
    RABBITMQ,
    connections.CHANNEL_PUBLISHED,
    lambda chosen: connections.exchange_rows(chosen.source, chosen.vhosts),
    (*_CHANNEL, *_EXCHANGE),
)
_CHANNEL_QUEUES = Section(
    RABBITMQ,
    connections.CHANNEL_DELIVERED,
    lambda chosen: connections.queue_rows(chosen.source, chosen.vhosts),
    (*_CHANNEL, *_QUEUE),
)
_EXCHANGES = Section(
    RABBITMQ,
    exchanges.PUBLISHED,
    lambda chosen: exchanges.published_rows(chosen.source, chosen.vhosts),
    _EXCHANGE,
)
_BINDINGS = Section(
    CLUSTER,
    exchanges.BINDINGS,
    lambda chosen: exchanges.binding_rows(chosen.source, chosen.vhosts),
    (*_EXCHANGE, "type"),
)
_NAMES = Section(
    CLUSTER,
    exchanges.NAMES,
    lambda chosen: exchanges.name_rows(chosen.source, chosen.vhosts),
    (*_EXCHANGE, "type"),
)
_VHOSTS = Section(
    CLUSTER,
    exchanges.VHOSTS,
    lambda chosen: exchanges.vhost_rows(chosen.source, chosen.vhosts),
    ("vhost",),
)
_CHURN = Section(RABBITMQ, totals.CHURN, lambda chosen: chosen.totals.churn_rows())
_CLOSED = Section(HAREBELL, totals.CLOSED, lambda chosen: chosen.totals.closed_rows(), ("reason",))
_CERTIFICATES = Section(
    HAREBELL,
    node.CERTIFICATES,
    lambda chosen: node.certificate_rows(chosen.source),
    ("protocol", "address", "port", "file"),
)
_LOGINS = Section(RABBITMQ, totals.LOGINS, lambda chosen: chosen.totals.login_rows(), _PROTOCOL)
_LOGIN_SOURCES = Section(
    RABBITMQ,
    totals.LOGIN_SOURCES,
    lambda chosen: chosen.totals.login_source_rows(),
    (*_PROTOCOL, "remote_address", "username"),
)
_NODE = Section(RABBITMQ, node.COARSE, lambda chosen: node.coarse_rows(chosen.source))
_LIMITS = Section(RABBITMQ, node.LIMITS, lambda chosen: node.limit_rows(chosen.source))
_ALARMS = Section(RABBITMQ, node.ALARMS, lambda chosen: node.alarm_rows(chosen.source))
_PERSISTER = Section(RABBITMQ, node.PERSISTER, lambda chosen: node.persister_rows(chosen.source))
_MEMORY = Section(HAREBELL, node.MEMORY_USED, lambda chosen: node.memory_rows(chosen.source))
_HEALTH = Section(HAREBELL, node.HEALTH, lambda chosen: node.health_rows(chosen.source))
_STORAGE = Section(HAREBELL, storage.STORAGE, lambda chosen: storage.storage_rows(chosen.source))
_BACKUPS = Section(HAREBELL, storage.BACKUPS, lambda chosen: storage.backup_rows(chosen.source))
_PASSED_ON = Section(
    HAREBELL, storage.PASSED_ON, lambda chosen: storage.passed_on_rows(chosen.source)
)

FAMILIES: dict[str, tuple[Section, ...]] = {
    "queue_coarse_metrics": (_COARSE, _INFO),
    "queue_consumer_count": (_CONSUMERS, _INFO),
    "queue_metrics": (_CONSUMERS, _PUBLISHED, _DELAYED, _INFO),
    "queue_delivery_metrics": (_DELIVERY,),
    "exchange_metrics": (_EXCHANGES,),
    "connection_coarse_metrics": (_TRAFFIC,),
    "connection_metrics": (_PACKETS, _CHANNELS),
    "connection_churn_metrics": (_CHURN,),
    "channel_metrics": (_CHANNEL_STATE,),
    "channel_exchange_metrics": (_CHANNEL_EXCHANGES,),
    "channel_queue_metrics": (_CHANNEL_QUEUES,),
    "channel_queue_exchange_metrics": (_PUBLISHED,),
    "node_coarse_metrics": (_NODE,),
    "node_metrics": (_LIMITS, _ALARMS),
    "node_persister_metrics": (_PERSISTER,),
    "auth_attempt_metrics": (_LOGINS,),
    "auth_attempt_detailed_metrics": (_LOGIN_SOURCES,),
    "vhost_status": (_VHOSTS,),
    "exchange_bindings": (_BINDINGS,),
    "exchange_names": (_NAMES,),
    "harebell_queue_ages": (_AGES,),
    "harebell_delivery_counts": (_COUNTS,),
    "harebell_connection_blocked": (_BLOCKED,),
    "harebell_connections_closed": (_CLOSED,),
    "harebell_certificates": (_CERTIFICATES,),
    "harebell_health": (_HEALTH, _MEMORY),
    "harebell_backups": (_BACKUPS,),
    "harebell_storage": (_STORAGE, _PASSED_ON),
}
"""The sections of each family."""

EMPTY = frozenset(
    {
        "queue_exchange_metrics",
        "channel_process_metrics",
        "stream_consumer_metrics",
        "ra_metrics",
        "ra_simple_metrics",
    }
)
"""Families of RabbitMQ without figures here."""

PER_OBJECT: tuple[Section, ...] = (
    *(_COARSE, _CONSUMERS, _PUBLISHED, _DELIVERY, _INFO, _DELAYED, _AGES, _COUNTS),
    *(_EXCHANGES, _TRAFFIC, _PACKETS, _CHANNELS, _BLOCKED),
    *(_CHANNEL_STATE, _CHANNEL_PUBLISHED, _CHANNEL_DELIVERED),
)
"""What `/metrics/per-object` has instead of totals."""

MEMORY_BREAKDOWN: tuple[Section, ...] = (_NODE, _LIMITS, _MEMORY)
"""What `/metrics/memory-breakdown` has."""

OF_THE_BROKER: tuple[Section, ...] = (
    Section(RABBITMQ, totals.OPEN, lambda chosen: chosen.totals.open_rows()),
    Section(RABBITMQ, totals.PUBLISHED, lambda chosen: chosen.totals.published_rows(), _PROTOCOL),
    Section(RABBITMQ, totals.SIZES, lambda chosen: chosen.totals.size_rows(), _PROTOCOL),
    Section(RABBITMQ, totals.DELIVERED, lambda chosen: chosen.totals.delivered_rows(), _PROTOCOL),
    Section(RABBITMQ, totals.PEERS, lambda chosen: chosen.totals.peer_rows(), _PROTOCOL),
    Section(RABBITMQ, totals.LETTERS, lambda chosen: chosen.totals.letter_rows(), _LETTERS),
    Section(
        RABBITMQ,
        totals.LETTERS_STORED,
        lambda chosen: chosen.totals.letter_stored_rows(),
        _LETTERS,
    ),
)
"""Messages of the broker as a whole, which every complete endpoint has."""

OF_THE_NODE: tuple[Section, ...] = (
    _CHURN,
    _CLOSED,
    _LOGINS,
    _NODE,
    _LIMITS,
    _ALARMS,
    _PERSISTER,
    _MEMORY,
    _HEALTH,
    _CERTIFICATES,
    _BACKUPS,
    _STORAGE,
    _PASSED_ON,
)
"""What the process uses, which every complete endpoint has."""
