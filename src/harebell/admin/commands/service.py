"""Commands of the HTTP API that the command line has no use for."""

from __future__ import annotations

from harebell.admin.catalog import SERVICE
from harebell.admin.command import ADMINISTRATOR, ANYBODY, MANAGEMENT, MONITORING, Row
from harebell.admin.context import AdminContext, CommandRefused, checked_name, missing
from harebell.admin.limits import PARAMETER_NAME_BYTES
from harebell.admin.place import ANYWHERE, FIRST


@SERVICE.command("GET /api/whoami", tag=ANYBODY)
def whoami(context: AdminContext) -> Row:
    """Return the user of the request."""
    actor = context.actor
    if actor is None:
        return {"name": "", "tags": []}
    return {"name": actor.name, "tags": list(actor.tags)}


@SERVICE.command("GET /api/auth/attempts/{node}", tag=ADMINISTRATOR, place=ANYWHERE)
def login_attempts(context: AdminContext, node: str) -> list[Row]:
    """Return the counts of logins by protocol."""
    context.check_node(node)
    return context.login_attempts.by_protocol()


@SERVICE.command(
    *("DELETE /api/auth/attempts/{node}", "DELETE /api/auth/attempts/{node}/source"),
    tag=ADMINISTRATOR,
    place=ANYWHERE,
)
def reset_login_attempts(context: AdminContext, node: str) -> Row:
    """Set the counts of logins to 0."""
    context.check_node(node)
    context.login_attempts.clear()
    return {}


@SERVICE.command("GET /api/auth/attempts/{node}/source", tag=ADMINISTRATOR, place=ANYWHERE)
def login_attempts_by_source(context: AdminContext, node: str) -> list[Row]:
    """Return the counts of logins by address and user."""
    context.check_node(node)
    return context.login_attempts.by_source()


@SERVICE.command("GET /api/auth/hash_password/{password}", tag=ANYBODY)
def hash_password(context: AdminContext, password: str) -> Row:
    """Return the salted SHA-256 hash of a password, as definitions have it."""
    from harebell.auth.password_hashes import SHA256, hashed, salt_bytes

    return {"ok": hashed(password, context.users.random(salt_bytes(SHA256)), SHA256)}


# --- the cluster ----------------------------------------------------------------------------------

_CLUSTER_NAME = "cluster_name"


@SERVICE.command("GET /api/cluster-name", tag=ANYBODY, place=FIRST)
def cluster_name(context: AdminContext) -> Row:
    """Return the name of the cluster: that of the node unless it was set."""
    named = context.broker.global_parameters.values.get(_CLUSTER_NAME)
    return {"name": named or context.broker.events.node}


@SERVICE.command("PUT /api/cluster-name", tag=ADMINISTRATOR, place=FIRST)
def set_cluster_name(context: AdminContext, name: str) -> Row:
    """Set the name of the cluster."""
    checked_name(name, "cluster", PARAMETER_NAME_BYTES)
    context.broker.global_parameters.put(_CLUSTER_NAME, name)
    context.log("info", f"the name of the cluster is '{name}'")
    return {}


@SERVICE.command("GET /api/feature-flags", tag=MONITORING)
def feature_flags(context: AdminContext) -> list[Row]:
    """Return the feature flags of RabbitMQ that tools ask for; all are enabled."""
    return [
        {
            "name": name,
            "desc": text,
            "doc_url": "",
            "state": "enabled",
            "stability": "required",
            "provided_by": "harebell",
        }
        for name, text in _FLAGS.items()
    ]


@SERVICE.command("PUT /api/feature-flags/{name}/enable", tag=ADMINISTRATOR, place=FIRST)
def enable_feature_flag(context: AdminContext, name: str) -> Row:
    """Enable a feature flag: all are enabled."""
    if name not in _FLAGS:
        raise missing(f"no feature flag '{name}'")
    return {}


_FLAGS = {
    "classic_queue_type_delivery_support": "Delivery to classic queues",
    "direct_exchange_routing_v2": "Fast routing of direct exchanges",
    "feature_flags_v2": "Feature flags, second version",
    "implicit_default_bindings": "Bindings of the default exchange are not stored",
    "listener_records_in_ets": "Listeners are kept in memory",
    "maintenance_mode_status": "Status of maintenance",
    "quorum_queue": "Queues of type quorum",
    "stream_queue": "Queues of type stream",
    "stream_single_active_consumer": "Single active consumers of streams",
    "tracking_records_in_ets": "Connections and channels are counted in memory",
    "user_limits": "Limits of users",
    "virtual_host_metadata": "Description, tags and other metadata of vhosts",
}


@SERVICE.command(
    *("GET /api/deprecated-features", "GET /api/deprecated-features/used"),
    *("GET /api/extensions",),
    tag=ANYBODY,
)
def nothing_for_users(context: AdminContext) -> list[Row]:
    """Return an empty list: there is no deprecated feature, and no extension of the web page."""
    return []


@SERVICE.command(
    *("GET /api/federation-links", "GET /api/federation-links/{vhost}"),
    *("GET /api/shovels", "GET /api/shovels/{vhost}"),
    *("GET /api/stream/connections", "GET /api/stream/connections/{vhost}"),
    *("GET /api/stream/publishers", "GET /api/stream/publishers/{vhost}"),
    *("GET /api/stream/consumers", "GET /api/stream/consumers/{vhost}"),
    *("GET /api/traces", "GET /api/traces/{vhost}"),
    tag=MONITORING,
)
def nothing_to_monitor(context: AdminContext, vhost: str | None = None) -> list[Row]:
    """Return an empty list: there are no links, shovels, trace files and stream connections."""
    if vhost is not None:
        context.vhost(vhost)
    return []


@SERVICE.command("GET /api/top/{node}", tag=MONITORING, place=ANYWHERE)
def processes(context: AdminContext, node: str) -> Row:
    """Return the Erlang processes of a node: there are none."""
    context.check_node(node)
    return {"node": node, "row_count": 0, "processes": []}


@SERVICE.command("POST /api/rebalance/queues", tag=ADMINISTRATOR)
def rebalance(context: AdminContext) -> Row:
    """Spread the leaders of queues over the nodes: there is one node."""
    return {}


@SERVICE.command("DELETE /api/reset", "DELETE /api/reset/{node}", tag=ADMINISTRATOR, place=ANYWHERE)
def reset_statistics(context: AdminContext, node: str | None = None) -> Row:
    """Drop the statistics that were gathered; counters of Harebell are never reset."""
    if node is not None:
        context.check_node(node)
    return {}


@SERVICE.command("GET /api/queues/quorum/{vhost}/{queue}/status", tag=MANAGEMENT)
def quorum_status(context: AdminContext, vhost: str, queue: str) -> list[Row]:
    """Return the members of a quorum queue: this node."""
    if queue not in context.vhost(vhost).queues:
        raise missing(f"no queue '{queue}' in vhost '{vhost}'")
    return [{"Node Name": context.broker.events.node, "Raft State": "leader"}]


@SERVICE.command(
    *("POST /api/queues/quorum/{vhost}/{queue}/replicas/add",),
    *("DELETE /api/queues/quorum/{vhost}/{queue}/replicas/delete",),
    *("POST /api/queues/quorum/replicas/on/{node}/grow",),
    *("DELETE /api/queues/quorum/replicas/on/{node}/shrink",),
    tag=ADMINISTRATOR,
)
def change_replicas(
    context: AdminContext,
    vhost: str | None = None,
    queue: str | None = None,
    node: str | None = None,
) -> Row:
    """Change the members of quorum queues: refused, as there is one node."""
    raise CommandRefused("this broker has one node: a quorum queue has one member, and keeps it")


@SERVICE.command(tag=MONITORING)
def figures(context: AdminContext) -> Row:
    """Return the figures of `harebell status`."""
    return context.figures()
