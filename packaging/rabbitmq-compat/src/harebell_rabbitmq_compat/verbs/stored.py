"""What the broker has stored: vhosts, the database, counts of logins, matching policies."""

from __future__ import annotations

from typing import Any

from harebell_rabbitmq_compat.exits import SOFTWARE, VerbFailed, WrongArguments
from harebell_rabbitmq_compat.tables import Rows, column_names
from harebell_rabbitmq_compat.verb import CTL, DIAGNOSTICS, Call, Report, Result, verb

_DEPRECATED_COLUMNS = ("name", "deprecation_phase", "provided_by", "desc", "doc_url", "state")
_ATTEMPT_COLUMNS = ("auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")


@verb(
    "[--vhost <vhost>]", tools=CTL, banner="Trying to restart vhost '{vhost}' on node '{node}' ..."
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
    "[--used] [<column>, ...]",
    columns=_DEPRECATED_COLUMNS,
    banner="Listing deprecated features ...",
)
def list_deprecated_features(call: Call) -> Rows:
    """Print no features: Harebell has none that it will take away."""
    call.node.overview()
    columns = column_names(call.arguments) or ["name", "deprecation_phase", "state"]
    return Rows(columns, [])


@verb("[<column>, ...]", banner="Listing channel interceptors ...")
def list_channel_interceptors(call: Call) -> Rows:
    """Print no interceptors: there are no plugins that could have one."""
    call.node.overview()
    return Rows(("name",), [])


# --- the database ---------------------------------------------------------------------------------


@verb(tools=DIAGNOSTICS, banner="Status of metadata store on node {node} ...")
def metadata_store_status(call: Call) -> Rows:
    """Print the members of the database of definitions: this node."""
    columns = ("Node Name", "Raft State")
    return Rows(columns, [{"Node Name": call.node.name, "Raft State": "leader"}])


@verb(
    tools=DIAGNOSTICS,
    banner="Checking if metadata store on node {node} has completed its initialization...",
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
    tools=DIAGNOSTICS,
    banner='Listing authentication\n attempts for node "{node}" ...',
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


# --- policies -------------------------------------------------------------------------------------


def _check_kind(call: Call) -> None:
    if call.flags.get("object-type", "queue") not in ("queue", "exchange"):
        raise WrongArguments("Unknown object type: it is queue or exchange")


@verb(
    "[--vhost <vhost>] [--object-type <queue | exchange>] <name>",
    tools=DIAGNOSTICS,
    check=_check_kind,
    banner=lambda call: (
        f"Listing policies that match {call.flags.get('object-type', 'queue')} "
        f"'{call.arguments[0]}' in vhost '{call.vhost}' ..."
    ),
)
def list_policies_that_match(call: Call) -> Rows:
    """Print the policies that match a name, the one that applies first."""
    from harebell.base.patterns import SearchBudget
    from harebell.model.settings.policy import Policy

    kind, name = call.flags.get("object-type", "queue"), call.arguments[0]
    if kind == "queue":
        queues = call.ask("queues.list", vhost=call.vhost)
        queue_type = next((row["type"] for row in queues if row["name"] == name), None)
        if queue_type is None:
            raise VerbFailed(f"Queue '{name}' in vhost '{call.vhost}' does not exist")
        kind = str(queue_type)
    rows = [
        row
        for row in call.ask("policies.list", vhost=call.vhost)
        if Policy(
            *(row["name"], row["pattern"], row["apply-to"], row["priority"], row["definition"])
        ).applies(kind, name, SearchBudget())
    ]
    columns = ("name", "pattern", "apply-to", "definition", "priority")
    return Rows(columns, sorted(rows, key=lambda row: (-row["priority"], row["name"])))
