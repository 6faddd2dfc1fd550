"""Suspend what the broker listens on, stop and start it within its process, reset it."""

from __future__ import annotations

from harebell_rabbitmq_compat.verb import (
    ANY,
    CTL,
    QUEUES,
    STOPPED,
    UPGRADE,
    Call,
    Report,
    Result,
    verb,
)

_ONLY_CTL = (CTL,)
_ONLY_UPGRADE = (UPGRADE,)
_ALONE = "seems to be the only one in a single node cluster, the {} does not apply"


@verb(
    tools=_ONLY_CTL,
    banner=lambda call: (
        f"Will suspend client connection listeners on node {call.node.name}. The node will no "
        "longer accept client connections!"
    ),
)
def suspend_listeners(call: Call) -> None:
    """Close the ports for AMQP; connections stay."""
    call.ask("listeners.suspend")


@verb(
    tools=_ONLY_CTL,
    banner=lambda call: (
        f"Will resume client connection listeners on node {call.node.name}. The node will now "
        "accept client connections"
    ),
)
def resume_listeners(call: Call) -> None:
    """Open the ports for AMQP again."""
    call.ask("listeners.resume")


@verb(
    tools=_ONLY_CTL,
    state=ANY,
    banner=lambda call: f"Stopping rabbit application on node {call.node.name} ...",
)
def stop_app(call: Call) -> None:
    """Close ports and connections; the process and what is stored stay."""
    call.ask("app.stop")


@verb(tools=_ONLY_CTL, state=ANY, banner=lambda call: f"Starting node {call.node.name} ...")
def start_app(call: Call) -> None:
    """Open what stop_app has closed."""
    call.ask("app.start")


@verb(
    tools=_ONLY_CTL,
    state=STOPPED,
    banner=lambda call: f"Resetting node {call.node.name} ...",
)
def reset(call: Call) -> None:
    """Remove everything that is stored; the broker has to be stopped with stop_app."""
    call.ask("app.reset")


@verb(
    tools=_ONLY_CTL,
    state=STOPPED,
    banner=lambda call: f"Forcefully resetting node {call.node.name} ...",
)
def force_reset(call: Call) -> None:
    """Do what reset does: there is no cluster to leave."""
    call.ask("app.reset")


# --- rabbitmq-upgrade -----------------------------------------------------------------------------


@verb(
    tools=_ONLY_UPGRADE,
    banner=lambda call: (
        f"Will put node {call.node.name} into maintenance mode. The node will no longer serve any "
        "client traffic!"
    ),
)
def drain(call: Call) -> None:
    """Close the ports for AMQP and all connections."""
    call.ask("listeners.suspend")
    call.ask("connections.close-all", reason="Node was put into maintenance mode")


@verb(
    tools=_ONLY_UPGRADE,
    banner=lambda call: (
        f"Will put node {call.node.name} back into regular operating mode. The node will again "
        "serve client traffic and host primary queue replicas."
    ),
)
def revive(call: Call) -> None:
    """Open the ports for AMQP again."""
    call.ask("listeners.resume")


@verb(tools=_ONLY_UPGRADE, banner="Executing post upgrade tasks...")
def post_upgrade(call: Call) -> None:
    """Do nothing: the only node has every queue."""
    call.node.overview()


@verb(
    tools=_ONLY_UPGRADE,
    banner=lambda call: (
        "Will wait for a quorum + 1 of nodes to be online for all quorum queues for "
        f"{call.flags.get('timeout') or 120:g} seconds..."
    ),
)
def await_online_quorum_plus_one(call: Call) -> Result:
    """Do not wait: a cluster of one node has no majority to keep."""
    return _alone(call, "command")


@verb(
    "<size>",
    arguments=(0, 1),
    tools=_ONLY_UPGRADE,
    banner=lambda call: f"Checking the size of the cluster of {call.node.name} ...",
)
def has_reached_target_cluster_size(call: Call) -> Result:
    """Succeed: one node is all that there is to be."""
    return _alone(call, "check")


def _alone(call: Call, what: str) -> Result:
    name = call.node.overview()["node"]
    subject = "Target node" if what == "command" else f"Node {name}"
    message = f"Target node {_ALONE.format(what)}"
    return Report(f"{subject} {_ALONE.format(what)}", message=message, result="ok")


@verb(
    tools=(QUEUES,),
    banner=lambda call: (
        f"Checking if node {call.node.name} is critical for quorum of any quorum queues ..."
    ),
)
def check_if_node_is_quorum_critical(call: Call) -> Result:
    """Succeed: the check does not apply to a cluster of one node."""
    return _alone(call, "check")


@verb(
    tools=(QUEUES,),
    banner=lambda call: (
        f"Checking if node {call.node.name} is critical for data safety of any classic mirrored "
        "queues ..."
    ),
)
def check_if_node_is_mirror_sync_critical(call: Call) -> Result:
    """Succeed: the check does not apply to a cluster of one node."""
    return _alone(call, "check")


@verb(
    tools=(QUEUES,),
    banner=lambda call: (
        f"Checking if new quorum queue replicas of node {call.node.name} have finished their "
        "initial sync ..."
    ),
)
def check_if_new_quorum_queue_replicas_have_finished_initial_sync(call: Call) -> Result:
    """Succeed: the check does not apply to a cluster of one node."""
    return _alone(call, "check")
