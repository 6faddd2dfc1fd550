"""Commands for parameters: `harebell parameters`, `harebell global-parameters`."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.base.limits import PARAMETER_NAME_BYTES
from harebell.wire.v09.fields import encode_table

_GLOBAL = "global"
"""The component that events name for global parameters."""


class Filter(Fields):
    """Parameters of one vhost, or of all."""

    vhost: str | None = None


class Named(Fields):
    """Which parameter, and where."""

    component: str
    name: str
    vhost: str


class Given(Named):
    """A parameter; what is given as null is None."""

    value: Any = None


class GlobalNamed(Fields):
    """Which global parameter."""

    name: str


class GlobalGiven(GlobalNamed):
    """A global parameter."""

    value: Any = None


def _shown(vhost: str, component: str, name: str, value: Any) -> dict[str, Any]:
    return {"vhost": vhost, "component": component, "name": name, "value": value}


def checked_value(name: str, value: Any) -> Any:
    """A value that can be kept.

    Raises:
        Refused: it is too deep, or has numbers or names that are too large.
    """
    try:
        encode_table({"value": value})
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(f"the value of parameter '{name}' cannot be kept: {error}") from None
    return value


def list_parameters(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Parameters by vhost, component and name."""
    wanted = context.broker.vhosts if asked.vhost is None else [context.vhost(asked.vhost).name]
    return [
        _shown(vhost, component, name, value)
        for vhost in sorted(wanted)
        for (component, name), value in sorted(
            context.broker.vhosts[vhost].parameters.values.items(), key=lambda item: item[0]
        )
    ]


def set_parameter(context: AdminContext, asked: Given) -> dict[str, Any]:
    """This value from now on."""
    vhost = context.vhost(asked.vhost)
    component = checked_name(asked.component, "component", PARAMETER_NAME_BYTES)
    name = checked_name(asked.name, "parameter", PARAMETER_NAME_BYTES)
    vhost.parameters.put(component, name, checked_value(name, asked.value))
    context.broker.events.parameter("set", (vhost.name, component, name), asked.value)
    context.log("info", f"parameter '{component}' '{name}' in vhost '{vhost.name}' was set")
    return _shown(vhost.name, component, name, asked.value)


def clear_parameter(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Forget a value."""
    vhost = context.vhost(asked.vhost)
    if not vhost.parameters.delete(asked.component, asked.name):
        raise Refused(
            f"no parameter '{asked.component}' '{asked.name}' in vhost '{vhost.name}': "
            "`harebell parameters list` shows all"
        )
    context.broker.events.parameter("cleared", (vhost.name, asked.component, asked.name))
    context.log(
        "info", f"parameter '{asked.component}' '{asked.name}' in vhost '{vhost.name}' was cleared"
    )
    return {"vhost": vhost.name, "component": asked.component, "name": asked.name}


def list_globals(context: AdminContext, _: Fields) -> list[dict[str, Any]]:
    """Global parameters by name."""
    return [
        {"name": name, "value": value}
        for name, value in sorted(context.broker.global_parameters.values.items())
    ]


def set_global(context: AdminContext, asked: GlobalGiven) -> dict[str, Any]:
    """This value from now on."""
    name = checked_name(asked.name, "parameter", PARAMETER_NAME_BYTES)
    context.broker.global_parameters.put(name, checked_value(name, asked.value))
    context.broker.events.parameter("set", ("", _GLOBAL, name), asked.value)
    context.log("info", f"global parameter '{name}' was set")
    return {"name": name, "value": asked.value}


def clear_global(context: AdminContext, asked: GlobalNamed) -> dict[str, Any]:
    """Forget a value."""
    if not context.broker.global_parameters.delete(asked.name):
        raise Refused(
            f"no global parameter '{asked.name}': `harebell global-parameters list` shows all"
        )
    context.broker.events.parameter("cleared", ("", _GLOBAL, asked.name))
    context.log("info", f"global parameter '{asked.name}' was cleared")
    return {"name": asked.name}


COMMANDS = {
    "parameters.list": Command(Filter, list_parameters),
    "parameters.set": Command(Given, set_parameter),
    "parameters.clear": Command(Named, clear_parameter),
    "global-parameters.list": Command(Fields, list_globals),
    "global-parameters.set": Command(GlobalGiven, set_global),
    "global-parameters.clear": Command(GlobalNamed, clear_global),
}
