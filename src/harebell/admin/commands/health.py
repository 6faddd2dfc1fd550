"""Health checks, as load balancers, Kubernetes and monitoring ask for them.

A check returns {"status": "ok", ...}, or raises `CheckFailed`: the status 503 over HTTP, and an
error on the control socket.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from harebell.admin.catalog import HEALTH
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, MONITORING, Row
from harebell.admin.context import AdminContext, CheckFailed, CommandRefused
from harebell.admin.findings import ALARM, QUERY, QUEUE, Finding
from harebell.admin.place import ANYWHERE, CHECK, CHECK_OF_ALL, EVERYWHERE
from harebell.base.slices import Slices, gathered

_OK: Row = {"status": "ok"}
_SINGLE: Row = {"status": "ok", "reason": "single node cluster"}
_DAYS = {"days": 1, "weeks": 7, "months": 30, "years": 365}
_DAY_SECONDS = 86_400
_MS = 1_000
_PORT_MAX = 65_535
_MAX_DAYS = 365 * 1_000
_PROTOCOLS = {
    "amqp091": "amqp",
    "amqp0.9.1": "amqp",
    "amqp10": "amqp",
    "amqp1.0": "amqp",
    "amqp": "amqp",
    "amqps": "amqp/ssl",
    "amqp/ssl": "amqp/ssl",
    "amqp091/ssl": "amqp/ssl",
    "http": "http",
    "https": "https",
    "http/prometheus": "http/prometheus",
    "prometheus": "http/prometheus",
}
_RESOURCES = {"file handles": "file_descriptor_limit"}
"""RabbitMQ's names for what can be short, where they differ."""
_ALIVE = "aliveness-test"


def alarms_of(context: AdminContext) -> list[Row]:
    """Return the resources that are short, as alarms of this node."""
    node = context.broker.events.node
    return [
        {"node": node, "resource": _RESOURCES.get(what, what)}
        for what in sorted(context.registry.publishers.short_of())
    ]


@HEALTH.command("GET /api/alarms", tag=MANAGEMENT, verb="in-effect", place=EVERYWHERE)
def in_effect(context: AdminContext) -> list[Row]:
    """List what is short, so that publishers wait: since when (ms since 1970), and how much.

    There is none while publishers do not wait. The reason tells the limit.
    """
    return [
        {
            "node": context.broker.events.node,
            "resource": _RESOURCES.get(what, what),
            "since": alarm.since_ms,
            "reason": alarm.about,
        }
        for what, alarm in sorted(context.registry.publishers.alarms.items())
    ]


@HEALTH.command("GET /api/health/findings", tag=MANAGEMENT, place=EVERYWHERE)
def findings(context: AdminContext) -> Slices[list[Row]]:
    """List what needs somebody: the object, why, since when (ms since 1970), and what repairs it.

    A user sees findings about what that user can see. A healthy broker has none. The member
    `repair` is the act that repairs it, if there is a single one which that user may do.
    """
    context.check_stats()
    node = context.broker.events.node
    return gathered(
        {**each.row(node), "repair": _repair(context, each)}
        for each in context.findings.found
        if _may_see(context, each)
    )


def _repair(context: AdminContext, finding: Finding) -> Row | None:
    """Return the act that repairs a finding; None if there is none, or the actor may not do it."""
    vhost = context.broker.vhosts.get(finding.vhost)
    if vhost is None or finding.more:
        return None
    if finding.rule == "no-consumer" and _may_read(context, finding):
        return {"act": "queues.purge", "generation": finding.generation}
    if finding.rule == "all-unacknowledged" and _may_end(context, None):
        return {"act": "connections.close"}
    reports = vhost.query_reports
    if finding.kind == QUERY:
        for each in reports.all():
            ended = each.state == "failed" or reports.is_stale(each)
            if ended and each.name == finding.name and _may_end(context, each.user):
                return {"act": "queries.delete", "user": each.user}
    return None


def _may_read(context: AdminContext, finding: Finding) -> bool:
    from harebell.auth.authority import RemoteUser

    actor = context.actor
    # What a backend decides is asked for the act itself, and not for each look at the findings.
    if actor is None or isinstance(actor, RemoteUser):
        return True
    return actor.allows(finding.vhost, "read", QUEUE, finding.name)


def _may_end(context: AdminContext, user: str | None) -> bool:
    actor = context.actor
    return actor is None or actor.name == user or ADMINISTRATOR in actor.tags


def _may_see(context: AdminContext, finding: Finding) -> bool:
    if finding.vhost:
        return context.may_see(finding.vhost)
    return finding.kind == ALARM or context.sees_everything()


@HEALTH.command("GET /api/health/checks/alarms", tag=MONITORING, place=EVERYWHERE, merge=CHECK)
def alarms(context: AdminContext) -> Row:
    """Check that no resource is short in the cluster."""
    return _no_alarms(context, "There are alarms in effect in the cluster")


@HEALTH.command("GET /api/health/checks/local-alarms", tag=MONITORING)
def local_alarms(context: AdminContext) -> Row:
    """Check that no resource is short on this node."""
    return _no_alarms(context, "There are alarms in effect on the node")


def _no_alarms(context: AdminContext, reason: str) -> Row:
    alarms = alarms_of(context)
    if alarms:
        raise CheckFailed(reason, alarms=alarms)
    return _OK


@HEALTH.command("GET /api/health/checks/certificate-expiration/{within}/{unit}", tag=MONITORING)
def certificate_expiration(context: AdminContext, within: int, unit: str) -> Row:
    """Check that no certificate of a listener expires within a time.

    UNIT is days, weeks, months or years.
    """
    days = _DAYS.get(unit)
    if days is None:
        raise CommandRefused(f"Time unit not recognised: {unit}: it is {', '.join(_DAYS)}")
    if not 0 <= within * days <= _MAX_DAYS:
        raise CommandRefused(f"Invalid expiration period: {within} {unit}")
    until = context.broker.clock.ms // _MS + within * days * _DAY_SECONDS
    facts = context.node()
    expired = [
        {
            "node": context.broker.events.node,
            "protocol": listening.protocol,
            "interface": listening.address,
            "port": listening.port,
            "certfile": each.path,
            "certfile_expires_on": [
                f"{datetime.fromtimestamp(each.expires_at, UTC):%Y-%m-%d %H:%M:%S}"
            ],
        }
        for listening in facts.listeners
        for each in facts.certificates
        if each.path in listening.certificates and each.expires_at <= until
    ]
    if expired:
        raise CheckFailed("Certificates expiring", expired=expired)
    return _OK


@HEALTH.command("GET /api/health/checks/port-listener/{port}", tag=MONITORING)
def port_listener(context: AdminContext, port: int) -> Row:
    """Check that something listens on a port."""
    if not 1 <= port <= _PORT_MAX:
        raise CommandRefused(f"{port} is no port: ports are from 1 to {_PORT_MAX}")
    ports = sorted({each.port for each in context.node().listeners})
    if port not in ports:
        raise CheckFailed("No active listener", missing=port, ports=ports)
    return {"status": "ok", "port": port}


@HEALTH.command("GET /api/health/checks/protocol-listener/{protocols}", tag=MONITORING)
def protocol_listener(context: AdminContext, protocols: str) -> Row:
    """Check that one of some protocols has a listener; there are commas between them."""
    active = {each.protocol for each in context.node().listeners}
    wanted = [each.strip() for each in protocols.lower().split(",")]
    protocol = next((each for each in wanted if _PROTOCOLS.get(each, each) in active), None)
    if protocol is None:
        raise CheckFailed("No active listener", missing=protocols, protocols=sorted(active))
    return {"status": "ok", "protocol": _PROTOCOLS.get(protocol, protocol)}


@HEALTH.command(
    "GET /api/health/checks/virtual-hosts", tag=MONITORING, place=EVERYWHERE, merge=CHECK_OF_ALL
)
def virtual_hosts(context: AdminContext) -> Row:
    """Check that every vhost is running: a broker that has started runs them all."""
    return _OK


@HEALTH.command("GET /api/health/checks/node-is-mirror-sync-critical", tag=MONITORING)
def node_is_mirror_sync_critical(context: AdminContext) -> Row:
    """Check that no other node depends on this one: there is one node."""
    return _SINGLE


@HEALTH.command("GET /api/health/checks/node-is-quorum-critical", tag=MONITORING)
def node_is_quorum_critical(context: AdminContext) -> Row:
    """Check that no quorum depends on this node: there is one node."""
    return _SINGLE


@HEALTH.command(
    "GET /api/health/checks/metadata-store/initialized",
    "GET /api/health/checks/metadata-store/initialized/with-data",
    tag=MONITORING,
)
def metadata_store(context: AdminContext) -> Row:
    """Check that the definitions are loaded: they are before the first listener opens."""
    return _OK


@HEALTH.command(
    "GET /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts",
    "GET /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}",
    "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}",
    "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}",
    tag=MONITORING,
    merge=CHECK_OF_ALL,
)
def quorum_queues_without_elected_leaders(
    context: AdminContext, vhost: str = "", pattern: str = ""
) -> Row:
    """Check that every quorum queue has a leader: this node is the leader of all."""
    if vhost:
        context.vhost(vhost)
    return _OK


@HEALTH.command("GET /api/health/checks/is-in-service", tag=MONITORING)
def is_in_service(context: AdminContext) -> Row:
    """Check that the node accepts clients."""
    if not _for_clients(context):
        raise CheckFailed("No active listener for clients", missing="amqp", protocols=[])
    return _OK


@HEALTH.command("GET /api/health/checks/below-node-connection-limit", tag=MONITORING)
def below_node_connection_limit(context: AdminContext) -> Row:
    """Check that the node accepts more connections."""
    connections, limit = len(context.registry.connections), context.node().sockets_total
    if limit and connections >= limit:
        raise CheckFailed("node connection limit is reached", connections=connections, limit=limit)
    return {"status": "ok", "connections": connections, "limit": limit or "infinity"}


@HEALTH.command("GET /api/health/checks/ready-to-serve-clients", tag=MONITORING)
def ready_to_serve_clients(context: AdminContext) -> Row:
    """Check that clients can connect: there is a listener, and room for a connection."""
    is_in_service(context)
    below_node_connection_limit(context)
    return _OK


@HEALTH.command("GET /api/health/checks/reached-target-cluster-size", tag=MONITORING)
def reached_target_cluster_size(context: AdminContext) -> Row:
    """Check that the cluster is complete: every broker that shares the store runs."""
    nodes = context.brokers()
    size = sum(each["running"] for each in nodes) or 1
    wanted = len(nodes) or 1
    if size < wanted:
        gone = _listed(each["name"] for each in nodes if not each["running"])
        raise CheckFailed(
            f"not running: {gone}", cluster_size=size, target_cluster_size_hint=wanted
        )
    return {"status": "ok", "cluster_size": size, "target_cluster_size_hint": wanted}


@HEALTH.command(
    "GET /api/healthchecks/node",
    "GET /api/healthchecks/node/{name}",
    tag=MONITORING,
    place=ANYWHERE,
)
def node(context: AdminContext, name: str = "") -> Row:
    """Check this node as a whole; the status of an HTTP answer is 200 in any case."""
    if name:
        context.check_node(name)
    short = [each["resource"] for each in alarms_of(context)]
    if short:
        return {"status": "failed", "reason": f"resource alarm(s) in effect: {_listed(short)}"}
    return _OK


@HEALTH.command("GET /api/aliveness-test/{vhost}", tag=MANAGEMENT)
def aliveness_test(context: AdminContext, vhost: str) -> Row:
    """Declare the queue `aliveness-test` in a vhost, publish a message and take it."""
    from harebell.base.message import Properties
    from harebell.front.operations.declare import QueueOptions, declare_queue
    from harebell.front.operations.without_connection import Getting, publish
    from harebell.model.transaction import ACCEPT

    where = context.vhost(vhost)
    caller, door = context.caller(where), context.door()
    if _ALIVE not in where.queues:
        declare_queue(caller, _ALIVE, QueueOptions())
    getting = Getting(door, caller, _ALIVE)
    if not publish(door, caller, "", _ALIVE, Properties(b"\0\0"), b"test_message"):
        raise CheckFailed(f"the queue '{_ALIVE}' takes no messages")
    taken = getting.take()
    if taken is not None:
        getting.settle(taken.position, ACCEPT)
        getting.end()
    elif not len(getting.queue.consumers):
        raise CheckFailed(f"the queue '{_ALIVE}' has lost a message")
    return _OK


def _for_clients(context: AdminContext) -> bool:
    return any(each.protocol.startswith("amqp") for each in context.node().listeners)


def _listed(words: Iterable[Any]) -> str:
    return ", ".join(str(word) for word in words)
