"""Vhosts, policies, parameters and limits."""

from __future__ import annotations

import json
from typing import Any

from harebell_rabbitmq_compat.exits import UNAVAILABLE, USAGE, VerbFailed
from harebell_rabbitmq_compat.tables import Rows, Word, encoded
from harebell_rabbitmq_compat.verb import CTL, MANY, Call, verb
from harebell_rabbitmq_compat.verbs.lists import selected

_ONLY_CTL = (CTL,)
_VHOST_COLUMNS = (
    *("name", "description", "tags", "default_queue_type", "tracing", "cluster_state", "metadata"),
    "protected_from_deletion",
)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise VerbFailed(f"JSON decoding error. Reason: {error}") from None


def _object(text: str) -> dict[str, Any]:
    value = _json(text)
    if not isinstance(value, dict):
        raise VerbFailed("JSON decoding error. Reason: it is not an object")
    return value


# --- vhosts ---------------------------------------------------------------------------------------


@verb(
    "[--no-table-headers] [<column> ...]",
    arguments=(0, MANY),
    columns=_VHOST_COLUMNS,
    banner="Listing vhosts ...",
)
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
    arguments=(1, 1),
    flags={"description": str, "tags": str, "default-queue-type": str},
    tools=_ONLY_CTL,
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
    arguments=(1, 1),
    flags={"description": str, "tags": str, "default-queue-type": str},
    tools=_ONLY_CTL,
    banner='Updating metadata of vhost "{0}" ...',
)
def update_vhost_metadata(call: Call) -> None:
    """Change description, tags or default queue type of a vhost."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.set", name=call.arguments[0], **_metadata(call))


@verb(
    "<vhost> <tag> [...]",
    arguments=(1, MANY),
    tools=_ONLY_CTL,
    banner=lambda call: (
        f'Setting tags for vhost "{call.arguments[0]}" to [{", ".join(call.arguments[1:])}] ...'
    ),
)
def set_vhost_tags(call: Call) -> None:
    """Replace the tags of a vhost."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.set", name=call.arguments[0], tags=call.arguments[1:])


@verb(
    "<vhost>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Deleting vhost "{0}" ...',
)
def delete_vhost(call: Call) -> None:
    """Delete a vhost with everything in it."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.delete", name=call.arguments[0])


@verb(
    "<vhost>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Protecting vhost "{0}" from deletion ...',
)
def enable_vhost_deletion_protection(call: Call) -> None:
    """Keep a vhost from being deleted."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.protect", name=call.arguments[0])


@verb(
    "<vhost>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Removing the protection of vhost "{0}" ...',
)
def disable_vhost_deletion_protection(call: Call) -> None:
    """Let a vhost be deleted again."""
    call.require_vhost(call.arguments[0])
    call.ask("vhosts.unprotect", name=call.arguments[0])


@verb(
    "[--vhost <vhost>]",
    tools=_ONLY_CTL,
    banner='Starting tracing for vhost "{vhost}" ...',
)
def trace_on(call: Call) -> str:
    """Copy all messages of a vhost to its exchange amq.rabbitmq.trace."""
    call.require_vhost()
    call.ask("trace.on", vhost=call.vhost)
    return f"Trace enabled for vhost {call.vhost}"


@verb(
    "[--vhost <vhost>]",
    tools=_ONLY_CTL,
    banner='Stopping tracing for vhost "{vhost}" ...',
)
def trace_off(call: Call) -> str:
    """Stop copying messages of a vhost."""
    call.require_vhost()
    call.ask("trace.off", vhost=call.vhost)
    return f"Trace disabled for vhost {call.vhost}"


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


def _clear_policy(call: Call, noun: str) -> None:
    name = call.arguments[0]
    call.require_vhost()
    if all(row["name"] != name for row in call.ask(f"{noun}.list", vhost=call.vhost)):
        raise VerbFailed("Parameter does not exist", UNAVAILABLE)
    call.ask(f"{noun}.clear", vhost=call.vhost, name=name)


@verb(
    "[--vhost <vhost>] [--no-table-headers]",
    banner='Listing policies for vhost "{vhost}" ...',
)
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
    arguments=(3, 3),
    flags={"priority": int, "apply-to": str},
    tools=_ONLY_CTL,
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
    arguments=(3, 3),
    flags={"priority": int, "apply-to": str},
    tools=_ONLY_CTL,
    banner=lambda call: (
        f'Setting operator policy override "{call.arguments[0]}" for pattern '
        f'"{call.arguments[1]}" to "{call.arguments[2]}" with priority '
        f'"{call.flags.get("priority", 0)}" for vhost "{call.vhost}" ...'
    ),
)
def set_operator_policy(call: Call) -> None:
    """Set an operator policy, which limits what policies set."""
    _set_policy(call, "operator-policies.set")


@verb(
    "[--vhost <vhost>] <policy>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Clearing policy "{0}" on vhost "{vhost}" ...',
)
def clear_policy(call: Call) -> None:
    """Remove a policy."""
    _clear_policy(call, "policies")


@verb(
    "[--vhost <vhost>] <policy>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Clearing operator policy "{0}" on vhost "{vhost}" ...',
)
def clear_operator_policy(call: Call) -> None:
    """Remove an operator policy."""
    _clear_policy(call, "operator-policies")


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


@verb(
    "[--vhost <vhost>] <component_name> <name> <value>",
    arguments=(3, 3),
    tools=_ONLY_CTL,
    banner=('Setting runtime parameter "{1}" for component "{0}" to "{2}" in vhost "{vhost}" ...'),
)
def set_parameter(call: Call) -> None:
    """Set a parameter of a vhost to a value in JSON."""
    component, name, value = call.arguments
    parsed = _json(value)
    call.require_vhost()
    call.ask("parameters.set", vhost=call.vhost, component=component, name=name, value=parsed)


@verb(
    "[--vhost <vhost>] <component_name> <name>",
    arguments=(2, 2),
    tools=_ONLY_CTL,
    banner=('Clearing runtime parameter "{1}" for component "{0}" on vhost "{vhost}" ...'),
)
def clear_parameter(call: Call) -> None:
    """Remove a parameter of a vhost."""
    component, name = call.arguments
    call.require_vhost()
    held = call.ask("parameters.list", vhost=call.vhost)
    if all((row["component"], row["name"]) != (component, name) for row in held):
        raise VerbFailed("Parameter does not exist", UNAVAILABLE)
    call.ask("parameters.clear", vhost=call.vhost, component=component, name=name)


@verb("[--no-table-headers] [--timeout <timeout>]", banner="Listing global runtime parameters ...")
def list_global_parameters(call: Call) -> Rows:
    """Print parameters of the whole broker."""
    rows = [{**row, "value": encoded(row["value"])} for row in call.ask("global-parameters.list")]
    return Rows(["name", "value"], rows)


@verb(
    "<name> <value>",
    arguments=(2, 2),
    tools=_ONLY_CTL,
    banner='Setting global runtime parameter "{0}" to "{1}" ...',
)
def set_global_parameter(call: Call) -> None:
    """Set a parameter of the whole broker to a value in JSON."""
    name, value = call.arguments
    call.ask("global-parameters.set", name=name, value=_json(value))


@verb(
    "<name>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner='Clearing global runtime parameter "{0}" ...',
)
def clear_global_parameter(call: Call) -> None:
    """Remove a parameter of the whole broker."""
    name = call.arguments[0]
    if all(row["name"] != name for row in call.ask("global-parameters.list")):
        raise VerbFailed("Parameter does not exist", UNAVAILABLE)
    call.ask("global-parameters.clear", name=name)


@verb(
    "<name>",
    arguments=(1, 1),
    tools=_ONLY_CTL,
    banner="Setting cluster name to {0} ...",
)
def set_cluster_name(call: Call) -> None:
    """Set the name of the cluster, which clients and tools show."""
    call.ask("global-parameters.set", name="cluster_name", value=call.arguments[0])


# --- limits ---------------------------------------------------------------------------------------


def _limits(rows: list[dict[str, Any]], of: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        if row[of]:
            found.setdefault(row[of], {})[row["limit"]] = row["value"]
    return found


@verb(
    "[--vhost <vhost>] [--global] [--no-table-headers]",
    flags={"global": bool},
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
    arguments=(1, 1),
    tools=_ONLY_CTL,
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
    "[--vhost <vhost>]",
    tools=_ONLY_CTL,
    banner='Clearing vhost "{vhost}" limits ...',
)
def clear_vhost_limits(call: Call) -> None:
    """Remove the limits of a vhost."""
    call.require_vhost()
    call.ask("limits.clear", vhost=call.vhost)


@verb(
    "[--user <username>] [--global]",
    flags={"user": str, "global": bool},
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
    "<username> <definition>",
    arguments=(2, 2),
    tools=_ONLY_CTL,
    banner='Setting user limits to "{1}" for user "{0}" ...',
)
def set_user_limits(call: Call) -> None:
    """Set limits of a user, given as a JSON object."""
    definition = _object(call.arguments[1])
    call.ask("limits.set", user=call.arguments[0], **_given_limits(definition))


@verb(
    "<username> <limit_type> | all",
    arguments=(2, 2),
    tools=_ONLY_CTL,
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
