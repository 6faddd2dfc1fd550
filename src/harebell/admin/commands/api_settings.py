"""Vhosts, policies and parameters one by one, as the HTTP API names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.catalog import API_SETTINGS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, POLICYMAKER, Row
from harebell.admin.commands import vhosts as vhost_commands
from harebell.admin.context import AdminContext, missing

if TYPE_CHECKING:
    from harebell.model.settings.policy import Policy
    from harebell.model.vhost import VHost


# --- vhosts ---------------------------------------------------------------------------------------


@API_SETTINGS.command("PUT /api/vhosts/{name}", tag=ADMINISTRATOR)
def put_vhost(
    context: AdminContext,
    name: str,
    description: str | None = None,
    tags: str | list[str] | None = None,
    default_queue_type: str | None = None,
    durability: str | None = None,
    tracing: bool | None = None,
) -> Row:
    """Add a vhost, or change what is given of one.

    The user of the request gets all permissions in a new vhost.
    """
    if default_queue_type == "undefined":
        default_queue_type = ""  # RabbitMQ writes so that there is none
    if tags is not None:
        words = tags.split(",") if isinstance(tags, str) else tags
        tags = [word.strip() for word in words if word.strip()]
    made = name not in context.broker.vhosts
    put = vhost_commands.add if made else vhost_commands.set_vhost
    put(context, name, description, tags, default_queue_type, durability)
    if made and context.actor is not None:
        from harebell.admin.commands.permissions import set_permissions

        set_permissions(context, context.actor.name, ".*", ".*", ".*", name)
    if tracing is not None:
        (vhost_commands.trace_on if tracing else vhost_commands.trace_off)(context, name)
    return {"name": name, "made": made}


@API_SETTINGS.command("POST /api/vhosts/{name}/start/{node}", tag=ADMINISTRATOR)
def start_vhost(context: AdminContext, name: str, node: str) -> Row:
    """Start a vhost: it runs already."""
    context.vhost(name)
    context.check_node(node)
    return {}


# --- policies -------------------------------------------------------------------------------------


def _policy(vhost: VHost, known: dict[str, Policy], name: str) -> Row:
    policy = known.get(name)
    if policy is None:
        raise missing(f"no policy '{name}' in vhost '{vhost.name}'")
    return {
        "vhost": vhost.name,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "priority": policy.priority,
        "definition": dict(policy.definition),
    }


@API_SETTINGS.command("GET /api/policies/{vhost}/{name}", tag=MANAGEMENT)
def policy(context: AdminContext, vhost: str, name: str) -> Row:
    """Return a policy."""
    where = context.vhost(vhost)
    return _policy(where, where.policies.policies, name)


@API_SETTINGS.command("GET /api/operator-policies/{vhost}/{name}", tag=MANAGEMENT)
def operator_policy(context: AdminContext, vhost: str, name: str) -> Row:
    """Return an operator policy."""
    where = context.vhost(vhost)
    return _policy(where, where.policies.operator_policies, name)


# --- parameters -----------------------------------------------------------------------------------


def _parameters(context: AdminContext, component: str, vhost: str | None) -> list[Row]:
    return [
        {"vhost": each.name, "component": component, "name": name, "value": value}
        for each in context.vhosts(vhost)
        for (kind, name), value in sorted(each.parameters.values.items(), key=lambda item: item[0])
        if kind == component
    ]


@API_SETTINGS.command("GET /api/parameters/{component}", tag=POLICYMAKER)
def parameters_of_component(context: AdminContext, component: str) -> list[Row]:
    """Return the parameters of a component in all vhosts."""
    return _parameters(context, component, None)


@API_SETTINGS.command("GET /api/parameters/{component}/{vhost}", tag=POLICYMAKER)
def parameters_of_vhost(context: AdminContext, component: str, vhost: str) -> list[Row]:
    """Return the parameters of a component in a vhost."""
    return _parameters(context, component, vhost)


@API_SETTINGS.command("GET /api/parameters/{component}/{vhost}/{name}", tag=POLICYMAKER)
def parameter(context: AdminContext, component: str, vhost: str, name: str) -> Row:
    """Return a parameter."""
    for row in _parameters(context, component, vhost):
        if row["name"] == name:
            return row
    raise missing(f"no parameter '{component}' '{name}' in vhost '{vhost}'")


@API_SETTINGS.command("GET /api/global-parameters/{name}", tag=ADMINISTRATOR)
def global_parameter(context: AdminContext, name: str) -> Row:
    """Return a global parameter."""
    values: dict[str, Any] = context.broker.global_parameters.values
    if name not in values:
        raise missing(f"no global parameter '{name}'")
    return {"name": name, "value": values[name]}
