"""Commands for parameters of vhosts, and for those of the whole broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import OnlyVhost
from harebell.admin.catalog import GLOBAL_PARAMETERS, PARAMETERS
from harebell.admin.command import ADMINISTRATOR, POLICYMAKER, Argument, Form, Row
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    checked_name,
    checked_value,
    missing,
)
from harebell.admin.limits import PARAMETER_NAME_BYTES
from harebell.base.errors import ErrorKind
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.vhost import VHost

_GLOBAL = "global"
"""The component that events name for global parameters."""
ForVhost = Annotated[str, Argument("The vhost it is for.", "NAME")]
Value = Annotated[Any, Argument(form=Form.JSON, example="""'{"a": 1}' or '"text"'""")]

# --- parameters of vhosts -------------------------------------------------------------------------


@PARAMETERS.listing(
    "parameters",
    "GET /api/parameters",
    tag=POLICYMAKER,
    row=("vhost", "component", "name", "value"),
)
def list_parameters(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[Row]]:
    """List parameters by vhost, component and name."""
    return gathered(_rows(context.vhosts(vhost)))


def _rows(vhosts: list[VHost]) -> Iterator[Row]:
    for each in vhosts:
        values = each.parameters.values
        for component, name in sorted(values):
            # It may be cleared while the rows are made.
            if (component, name) in values:
                value = values[component, name]
                yield {"vhost": each.name, "component": component, "name": name, "value": value}


@PARAMETERS.command(
    "PUT /api/parameters/{component}/{vhost}/{name}",
    verb="set",
    tag=POLICYMAKER,
    done="parameter '{component}' '{name}' in vhost '{vhost}' was set",
)
def set_parameter(
    context: AdminContext, component: str, name: str, value: Value, vhost: ForVhost = "/"
) -> Row:
    """Set the parameter NAME of a component. VALUE is JSON."""
    where = context.vhost(vhost)
    _check_component(context, component)
    checked_name(component, "component", PARAMETER_NAME_BYTES)
    checked_name(name, "parameter", PARAMETER_NAME_BYTES)
    made = (component, name) not in where.parameters.values
    where.parameters.put(component, name, checked_value(name, value))
    context.broker.events.parameter("set", (where.name, component, name), value)
    context.log("info", f"parameter '{component}' '{name}' in vhost '{where.name}' was set")
    row = {"vhost": where.name, "component": component, "name": name, "value": value}
    return {**row, "made": made}


@PARAMETERS.command(
    "DELETE /api/parameters/{component}/{vhost}/{name}",
    verb="clear",
    tag=POLICYMAKER,
    done="parameter '{component}' '{name}' in vhost '{vhost}' was cleared",
)
def clear_parameter(context: AdminContext, component: str, name: str, vhost: ForVhost = "/") -> Row:
    """Forget the parameter NAME of a component."""
    where = context.vhost(vhost)
    _check_component(context, component)
    if not where.parameters.delete(component, name):
        raise missing(
            f"no parameter '{component}' '{name}' in vhost '{where.name}': "
            "`harebell parameters list` shows all"
        )
    context.broker.events.parameter("cleared", (where.name, component, name))
    context.log("info", f"parameter '{component}' '{name}' in vhost '{where.name}' was cleared")
    return {"vhost": where.name, "component": component, "name": name}


def _check_component(context: AdminContext, component: str) -> None:
    """Refuse to change limits to those who may not do so with the commands for limits.

    Raises:
        CommandRefused: ACCESS_REFUSED.
    """
    from harebell.model.settings.vhost_limits import COMPONENT

    actor = context.actor
    if component == COMPONENT and actor is not None and ADMINISTRATOR not in actor.tags:
        raise CommandRefused(
            f"parameters of component '{component}' are limits of the vhost: an administrator may "
            "change them",
            ErrorKind.ACCESS_REFUSED,
        )


@PARAMETERS.over_http(
    "GET /api/parameters/{component}",
    "GET /api/parameters/{component}/{vhost}: Return the parameters of a component in a vhost.",
    tag=POLICYMAKER,
)
def parameters_of_component(
    context: AdminContext, component: str, vhost: str | None = None
) -> list[Row]:
    """Return the parameters of a component in all vhosts."""
    return [
        {"vhost": each.name, "component": component, "name": name, "value": value}
        for each in context.vhosts(vhost)
        for (kind, name), value in sorted(each.parameters.values.items(), key=lambda item: item[0])
        if kind == component
    ]


@PARAMETERS.over_http("GET /api/parameters/{component}/{vhost}/{name}", tag=POLICYMAKER)
def show(context: AdminContext, component: str, vhost: str, name: str) -> Row:
    """Return a parameter."""
    for row in parameters_of_component(context, component, vhost):
        if row["name"] == name:
            return row
    raise missing(f"no parameter '{component}' '{name}' in vhost '{vhost}'")


# --- parameters of the broker ---------------------------------------------------------------------


@GLOBAL_PARAMETERS.listing(
    "global parameters",
    "GET /api/global-parameters",
    tag=ADMINISTRATOR,
    row=("name", "value"),
)
def list_global_parameters(context: AdminContext) -> list[Row]:
    """List global parameters by name."""
    return [
        {"name": name, "value": value}
        for name, value in sorted(context.broker.global_parameters.values.items())
    ]


@GLOBAL_PARAMETERS.command(
    "PUT /api/global-parameters/{name}",
    verb="set",
    tag=ADMINISTRATOR,
    done="global parameter '{name}' was set",
)
def set_global_parameter(context: AdminContext, name: str, value: Value) -> Row:
    """Set the global parameter NAME. VALUE is JSON."""
    checked_name(name, "parameter", PARAMETER_NAME_BYTES)
    made = name not in context.broker.global_parameters.values
    context.broker.global_parameters.put(name, checked_value(name, value))
    context.broker.events.parameter("set", ("", _GLOBAL, name), value)
    context.log("info", f"global parameter '{name}' was set")
    return {"name": name, "value": value, "made": made}


@GLOBAL_PARAMETERS.command(
    "DELETE /api/global-parameters/{name}",
    verb="clear",
    tag=ADMINISTRATOR,
    done="global parameter '{name}' was cleared",
)
def clear_global_parameter(context: AdminContext, name: str) -> Row:
    """Forget the global parameter NAME."""
    if not context.broker.global_parameters.delete(name):
        raise missing(f"no global parameter '{name}': `harebell global-parameters list` shows all")
    context.broker.events.parameter("cleared", ("", _GLOBAL, name))
    context.log("info", f"global parameter '{name}' was cleared")
    return {"name": name}


@GLOBAL_PARAMETERS.over_http("GET /api/global-parameters/{name}", tag=ADMINISTRATOR)
def show_global(context: AdminContext, name: str) -> Row:
    """Return a global parameter."""
    values: dict[str, Any] = context.broker.global_parameters.values
    if name not in values:
        raise missing(f"no global parameter '{name}'")
    return {"name": name, "value": values[name]}
