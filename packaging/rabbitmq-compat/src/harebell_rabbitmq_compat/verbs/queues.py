"""`rabbitmq-queues` and `rabbitmq-streams`: the one member of a queue, and mirrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell_rabbitmq_compat.exits import UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.tables import Rows
from harebell_rabbitmq_compat.verb import (
    CTL,
    DIAGNOSTICS,
    QUEUES,
    STREAMS,
    Call,
    Report,
    Result,
    verb,
)

_MIRROR_KEYS = (
    *("ha-mode", "ha-params", "ha-sync-mode", "ha-sync-batch-size"),
    *("ha-promote-on-shutdown", "ha-promote-on-failure"),
)
_POLICY_COLUMNS = ("vhost", "name", "pattern", "apply-to", "definition", "priority")


def _queue(call: Call, kind: str, what: str) -> Mapping[str, Any]:
    """Return the queue that the arguments name.

    Raises:
        VerbFailed: there is none, or it is of another type.
    """
    rows = call.ask("queues.list", vhost=call.vhost) if call.has_vhost(call.vhost) else []
    queue = next((row for row in rows if row["name"] == call.arguments[0]), None)
    if queue is None:
        raise VerbFailed("not_found", UNAVAILABLE)
    if queue["type"] != kind:
        raise VerbFailed(f"Cannot get {what} of a {queue['type']} queue", UNAVAILABLE)
    return dict(queue)


def _leader(call: Call) -> Rows:
    columns = ("Node Name", "Raft State")
    return Rows(columns, [{"Node Name": call.node.name, "Raft State": "leader"}])


@verb(
    "[--vhost <vhost>] <queue>",
    tools=QUEUES,
    banner="Status of quorum queue {0} on node {node} ...",
)
def quorum_status(call: Call) -> Rows:
    """Print the members of a quorum queue: this node."""
    _queue(call, "quorum", "quorum status")
    return _leader(call)


@verb(
    "[--vhost <vhost>] <stream> [--tracking]",
    tools=STREAMS,
    banner="Status of stream {0} on node {node} ...",
)
def stream_status(call: Call) -> Rows:
    """Print the members of a stream: this node."""
    _queue(call, "stream", "stream status")
    return Rows(("role", "node"), [{"role": "writer", "node": call.node.name}])


@verb(
    "< all | classic | quorum | stream > [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
    tools=QUEUES,
    banner="Re-balancing leaders of {0} queues...",
)
def rebalance(call: Call) -> Rows:
    """Print how many queues the node has; there is no other node to move leaders to."""
    count = sum(
        row["type"] == "quorum"
        for vhost in call.ask("vhosts.list")
        for row in call.ask("queues.list", vhost=vhost["name"])
    )
    columns = ("Node name", "Number of quorum queues", "Number of replicated classic queues")
    values = (call.node.name, count, 0)
    return Rows(columns, [dict(zip(columns, values, strict=True))])


# --- mirrors --------------------------------------------------------------------------------------


def _with_mirrors(call: Call, command: str) -> list[dict[str, Any]]:
    """Return the policies that would make mirrors in RabbitMQ 3; here they are kept, no more."""
    rows: list[dict[str, Any]] = call.ask(command)
    return [row for row in rows if "ha-mode" in row["definition"]]


@verb(tools=QUEUES, banner="Listing policies that enable classic queue mirroring...")
def list_policies_with_classic_queue_mirroring(call: Call) -> Rows:
    """Print policies with ha-mode, which RabbitMQ 4 refuses."""
    return Rows(_POLICY_COLUMNS, _with_mirrors(call, "policies.list"))


@verb(tools=QUEUES, banner="Listing operator policies that enable classic queue mirroring...")
def list_operator_policies_with_classic_queue_mirroring(call: Call) -> Rows:
    """Print operator policies with ha-mode, which RabbitMQ 4 refuses."""
    return Rows(_POLICY_COLUMNS, _with_mirrors(call, "operator-policies.list"))


@verb(tools=DIAGNOSTICS, banner="Checking if cluster has any classic queue mirroring policies ...")
def check_if_cluster_has_classic_queue_mirroring_policy(call: Call) -> Result:
    """Fail if a policy has ha-mode."""
    policies = _with_mirrors(call, "policies.list") + _with_mirrors(call, "operator-policies.list")
    if policies:
        names = ", ".join(f"{row['name']} in vhost {row['vhost']}" for row in policies)
        raise VerbFailed(f"Cluster reported policies with classic queue mirroring: {names}")
    return Report("Cluster reported no policies with classic queue mirroring", result="ok")


@verb(tools=CTL, banner="Will remove keys of classic queue mirroring from all policies ...")
def remove_classic_queue_mirroring_from_policies(call: Call) -> None:
    """Take the keys of mirrors out of policies; a policy without other keys is removed."""
    for noun in ("policies", "operator-policies"):
        for row in _with_mirrors(call, f"{noun}.list"):
            kept = {
                key: value for key, value in row["definition"].items() if key not in _MIRROR_KEYS
            }
            where = {"name": row["name"], "vhost": row["vhost"]}
            if not kept:
                call.ask(f"{noun}.clear", **where)
                continue
            call.ask(
                f"{noun}.set",
                **where,
                pattern=row["pattern"],
                definition=kept,
                apply_to=row["apply-to"],
                priority=row["priority"],
            )
