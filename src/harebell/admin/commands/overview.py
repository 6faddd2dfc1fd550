"""The commands behind the first page of dashboards: the overview of the broker, and its vhosts."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.admin.catalog import OVERVIEW
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.context import AdminContext
from harebell.admin.place import OLDEST, TOTALS
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.sampling_plan import SamplingPlan
from harebell.admin.statistics import (
    Range,
    details,
    message_stats,
    with_details,
)
from harebell.base.counters import Churn, Counters, Traffic
from harebell.base.slices import Slices
from harebell.base.version import VERSION
from harebell.front.limits import STATISTICS_SLICE_OBJECTS

if TYPE_CHECKING:
    from harebell.admin.node import Listening, NodeFacts
    from harebell.model.vhost import VHost

PRODUCT = "Harebell"
_STORED = {"disk_reads": 0, "disk_writes": 0}
_COUNTED = ("message_stats", "churn_rates", "queue_totals", "statistics_db_event_queue")
"""Members that are left out with management_disable_stats."""
_LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")
_RETENTIONS = (86_400, 28_800, 3_600, 600, 60)
"""The ages that RabbitMQ names: statistics are kept at least as long."""


class Totals(NamedTuple):
    """Counts over some vhosts.

    Args:
        queues: queues.
        exchanges: exchanges.
        consumers: consumers.
        ready: messages that are ready.
        unacknowledged: messages that are delivered and not settled.
        leased: messages that lease groups have claimed.
    """

    queues: int = 0
    exchanges: int = 0
    consumers: int = 0
    ready: int = 0
    unacknowledged: int = 0
    leased: int = 0


@OVERVIEW.command("GET /api/overview", tag=MANAGEMENT, merge=TOTALS)
def show(
    context: AdminContext,
    lengths_age: Age = None,
    lengths_incr: Increment = None,
    msg_rates_age: Age = None,
    msg_rates_incr: Increment = None,
) -> Slices[Row]:
    """Show totals and rates of the whole broker."""
    lengths = range_of(lengths_age, lengths_incr, "lengths")
    rates = range_of(msg_rates_age, msg_rates_incr, "msg_rates")
    return _overview(context, lengths, rates)


def _overview(context: AdminContext, lengths: Range | None, rates: Range | None) -> Slices[Row]:
    vhosts = context.vhosts(None)
    totals = yield from totals_of(vhosts)
    broker, facts, series = context.broker, context.node(), context.statistics.broker()
    whole = len(vhosts) == len(broker.vhosts)
    names = {vhost.name for vhost in vhosts}
    counters = yield from counters_of(context, None if whole else names)
    shown = series if whole else context.statistics.series(None)
    node = broker.events.node
    listeners = facts.listeners if context.sees_everything() else ()
    row: Row = {
        **_product(context, facts),
        "message_stats": {
            **message_stats(counters, shown, period=rates),
            **with_details(_STORED, context.statistics.series(None), rates),
        },
        "churn_rates": churn_rates(context, rates),
        "queue_totals": with_details(
            {
                "messages": totals.ready + totals.unacknowledged,
                "messages_ready": totals.ready,
                "messages_unacknowledged": totals.unacknowledged,
            },
            shown,
            lengths,
        ),
        "object_totals": _object_totals(context, totals),
        "statistics_db_event_queue": 0,
        "node": node,
        "listeners": [listener_row(each, node) for each in listeners],
        "contexts": contexts(listeners, node),
    }
    if context.leaves_out_stats:
        for name in _COUNTED:
            del row[name]
    return row


def _product(context: AdminContext, facts: NodeFacts) -> Row:
    """Return what the overview says of the software and how it is configured."""
    from harebell.front.common.settings import COMPATIBLE_VERSION

    plan = context.statistics.plan
    return {
        "management_version": COMPATIBLE_VERSION,
        "rates_mode": plan.rates_mode,
        "sample_retention_policies": _retentions(plan),
        "exchange_types": exchange_types(),
        "product_version": VERSION,
        "product_name": PRODUCT,
        "rabbitmq_version": facts.rabbitmq_version or COMPATIBLE_VERSION,
        "cluster_name": cluster_name(context),
        "cluster_tags": {},
        "node_tags": {},
        "erlang_version": platform.python_version(),
        "erlang_full_version": f"{platform.python_implementation()} {platform.python_version()}",
        "release_series_support_status": "supported",
        "disable_stats": plan.disabled,
        "is_op_policy_updating_enabled": True,
        "enable_queue_totals": plan.queue_totals,
    }


def _object_totals(context: AdminContext, totals: Totals) -> Row:
    connections = [
        each for each in context.registry.connections if context.may_see_work_of(each.user.name)
    ]
    return {
        "channels": sum(len(each.channels) for each in connections),
        "connections": len(connections),
        "consumers": totals.consumers,
        "exchanges": totals.exchanges,
        "queues": totals.queues,
    }


@OVERVIEW.command("GET /api/oldest-message", tag=MANAGEMENT, merge=OLDEST)
def oldest(context: AdminContext) -> Slices[Row]:
    """Say how old the oldest ready message of all queues is, and which queue has it."""
    return _oldest(context)


def _oldest(context: AdminContext) -> Slices[Row]:
    from harebell.admin.rows.queues import oldest_seconds

    now_ms = context.broker.clock.ms
    oldest: Row = {"oldest_seconds": None, "vhost": None, "queue": None}
    longest = -1.0
    for vhost in context.vhosts(None):
        for number, queue in enumerate(list(vhost.queues.values())):
            if number % STATISTICS_SLICE_OBJECTS == STATISTICS_SLICE_OBJECTS - 1:
                yield
            if queue.deleted or not queue.ready_count():
                continue
            seconds = oldest_seconds(queue, now_ms)
            if seconds is not None and seconds > longest:
                longest = seconds
                oldest = {"oldest_seconds": seconds, "vhost": vhost.name, "queue": queue.name}
    return oldest


def _retentions(plan: SamplingPlan) -> dict[str, list[int]]:
    """Return for how many seconds samples are kept."""
    ages = {"global": plan.totals, "basic": plan.objects, "detailed": plan.details}
    return {
        name: [
            next((age for age in _RETENTIONS if age <= each.seconds), each.seconds)
            for each in retentions
        ]
        for name, retentions in ages.items()
    }


def totals_of(vhosts: list[VHost]) -> Slices[Totals]:
    """Count the objects of some vhosts, in slices."""
    queues = exchanges = consumers = ready = unacknowledged = leased = 0
    for vhost in vhosts:
        exchanges += len(vhost.exchanges)
        for number, queue in enumerate(list(vhost.queues.values())):
            queues += 1
            consumers += len(queue.consumers)
            ready += queue.ready_count()
            unacknowledged += queue.unacked
            leased += queue.leased
            if number % STATISTICS_SLICE_OBJECTS == 0:
                yield
    return Totals(queues, exchanges, consumers, ready, unacknowledged, leased)


def counters_of(context: AdminContext, vhosts: set[str] | None) -> Slices[Counters]:
    """Return the counters of some vhosts together; None for all."""
    counters = Counters()
    for (vhost, _), sums in (yield from context.registry.sums()).items():
        if vhosts is None or vhost in vhosts:
            counters.add(sums.counters)
    return counters


def churn_rates(context: AdminContext, period: Range | None = None) -> dict[str, Any]:
    """Return opened and closed connections, channels and queues, with rates."""
    churn = context.broker.churn
    values = {name: getattr(churn, name) for name in Churn.NAMES}
    return with_details(values, context.statistics.broker(), period)


def cluster_name(context: AdminContext) -> str:
    """Return the name of the cluster: a global parameter, or the name of the node."""
    name = context.broker.global_parameters.values.get("cluster_name")
    return name if isinstance(name, str) and name else context.broker.events.node


def exchange_types() -> list[Row]:
    """Return the exchange types."""
    from harebell.model.exchange import KINDS

    return [
        {"name": name, "description": f"exchange type {name}", "enabled": True}
        for name in sorted(KINDS)
    ]


def listener_row(listening: Listening, node: str) -> Row:
    """Return an address as the overview has it."""
    return {
        "node": node,
        "protocol": listening.protocol,
        "ip_address": listening.address,
        "port": listening.port,
        "socket_opts": {
            "backlog": 1024,
            "exit_on_close": False,
            "linger": [True, 0],
            "nodelay": True,
        },
    }


def contexts(listeners: tuple[Listening, ...], node: str) -> list[Row]:
    """Return the addresses of the HTTP API."""
    return [
        {
            "node": node,
            "description": "Management",
            "path": "/",
            "cowboy_opts": "[]",
            "ip": each.address,
            "port": str(each.port),
            "protocol": each.protocol,
            "ssl_opts": [],
        }
        for each in listeners
        if each.protocol in ("http", "https")
    ]


def stats_of(context: AdminContext, vhosts: list[VHost]) -> Slices[dict[str, Row]]:
    """Return the statistics of some vhosts by name, without their numbers of messages."""
    counters = {vhost.name: Counters() for vhost in vhosts}
    traffic = {vhost.name: Traffic() for vhost in vhosts}
    for (name, _), sums in (yield from context.registry.sums()).items():
        if name in counters:
            counters[name].add(sums.counters)
            traffic[name].add(sums.traffic)
    stats = {}
    for name, each in counters.items():
        series = context.statistics.series(name)
        passed = {"recv_oct": traffic[name].recv_oct, "send_oct": traffic[name].send_oct}
        stats[name] = {
            "message_stats": message_stats(each, series),
            **with_details(passed, series),
            **{f"{length}_details": details(series, length, None, 0) for length in _LENGTHS},
        }
    return stats
