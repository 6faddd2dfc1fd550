"""What the broker has stored: vhosts, the database, counts of logins, matching policies."""

from __future__ import annotations

from typing import Any

from harebell_rabbitmq_compat.exits import SOFTWARE, VerbFailed, WrongArguments
from harebell_rabbitmq_compat.tables import Rows, column_names
from harebell_rabbitmq_compat.verb import CTL, DIAGNOSTICS, MANY, Call, Report, Result, verb

_ONLY_CTL = (CTL,)
_ONLY_DIAGNOSTICS = (DIAGNOSTICS,)
_DEPRECATED_COLUMNS = ("name", "deprecation_phase", "provided_by", "desc", "doc_url", "state")
_ATTEMPT_COLUMNS = ("auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")


@verb(
    "[--vhost <vhost>]",
    tools=_ONLY_CTL,
    banner=lambda call: f"Trying to restart vhost '{call.vhost}' on node '{call.node.name}' ...",
)
def restart_vhost(call: Call) -> str:
    """Do nothing for a vhost that is there: it runs as long as the process."""
    name = call.node.name
    if not call.has_vhost(call.vhost):
        raise VerbFailed(
            f"Failed to start vhost '{call.vhost}' on node '{name}'"
            f'Reason: {{:no_such_vhost, "{call.vhost}"}}',
            SOFTWARE,
        )
    return f"Vhost '{call.vhost}' is already running on node '{name}'"


@verb(
    tools=_ONLY_CTL,
    banner=lambda call: (
        f"Will try to initiate virtual host reconciliation on node {call.node.name} ..."
    ),
)
def reconcile_vhosts(call: Call) -> None:
    """Do nothing: a vhost is on the only node from the moment it is added."""
    call.node.overview()


@verb(
    "[--used] [<column>, ...]",
    arguments=(0, MANY),
    flags={"used": bool},
    columns=_DEPRECATED_COLUMNS,
    banner="Listing deprecated features ...",
)
def list_deprecated_features(call: Call) -> Rows:
    """Print no features: Harebell has none that it will take away."""
    call.node.overview()
    columns = column_names(call.arguments) or ["name", "deprecation_phase", "state"]
    return Rows(columns, [])


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: (
        f"Checking if any deprecated features are used in the cluster of {call.node.name} ..."
    ),
)
def check_if_any_deprecated_features_are_used(call: Call) -> Result:
    """Succeed: there are no deprecated features."""
    call.node.overview()
    return Report("Cluster reported no deprecated features in use", result="ok")


@verb("[<column>, ...]", arguments=(0, MANY), banner="Listing channel interceptors ...")
def list_channel_interceptors(call: Call) -> Rows:
    """Print no interceptors: there are no plugins that could have one."""
    call.node.overview()
    return Rows(("name",), [])


# --- the database ---------------------------------------------------------------------------------


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: f"Status of metadata store on node {call.node.name} ...",
)
def metadata_store_status(call: Call) -> Rows:
    """Print the members of the database of definitions: this node."""
    columns = ("Node Name", "Raft State")
    return Rows(columns, [{"Node Name": call.node.name, "Raft State": "leader"}])


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: (
        f"Checking if metadata store on node {call.node.name} has completed its initialization..."
    ),
)
def check_if_metadata_store_is_initialized(call: Call) -> Result:
    """Succeed: a broker that answers has read its database."""
    name = call.node.overview()["node"]
    text = f"Metadata store on node {name} has completed its initialization"
    return Report(text, result="ok")


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: (
        f"Checking if metadata store on node {call.node.name} has completed its initialization..."
    ),
)
def check_if_metadata_store_is_initialized_with_data(call: Call) -> Result:
    """Fail if the database has no user."""
    name = call.node.overview()["node"]
    if not call.ask("users.list"):
        raise VerbFailed(f"Metadata store on node {name} has no data")
    text = f"Metadata store on node {name} has completed its initialization and has data"
    return Report(text, result="ok")


# --- logins ---------------------------------------------------------------------------------------


@verb(
    "[--by-source]",
    flags={"by-source": bool},
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: f'Listing authentication\n attempts for node "{call.node.name}" ...',
)
def list_node_auth_attempt_stats(call: Call) -> Result:
    """Print how many logins to the HTTP API succeeded and failed."""
    name = call.node.overview()["node"]
    by_source = call.flags.get("by-source")
    command = "service.login-attempts-by-source" if by_source else "service.login-attempts"
    rows: list[dict[str, Any]] = call.ask(command, node=name)
    columns = (*(("remote_address", "username") if by_source else ()), "protocol")
    columns += _ATTEMPT_COLUMNS
    if not rows:
        text = f"Node {name} reported no authentication attempt stats"
    else:
        body = ["\t".join(str(row[column]) for column in columns) for row in rows]
        text = "\n".join(["\t".join(columns), *body])
    return Report(text, attempts=rows, node=name, result="ok")


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner=lambda call: f"Reset auth attempt metrics on node {call.node.name} ...",
)
def reset_node_auth_attempt_metrics(call: Call) -> None:
    """Set the counts of logins to 0."""
    call.ask("service.reset-login-attempts", node=call.node.name)


@verb(
    tools=_ONLY_DIAGNOSTICS,
    banner="Enabling authentication attempt source tracking ...",
)
def enable_auth_attempt_source_tracking(call: Call) -> None:
    """Do nothing: the addresses and users of the latest logins are always counted."""
    call.node.overview()


# --- policies -------------------------------------------------------------------------------------


def _check_kind(call: Call) -> None:
    if call.flags.get("object-type", "queue") not in ("queue", "exchange"):
        raise WrongArguments("Unknown object type: it is queue or exchange")


@verb(
    "[--vhost <vhost>] [--object-type <queue | exchange>] <name>",
    arguments=(1, 1),
    flags={"object-type": str},
    tools=_ONLY_DIAGNOSTICS,
    check=_check_kind,
    banner=lambda call: (
        f"Listing policies that match {call.flags.get('object-type', 'queue')} "
        f"'{call.arguments[0]}' in vhost '{call.vhost}' ..."
    ),
)
def list_policies_that_match(call: Call) -> Rows:
    """Print the policies that match a name, the one that applies first."""
    from harebell.model.settings.policy import Policy

    kind, name = call.flags.get("object-type", "queue"), call.arguments[0]
    if kind == "queue":
        queues = call.ask("queues.list", vhost=call.vhost)
        found = next((row["type"] for row in queues if row["name"] == name), None)
        if found is None:
            raise VerbFailed(f"Queue '{name}' in vhost '{call.vhost}' does not exist")
        kind = str(found)
    rows = [
        row
        for row in call.ask("policies.list", vhost=call.vhost)
        if Policy(
            *(row["name"], row["pattern"], row["apply-to"], row["priority"], row["definition"])
        ).applies(kind, name)
    ]
    columns = ("name", "pattern", "apply-to", "definition", "priority")
    return Rows(columns, sorted(rows, key=lambda row: (-row["priority"], row["name"])))
