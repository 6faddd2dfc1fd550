"""`rabbitmq-plugins`: what plugins do in RabbitMQ is built into Harebell, or not there."""

from __future__ import annotations

import re
from typing import NamedTuple

from harebell_rabbitmq_compat.exits import SOFTWARE, UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.verb import ANY, MANY, PLUGINS, Call, Report, Result, verb

_ONLY_PLUGINS = (PLUGINS,)


class Plugin(NamedTuple):
    """A plugin of RabbitMQ.

    Args:
        name: its name.
        built_in: Harebell has what it does.
    """

    name: str
    built_in: bool


KNOWN = (
    Plugin("rabbitmq_amqp1_0", built_in=False),
    Plugin("rabbitmq_auth_backend_cache", built_in=False),
    Plugin("rabbitmq_auth_backend_http", built_in=False),
    Plugin("rabbitmq_auth_backend_ldap", built_in=False),
    Plugin("rabbitmq_auth_backend_oauth2", built_in=False),
    Plugin("rabbitmq_auth_mechanism_ssl", built_in=True),
    Plugin("rabbitmq_consistent_hash_exchange", built_in=True),
    Plugin("rabbitmq_delayed_message_exchange", built_in=True),
    Plugin("rabbitmq_event_exchange", built_in=True),
    Plugin("rabbitmq_federation", built_in=False),
    Plugin("rabbitmq_federation_management", built_in=False),
    Plugin("rabbitmq_jms_topic_exchange", built_in=False),
    Plugin("rabbitmq_management", built_in=True),
    Plugin("rabbitmq_management_agent", built_in=True),
    Plugin("rabbitmq_mqtt", built_in=False),
    Plugin("rabbitmq_peer_discovery_aws", built_in=False),
    Plugin("rabbitmq_peer_discovery_common", built_in=False),
    Plugin("rabbitmq_peer_discovery_consul", built_in=False),
    Plugin("rabbitmq_peer_discovery_etcd", built_in=False),
    Plugin("rabbitmq_peer_discovery_k8s", built_in=False),
    Plugin("rabbitmq_prometheus", built_in=True),
    Plugin("rabbitmq_random_exchange", built_in=True),
    Plugin("rabbitmq_recent_history_exchange", built_in=True),
    Plugin("rabbitmq_sharding", built_in=False),
    Plugin("rabbitmq_shovel", built_in=False),
    Plugin("rabbitmq_shovel_management", built_in=False),
    Plugin("rabbitmq_stomp", built_in=False),
    Plugin("rabbitmq_stream", built_in=False),
    Plugin("rabbitmq_stream_management", built_in=False),
    Plugin("rabbitmq_top", built_in=False),
    Plugin("rabbitmq_tracing", built_in=False),
    Plugin("rabbitmq_trust_store", built_in=False),
    Plugin("rabbitmq_web_dispatch", built_in=True),
    Plugin("rabbitmq_web_mqtt", built_in=False),
    Plugin("rabbitmq_web_stomp", built_in=False),
)
"""Plugins that come with RabbitMQ, and the delayed message exchange."""

BUILT_IN = tuple(each.name for each in KNOWN if each.built_in)
_NAMES = {each.name for each in KNOWN}


def _running_on(call: Call) -> str | None:
    try:
        return str(call.node.overview()["node"])
    except VerbFailed:
        return None


@verb(
    "[pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
    arguments=(0, 1),
    flags={"verbose": bool, "minimal": bool, "enabled": bool, "implicitly-enabled": bool},
    short={"v": "verbose", "m": "minimal", "e": "enabled", "E": "implicitly-enabled"},
    tools=_ONLY_PLUGINS,
    state=ANY,
    banner=lambda call: (
        f'Listing plugins with pattern "{call.arguments[0] if call.arguments else ".*"}" ...'
    ),
    name="list",
)
def list_plugins(call: Call) -> Result:
    """Print plugins of RabbitMQ, and which of them are built in."""
    from harebell.base.version import VERSION

    pattern = call.arguments[0] if call.arguments else ".*"
    try:
        matches = re.compile(pattern).search
    except re.error as error:
        raise VerbFailed(f"the pattern {pattern!r} is invalid: {error}", SOFTWARE) from None
    only = call.flags.get("enabled") or call.flags.get("implicitly-enabled")
    chosen = [each for each in KNOWN if matches(each.name) and (each.built_in or not only)]
    node = _running_on(call)
    rows = [
        {
            "enabled": "enabled" if each.built_in else "not_enabled",
            "name": each.name,
            "running": each.built_in and node is not None,
            "version": VERSION if each.built_in else "",
        }
        for each in chosen
    ]
    if call.flags.get("minimal"):
        return Report("\n".join(each.name for each in chosen), format="minimal", plugins=rows)
    width = max((len(each.name) for each in chosen), default=0)
    body = [
        f"[{'E' if each.built_in else ' '}{'*' if row['running'] else ' '}] "
        f"{each.name.ljust(width)} {row['version'] or 'not available'}"
        for each, row in zip(chosen, rows, strict=True)
    ]
    quiet = call.flags.get("quiet") or call.flags.get("silent")
    where = f"* = running on {node}" if node else f"[failed to contact {call.node.wanted}]"
    legend = [
        " Configured: E = explicitly enabled; e = implicitly enabled",
        f" | Status: {where}",
        " |/",
    ]
    text = "\n".join(body if quiet else [*legend, *body])
    return Report(text, format="normal", plugins=rows)


def _checked(names: list[str]) -> None:
    """Refuse plugins that do not exist, or that Harebell does not have.

    Raises:
        VerbFailed: with the first of them.
    """
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        shown = ", ".join(f":{name}" for name in unknown)
        raise VerbFailed(f"{{:plugins_not_found, [{shown}]}}", SOFTWARE)
    missing = [name for name in names if name not in BUILT_IN]
    if missing:
        raise VerbFailed(
            f"Harebell does not have what these plugins do: {', '.join(missing)}", UNAVAILABLE
        )


def _changed(call: Call, word: str) -> str:
    node = call.node.name
    quiet = call.flags.get("quiet") or call.flags.get("silent")
    if quiet:
        return ""
    listed = "\n".join(f"  {name}" for name in BUILT_IN)
    return (
        f"{word} plugins on node {node}:\n"
        + "".join(f"{name}\n" for name in call.arguments)
        + f"The following plugins have been configured:\n{listed}\n"
        + f"Applying plugin configuration to {node}...\nPlugin configuration unchanged."
    )


_FLAGS = {"online": bool, "offline": bool, "all": bool}


@verb(
    "<plugin1> [ <plugin2>] | --all [--offline] [--online]",
    arguments=(0, MANY),
    flags=_FLAGS,
    tools=_ONLY_PLUGINS,
    state=ANY,
)
def enable(call: Call) -> str:
    """Accept plugins that are built in."""
    _checked(call.arguments)
    return _changed(call, "Enabling")


@verb(
    "<plugin1> [ <plugin2>] | --all [--offline] [--online]",
    arguments=(0, MANY),
    flags=_FLAGS,
    tools=_ONLY_PLUGINS,
    state=ANY,
)
def disable(call: Call) -> str:
    """Accept names of plugins; what is built in stays."""
    unknown = [name for name in call.arguments if name not in _NAMES]
    if unknown:
        _checked(unknown)
    return _changed(call, "Disabling")


@verb(
    "<plugin1> [ <plugin2>] [--offline] [--online]",
    arguments=(0, MANY),
    flags=_FLAGS,
    tools=_ONLY_PLUGINS,
    state=ANY,
    name="set",
)
def set_plugins(call: Call) -> str:
    """Accept plugins that are built in."""
    _checked(call.arguments)
    return _changed(call, "Enabling")


@verb(
    "<plugin1> [ <plugin2>] [--offline] [--online]",
    arguments=(1, MANY),
    flags=_FLAGS,
    tools=_ONLY_PLUGINS,
    state=ANY,
    banner=lambda call: _question(call),
)
def is_enabled(call: Call) -> Result:
    """Fail unless plugins are built in."""
    node = call.node.name
    missing = [name for name in call.arguments if name not in BUILT_IN]
    if missing:
        names = (
            f"Plugins {', '.join(missing)} are" if len(missing) > 1 else f"Plugin {missing[0]} is"
        )
        raise VerbFailed(
            f"{names} not enabled on node {node}. Enabled plugins and dependencies: "
            f"{', '.join(BUILT_IN)}"
        )
    names = ", ".join(call.arguments)
    text = (
        f"Plugins {names} are enabled on node {node}"
        if len(call.arguments) > 1
        else f"Plugin {names} is enabled on node {node}"
    )
    return Report(text, result="ok")


def _question(call: Call) -> str:
    names = ", ".join(call.arguments)
    if len(call.arguments) > 1:
        return f"Asking node {call.node.name} if plugins {names} are enabled..."
    return f"Asking node {call.node.name} if plugin {names} is enabled..."


@verb(
    tools=_ONLY_PLUGINS,
    state=ANY,
    banner=lambda call: f"Listing plugin directories used by node {call.node.name}",
)
def directories(call: Call) -> Result:
    """Say that there are no plugin files."""
    text = "Plugin archives directory: (none: features are built in)"
    return Report(text, plugins_dir="", plugins_expand_dir="", enabled_plugins_file="")
