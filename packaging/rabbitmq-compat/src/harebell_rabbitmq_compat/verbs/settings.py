"""Vhosts, policies, parameters and limits."""

from __future__ import annotations

from typing import Any

from harebell_rabbitmq_compat.exits import USAGE, VerbFailed
from harebell_rabbitmq_compat.tables import Rows, Word, encoded
from harebell_rabbitmq_compat.verb import CTL, MANY, Call, parsed_json, verb
from harebell_rabbitmq_compat.verbs.lists import selected

_VHOST_COLUMNS = (
    *("name", "description", "tags", "default_queue_type", "tracing", "cluster_state", "metadata"),
    "protected_from_deletion",
)


def _object(text: str) -> dict[str, Any]:
    value = parsed_json(text)
    if not isinstance(value, dict):
        raise VerbFailed("JSON decoding error. Reason: it is not an object")
    return value


# --- vhosts ---------------------------------------------------------------------------------------


@verb("[--no-table-headers] [<column> ...]", columns=_VHOST_COLUMNS, banner="Listing vhosts ...")
def list_vhosts(call: Call) -> Rows:
    """Print vhosts."""
    return selected(
        call,
        call.ask("vhosts.list"),
        ("name",),
        {
            "tags": lambda row: [Word(tag) for tag in row["tags"]],
            "metadata": lambda row: {
                "description": row["description"],
                "tags": list(row["tags"]),
                "default_queue_type": row["default_queue_type"],
            },
            "cluster_state": lambda row: {call.node.name: "running"},
        },
    )


@verb(
    '<vhost> [--description <description>] [--tags "<tag1>,<tag2>,<...>"] '
    "[--default-queue-type <quorum|classic|stream>]",
    tools=CTL,
    banner='Adding vhost "{0}" ...',
)
def add_vhost(call: Call) -> None:
    """Add a vhost."""
    name = call.arguments[0]
    if not call.has_vhost(name):  # RabbitMQ adds one that is there without an error
        call.ask("vhosts.add", name=name, **_metadata(call))


def _metadata(call: Call) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "description" in call.flags:
        given["description"] = call.flags["description"]
    if "tags" in call.flags:
        given["tags"] = [tag.strip() for tag in call.flags["tags"].split(",") if tag.strip()]
    if "default-queue-type" in call.flags:
        given["default_queue_type"] = call.flags["default-queue-type"]
    return given


@verb(
    '<vhost> [--description <description>] [--tags "<tag1>,<tag2>,<...>"] '
    "[--default-queue-type <quorum|classic|stream>]",
    tools=CTL,
    banner='Updating metadata of vhost "{0}" ...',
)
def update_vhost_metadata(call: Call) -> None:
    """Change description, tags or default queue type of a vhost."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.set", name=call.arguments[0], **_metadata(call))


@verb(
    "<vhost> <tag> [...]",
    arguments=(1, MANY),
    tools=CTL,
    banner=lambda call: (
        f'Setting tags for vhost "{call.arguments[0]}" to [{", ".join(call.arguments[1:])}] ...'
    ),
)
def set_vhost_tags(call: Call) -> None:
    """Replace the tags of a vhost."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.set", name=call.arguments[0], tags=call.arguments[1:])


# --- policies -------------------------------------------------------------------------------------


def _list_policies(call: Call, command: str) -> Rows:
    call.require_vhost()
    rows = [
        {**row, "definition": encoded(row["definition"])}
        for row in call.ask(command, vhost=call.vhost)
    ]
    return Rows(["vhost", "name", "pattern", "apply-to", "definition", "priority"], rows)


def _set_policy(call: Call, command: str) -> None:
    name, pattern, definition = call.arguments
    value = _object(definition)
    call.require_vhost()
    call.ask(
        command,
        vhost=call.vhost,
        name=name,
        pattern=pattern,
        definition=value,
        priority=call.flags.get("priority", 0),
        apply_to=call.flags.get("apply-to", "all"),
    )


@verb("[--vhost <vhost>] [--no-table-headers]", banner='Listing policies for vhost "{vhost}" ...')
def list_policies(call: Call) -> Rows:
    """Print policies of a vhost."""
    return _list_policies(call, "policies.list")


@verb(
    "[--vhost <vhost>] [--no-table-headers]",
    banner='Listing operator policy overrides for vhost "{vhost}" ...',
)
def list_operator_policies(call: Call) -> Rows:
    """Print operator policies of a vhost."""
    return _list_policies(call, "operator-policies.list")


_POLICY_USAGE = (
    "[--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] <name> <pattern> "
    "<definition>"
)


@verb(
    _POLICY_USAGE,
    flags={"priority": int},
    tools=CTL,
    banner=lambda call: (
        f'Setting policy "{call.arguments[0]}" for pattern "{call.arguments[1]}" to '
        f'"{call.arguments[2]}" with priority "{call.flags.get("priority", 0)}" for vhost '
        f'"{call.vhost}" ...'
    ),
)
def set_policy(call: Call) -> None:
    """Set a policy: a name, a pattern for names, and a definition in JSON."""
    _set_policy(call, "policies.set")


@verb(
    _POLICY_USAGE,
    flags={"priority": int},
    tools=CTL,
    banner=lambda call: (
        f'Setting operator policy override "{call.arguments[0]}" for pattern '
        f'"{call.arguments[1]}" to "{call.arguments[2]}" with priority '
        f'"{call.flags.get("priority", 0)}" for vhost "{call.vhost}" ...'
    ),
)
def set_operator_policy(call: Call) -> None:
    """Set an operator policy, which limits what policies set."""
    _set_policy(call, "operator-policies.set")


# --- parameters -----------------------------------------------------------------------------------


@verb(
    "[--vhost <vhost>] [--no-table-headers]",
    banner='Listing runtime parameters for vhost "{vhost}" ...',
)
def list_parameters(call: Call) -> Rows:
    """Print parameters of a vhost."""
    call.require_vhost()
    rows = [
        {**row, "value": encoded(row["value"])}
        for row in call.ask("parameters.list", vhost=call.vhost)
    ]
    return Rows(["component", "name", "value"], rows)


@verb("[--no-table-headers] [--timeout <timeout>]", banner="Listing global runtime parameters ...")
def list_global_parameters(call: Call) -> Rows:
    """Print parameters of the whole broker."""
    rows = [{**row, "value": encoded(row["value"])} for row in call.ask("global-parameters.list")]
    return Rows(["name", "value"], rows)


# --- limits ---------------------------------------------------------------------------------------


def _limits(rows: list[dict[str, Any]], of: str) -> dict[str, dict[str, int]]:
    limits: dict[str, dict[str, int]] = {}
    for row in rows:
        if row[of]:
            limits.setdefault(row[of], {})[row["limit"]] = row["value"]
    return limits


@verb(
    "[--vhost <vhost>] [--global] [--no-table-headers]",
    banner=lambda call: (
        "Listing limits for all vhosts ..."
        if call.flags.get("global")
        else f'Listing limits for vhost "{call.vhost}" ...'
    ),
)
def list_vhost_limits(call: Call) -> Rows | str | None:
    """Print the limits of a vhost, or of all with --global."""
    if call.flags.get("global"):
        held = _limits(call.ask("limits.list"), "vhost")
        rows = [{"vhost": name, "limits": encoded(limits)} for name, limits in held.items()]
        return Rows(["vhost", "limits"], rows)
    call.require_vhost()
    limits = _limits(call.ask("limits.list", vhost=call.vhost), "vhost").get(call.vhost)
    return None if limits is None else encoded(limits)


@verb(
    "[--vhost <vhost>] <definition>",
    tools=CTL,
    banner='Setting vhost limits to "{0}" for vhost "{vhost}" ...',
)
def set_vhost_limits(call: Call) -> None:
    """Set limits of a vhost, given as a JSON object."""
    definition = _object(call.arguments[0])
    call.require_vhost()
    call.ask("limits.set", vhost=call.vhost, **_given_limits(definition))


def _given_limits(definition: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in definition.items()}


@verb(
    "[--user <username>] [--global]",
    banner=lambda call: (
        "Listing limits for all users ..."
        if call.flags.get("global")
        else f'Listing limits for user "{call.flags.get("user", "guest")}" ...'
    ),
)
def list_user_limits(call: Call) -> Rows | str:
    """Print the limits of a user, or of all with --global."""
    if call.flags.get("global"):
        held = _limits(call.ask("limits.list"), "user")
        rows = [{"user": name, "limits": encoded(limits)} for name, limits in held.items()]
        return Rows(["user", "limits"], rows)
    name = call.flags.get("user", "guest")
    return encoded(_limits(call.ask("limits.list", user=name), "user").get(name, {}))


@verb(
    "<username> <definition>", tools=CTL, banner='Setting user limits to "{1}" for user "{0}" ...'
)
def set_user_limits(call: Call) -> None:
    """Set limits of a user, given as a JSON object."""
    definition = _object(call.arguments[1])
    call.ask("limits.set", user=call.arguments[0], **_given_limits(definition))


@verb(
    "<username> <limit_type> | all",
    tools=CTL,
    banner=lambda call: (
        f'Clearing all limits for user "{call.arguments[0]}" ...'
        if call.arguments[1] == "all"
        else f'Clearing "{call.arguments[1]}" limit for user "{call.arguments[0]}" ...'
    ),
)
def clear_user_limits(call: Call) -> None:
    """Remove one or all limits of a user."""
    name, kind = call.arguments
    if kind == "all":
        call.ask("limits.clear", user=name)
    elif kind in ("max-connections", "max-channels"):
        call.ask("limits.set", user=name, **{kind.replace("-", "_"): -1})
    else:
        raise VerbFailed(
            f"there is no limit {kind}: give max-connections, max-channels or all", USAGE
        )
