"""`rabbitmq-plugins`: what plugins do in RabbitMQ is built into Harebell, or not there."""

from __future__ import annotations

import re

from harebell_rabbitmq_compat.exits import SOFTWARE, UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.verb import ANY, MANY, PLUGINS, Call, Report, Result, verb

BUILT_IN = (
    *("rabbitmq_auth_mechanism_ssl", "rabbitmq_consistent_hash_exchange"),
    *("rabbitmq_delayed_message_exchange", "rabbitmq_event_exchange"),
    *("rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_prometheus"),
    *("rabbitmq_random_exchange", "rabbitmq_recent_history_exchange"),
    "rabbitmq_web_dispatch",
)
"""Plugins of RabbitMQ, and the delayed message exchange, that are a part of Harebell."""

_ABSENT = (
    *("rabbitmq_amqp1_0", "rabbitmq_auth_backend_cache", "rabbitmq_auth_backend_http"),
    *("rabbitmq_auth_backend_ldap", "rabbitmq_auth_backend_oauth2"),
    *("rabbitmq_federation", "rabbitmq_federation_management"),
    *("rabbitmq_jms_topic_exchange", "rabbitmq_mqtt", "rabbitmq_peer_discovery_aws"),
    *("rabbitmq_peer_discovery_common", "rabbitmq_peer_discovery_consul"),
    *("rabbitmq_peer_discovery_etcd", "rabbitmq_peer_discovery_k8s", "rabbitmq_sharding"),
    *("rabbitmq_shovel", "rabbitmq_shovel_management", "rabbitmq_stomp"),
    *("rabbitmq_stream", "rabbitmq_stream_management", "rabbitmq_top"),
    *("rabbitmq_tracing", "rabbitmq_trust_store", "rabbitmq_web_mqtt"),
    "rabbitmq_web_stomp",
)
KNOWN = tuple(sorted(BUILT_IN + _ABSENT))
"""Plugins that come with RabbitMQ, and the delayed message exchange."""


def _running_on(call: Call) -> str | None:
    try:
        return str(call.node.overview()["node"])
    except VerbFailed:
        return None


@verb(
    "[pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
    short={"v": "verbose", "m": "minimal", "e": "enabled", "E": "implicitly-enabled"},
    tools=PLUGINS,
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
    names = [name for name in (BUILT_IN if only else KNOWN) if matches(name)]
    node = _running_on(call)
    rows = [
        {
            "enabled": "enabled" if name in BUILT_IN else "not_enabled",
            "name": name,
            "running": name in BUILT_IN and node is not None,
            "version": VERSION if name in BUILT_IN else "",
        }
        for name in names
    ]
    if call.flags.get("minimal"):
        return Report("\n".join(names), format="minimal", plugins=rows)
    width = max(map(len, names), default=0)
    body = [
        f"[{'E' if row['version'] else ' '}{'*' if row['running'] else ' '}] "
        f"{str(row['name']).ljust(width)} {row['version'] or 'not available'}"
        for row in rows
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
    unknown = [name for name in names if name not in KNOWN]
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
    if call.flags.get("quiet") or call.flags.get("silent"):
        return ""
    listed = "\n".join(f"  {name}" for name in BUILT_IN)
    return (
        f"{word} plugins on node {node}:\n"
        + "".join(f"{name}\n" for name in call.arguments)
        + f"The following plugins have been configured:\n{listed}\n"
        + f"Applying plugin configuration to {node}...\nPlugin configuration unchanged."
    )


_FLAGS = {"online": bool, "offline": bool, "all": bool}


_ANY_NUMBER = "<plugin1> [ <plugin2>] [--offline] [--online]"
_OR_ALL = "<plugin1> [ <plugin2>] | --all [--offline] [--online]"


@verb(_ANY_NUMBER, arguments=(0, MANY), flags=_FLAGS, tools=PLUGINS, state=ANY, name="set")
@verb(_OR_ALL, arguments=(0, MANY), flags=_FLAGS, tools=PLUGINS, state=ANY)
def enable(call: Call) -> str:
    """Accept plugins that are built in."""
    _checked(call.arguments)
    return _changed(call, "Enabling")


@verb(_OR_ALL, arguments=(0, MANY), flags=_FLAGS, tools=PLUGINS, state=ANY)
def disable(call: Call) -> str:
    """Accept names of plugins; what is built in stays."""
    _checked([name for name in call.arguments if name not in KNOWN])
    return _changed(call, "Disabling")


@verb(
    _ANY_NUMBER,
    arguments=(1, MANY),
    flags=_FLAGS,
    tools=PLUGINS,
    state=ANY,
    banner=lambda call: (
        f"Asking node {call.node.name} if plugin{_named(call.arguments)} enabled..."
    ),
)
def is_enabled(call: Call) -> Result:
    """Fail unless plugins are built in."""
    node = call.node.name
    missing = [name for name in call.arguments if name not in BUILT_IN]
    if missing:
        raise VerbFailed(
            f"Plugin{_named(missing)} not enabled on node {node}. Enabled plugins and "
            f"dependencies: {', '.join(BUILT_IN)}"
        )
    return Report(f"Plugin{_named(call.arguments)} enabled on node {node}", result="ok")


def _named(names: list[str]) -> str:
    """Return what follows "plugin" in a sentence about plugins: " a is" or "s a, b are"."""
    return f"s {', '.join(names)} are" if len(names) > 1 else f" {names[0]} is"


@verb(tools=PLUGINS, state=ANY, banner="Listing plugin directories used by node {node}")
def directories(call: Call) -> Result:
    """Say that there are no plugin files."""
    text = "Plugin archives directory: (none: features are built in)"
    return Report(text, plugins_dir="", plugins_expand_dir="", enabled_plugins_file="")
