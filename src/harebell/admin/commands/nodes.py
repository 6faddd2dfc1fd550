"""Commands for the node: the process of the broker. There is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.catalog import NODES
from harebell.admin.command import MONITORING, Row
from harebell.admin.commands.overview import churn_rates, contexts, exchange_types
from harebell.admin.context import AdminContext
from harebell.admin.node import FIGURES
from harebell.admin.place import ANYWHERE, EVERYWHERE, FULLEST, NODES_BY_NAME
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.statistics import Range, with_details
from harebell.base.version import VERSION

if TYPE_CHECKING:
    from harebell.admin.node import NodeFacts

_QUEUE_BYTES = 1_400
_CONNECTION_BYTES = 3_900
_SPENT = {
    "channel_closed": 0,
    "channel_consumer_deleted": 0,
    "connection_closed": 0,
    "consumer_deleted": 0,
    "exchange_deleted": 0,
    "node_node_deleted": 0,
    "queue_deleted": 0,
    "vhost_deleted": 0,
}
_NOT_HERE = (
    *("connection_readers", "connection_writers", "connection_channels", "queue_slave_procs"),
    *("quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs"),
    *("stream_queue_replica_reader_procs", "stream_queue_coordinator_procs", "plugins"),
    *("other_proc", "metrics", "mgmt_db", "mnesia", "quorum_ets", "other_ets", "msg_index"),
    *("code", "atom", "allocated_unused", "reserved_unallocated"),
)
"""Parts of the memory of RabbitMQ that a broker in Python does not have."""


@NODES.command("GET /api/nodes", tag=MONITORING, verb="list", place=EVERYWHERE, merge=NODES_BY_NAME)
def list_nodes(context: AdminContext) -> list[Row]:
    """List the nodes: the broker, and those that share its store in PostgreSQL."""
    return [node_row(context, None), *(member_row(each) for each in others(context))]


@NODES.command("GET /api/nodes/{name}", tag=MONITORING, place=EVERYWHERE, merge=FULLEST)
def show(
    context: AdminContext,
    name: str,
    node_stats_age: Age = None,
    node_stats_incr: Increment = None,
) -> Row:
    """Show the node NAME, and samples of its figures."""
    for each in others(context):
        if each["name"] == name:
            return member_row(each)
    context.check_node(name)
    return node_row(context, range_of(node_stats_age, node_stats_incr, "node_stats"))


@NODES.command("GET /api/nodes/{name}/memory", tag=MONITORING, place=ANYWHERE)
def memory(context: AdminContext, name: str) -> Row:
    """Show what the memory of a node is used for.

    Messages are counted; connections and queues are estimated from their number; the rest is the
    interpreter, its code and everything else.
    """
    context.check_node(name)
    return {"memory": _memory(context)}


@NODES.command("GET /api/nodes/{name}/memory/relative", tag=MONITORING, place=ANYWHERE)
def memory_relative(context: AdminContext, name: str) -> Row:
    """Show what the memory of a node is used for, in percent."""
    context.check_node(name)
    memory = _memory(context)
    whole = memory["total"]["rss"] or 1
    parts = {name: value for name, value in memory.items() if isinstance(value, int)}
    shares = {name: round(100 * value / whole) for name, value in parts.items()}
    return {"memory": {**shares, "total": 100}}


@NODES.command(
    *("GET /api/nodes/{name}/memory/ets", "GET /api/nodes/{name}/memory/ets/relative"),
    "GET /api/nodes/{name}/memory/ets/{filter}",
    "GET /api/nodes/{name}/memory/ets/{filter}/relative",
    tag=MONITORING,
    place=ANYWHERE,
)
def memory_ets(context: AdminContext, name: str, filter_: str = "") -> Row:
    """Show the memory of the tables of Erlang: there are none."""
    context.check_node(name)
    return {"ets_tables_memory": {"total": 0}}


def others(context: AdminContext) -> list[Row]:
    """Return the other brokers that share the store, as `harebell cluster status` has them."""
    node = context.broker.events.node
    return [each for each in context.brokers() if each["name"] != node]


def member_row(member: Row) -> Row:
    """What there is to say about a broker that shares the store: its figures are its own."""
    return {
        "name": member["name"],
        "type": "disc",
        "running": member["running"],
        "being_drained": False,
        "partitions": [],
        "cluster_links": [],
        "enabled_plugins": [],
        "applications": [
            {"name": "harebell", "description": "Harebell", "version": member["version"]}
        ],
        "storage_state": member["state"],
        "address": member["address"],
    }


def node_row(context: AdminContext, period: Range | None) -> Row:
    """What there is to say about the node."""
    facts, broker = context.node(), context.broker
    gauge, node = broker.gauge, broker.events.node
    figures = {name: facts.figures.get(name, 0) for name in FIGURES}
    sampled = with_details(figures, context.statistics.node(), period)
    listeners = [
        {name: value for name, value in each.items() if name != "node"}
        for each in contexts(facts.listeners, node)
    ]
    return {
        "name": node,
        "type": "disc",
        "running": True,
        "being_drained": False,
        "os_pid": str(facts.pid),
        "uptime": facts.uptime_ms,
        "run_queue": facts.run_queue,
        "processors": facts.processors,
        "rates_mode": context.statistics.plan.rates_mode,
        "net_ticktime": 60,
        "partitions": [],
        "cluster_links": [],
        "db_dir": facts.data_dir,
        "config_files": list(facts.config_files),
        "log_files": list(facts.log_files),
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_prometheus"],
        "applications": [{"name": "harebell", "description": "Harebell", "version": VERSION}],
        "auth_mechanisms": [
            {"name": name, "description": f"SASL mechanism {name}", "enabled": True}
            for name in facts.auth_mechanisms
        ],
        "exchange_types": exchange_types(),
        "contexts": listeners,
        "fd_total": facts.fd_total,
        "sockets_total": facts.sockets_total,
        "proc_total": facts.fd_total,
        "mem_limit": gauge.high,
        "mem_alarm": gauge.over,
        "mem_messages": max(gauge.used, 0),
        "mem_calculation_strategy": "rss",
        "disk_free_limit": facts.disk_free_limit,
        "disk_free_alarm": facts.disk_alarm,
        "metrics_gc_queue_length": _SPENT,
        "ra_open_file_metrics": {"ra_log_wal": 0, "ra_log_segment_writer": 0},
        **sampled,
        "io_sync_avg_time": facts.sync_ms,
        **churn_rates(context),
    }


def _memory(context: AdminContext) -> dict[str, Any]:
    facts: NodeFacts = context.node()
    rss = facts.figures.get("mem_used", 0)
    queues = sum(len(vhost.queues) for vhost in context.broker.vhosts.values()) * _QUEUE_BYTES
    connections = len(context.registry.connections) * _CONNECTION_BYTES
    messages = max(context.broker.gauge.used, 0)
    return {
        **dict.fromkeys(_NOT_HERE, 0),
        "connection_other": connections,
        "queue_procs": queues,
        "binary": messages,
        "other_system": max(rss - queues - connections - messages, 0),
        "strategy": "rss",
        "total": {"erlang": rss, "rss": rss, "allocated": rss},
    }
