"""Apply a changed configuration to a running broker (SIGHUP, `harebell config reload`).

The declaration of a key names the part of the broker that takes a new value (`Reload`), and
`APPLIED` has what this part does. The logs and the files of TLS are changed before the other parts,
because a file may be unusable. A key without a part keeps its value until a restart. TLS files
that change without a reload are noticed in `harebell.server.net.tls`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harebell.admin.context import WrongArgument
from harebell.base.names import did_you_mean
from harebell.config import Config, Configuration, memory_share
from harebell.config.errors import ConfigError
from harebell.config.setting import Reload, Setting
from harebell.config.settings import ALIASES, BY_NAME, SETTINGS
from harebell.config.shown import plain, toml_value
from harebell.model.settings.ceilings import Ceilings
from harebell.server.net.tls import tls_context

if TYPE_CHECKING:
    from harebell.auth.users import Users
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
    from harebell.front.common.settings import Settings
    from harebell.management.http.listening import HttpListener
    from harebell.model.broker import Broker
    from harebell.server.disk.storage import Storage
    from harebell.server.logs.published_log import PublishedLog
    from harebell.server.memory_watch import MemoryWatch
    from harebell.server.net.tls import ServerTls
    from harebell.server.new_vhosts import NewVHosts


class Running(Protocol):
    """The parts of a running broker that a reload changes: see `harebell.server.app.App`."""

    config: Config
    again: Callable[[], Configuration] | None
    logger: PublishedLog
    tls: ServerTls | None
    users: Users
    new_vhosts: NewVHosts
    settings: Settings
    registry: ConnectionRegistry
    overdue: DeliveryAckTimeout
    memory: MemoryWatch
    broker: Broker
    storage: Storage
    http_listeners: list[HttpListener]
    metrics_listeners: list[HttpListener]

    def look_at_alarms(self) -> None:
        """Block publishers while something is short."""


def reload(app: Running) -> dict[str, Any]:
    """Read the configuration again, and apply what can change.

    Returns:
        "changed": the keys that have a new value; "restart_needed": those that keep the old one.

    Raises:
        ConfigError: a source is invalid; nothing has changed.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    configuration = Configuration(app.config, {}, [], []) if app.again is None else app.again()
    old, new = app.config, configuration.config
    different = [each for each in SETTINGS if getattr(old, each.name) != getattr(new, each.name)]
    changed = [each.name for each in different if each.reloads]
    kept = [each.name for each in different if not each.reloads]
    merged = msgspec.structs.replace(old, **{name: getattr(new, name) for name in changed})
    _apply(app, merged, changed, reads_files=True)
    app.logger.reopen()
    for sentence in configuration.warnings:
        app.logger.write("warning", sentence)
    shown = ", ".join(changed) or "nothing"
    app.logger.write("info", f"the configuration was read again, changed: {shown}")
    if kept:
        app.logger.write(
            "warning", f"these keys keep their values until a restart: {', '.join(kept)}"
        )
    return {"changed": changed, "restart_needed": kept, "warnings": configuration.warnings}


def _apply(app: Running, config: Config, changed: list[str], *, reads_files: bool = False) -> None:
    """Apply a configuration: the files of TLS and of the log first.

    Opening a file may fail. Nothing has changed then, so no configuration is half applied.

    Args:
        app: the running broker.
        config: the new configuration.
        changed: the keys whose values differ.
        reads_files: whether the files of TLS are read even if no key of TLS has changed: a renewed
            certificate has the same path.

    Raises:
        ConfigError: a log file cannot be written; nothing has changed.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    context = None
    parts = dict.fromkeys(BY_NAME[name].reload for name in changed)
    if app.tls is not None and (reads_files or Reload.TLS in parts):
        context = tls_context(config)
    if Reload.LOG in parts:
        app.logger.configure(config)
    if app.tls is not None and context is not None:
        app.tls.use(config, context)
        app.logger.write("info", "the TLS files were read again, for connections from now on")
    app.config = config
    for part in parts:
        if part in APPLIED:
            APPLIED[part](app, config)


def set_key(app: Running, key: str, text: str) -> dict[str, Any]:
    """Set a key to another value until a restart or the next reload.

    Args:
        app: the running broker.
        key: the key; a reload must apply it.
        text: the value, in the form of an environment variable.

    Returns:
        "key" and "value".

    Raises:
        WrongArgument: there is no such key, or the value is wrong.
        ConfigError: it needs a restart, or is a secret.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    setting = _changeable(key)
    try:
        value = setting.read(text)
    except ValueError as error:
        raise WrongArgument(f"{setting.name} {error}") from None
    own = value
    if app.config.storage_stores > 1:
        own = _own(app.config, setting.name, value)
    return {**_with(app, setting, own, "until a restart"), "value": plain(value)}


def _own(config: Config, name: str, value: Any) -> Any:
    """Return the value that a key has in one of several processes, such as a log file's name."""
    from harebell.cluster.process_config import config_of
    from harebell.cluster.stores import number_of

    given = msgspec.structs.replace(config, **{name: value})
    return getattr(config_of(given, number_of(os.environ)), name)


def unset_key(app: Running, key: str) -> dict[str, Any]:
    """Set a key back to its configured value.

    Returns:
        "key" and "value".

    Raises:
        WrongArgument: there is no such key.
        ConfigError: it needs a restart, or a source is invalid.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    setting = _changeable(key)
    config = app.config if app.again is None else app.again().config
    return _with(app, setting, getattr(config, setting.name), "as it is configured")


def _changeable(key: str) -> Setting:
    """Return the setting of a key that a running broker may change.

    Raises:
        WrongArgument: there is no such key.
        ConfigError: it needs a restart, or it is a secret.
    """
    setting = BY_NAME.get(ALIASES.get(key, key))
    if setting is None:
        hint = did_you_mean(key, BY_NAME, quote="'")
        raise WrongArgument(f"there is no key {key!r}: {hint}; `harebell config show` has all")
    if not setting.reloads:
        raise ConfigError(
            f"{setting.name} keeps its value until a restart: change it in the configuration"
        )
    if setting.secret:
        raise ConfigError(f"{setting.name} is a secret: change it in the configuration and reload")
    return setting


def _with(app: Running, setting: Setting, value: Any, until: str) -> dict[str, Any]:
    merged = msgspec.structs.replace(app.config, **{setting.name: value})
    _apply(app, merged, [] if value == getattr(app.config, setting.name) else [setting.name])
    app.logger.write("info", f"{setting.name} was set to {toml_value(value)}, {until}")
    return {"key": setting.name, "value": plain(value)}


def _users(app: Running, config: Config) -> None:
    app.users.restrict_to_loopback(config.loopback_users)
    app.users.algorithm = config.password_hashing_module
    app.new_vhosts.config = config


def reloaded_settings(config: Config) -> dict[str, Any]:
    """Return the arguments of `Settings` that a reload changes."""
    return {
        "channel_max": config.channel_max,
        "channel_max_per_node": config.channel_max_per_node,
        "connection_max": config.connection_max,
        "consumer_max_per_channel": config.consumer_max_per_channel,
        "heartbeat": config.heartbeat,
        "frame_max": config.frame_max,
        "initial_frame_max": config.initial_frame_max,
        "handshake_timeout": config.handshake_timeout_seconds,
        "message_max": config.message_max_bytes,
        "anonymous_user": ""
        if config.anonymous_login_user == "none"
        else config.anonymous_login_user,
        "addresses": config.amqp_addresses,
        "stamp_time": config.message_interceptors_incoming_set_header_timestamp_overwrite,
        "stamp_node": config.message_interceptors_incoming_set_header_routing_node_overwrite,
        "stamp_sent": config.message_interceptors_outgoing_timestamp_enabled,
    }


def limit_logins(registry: ConnectionRegistry, config: Config) -> None:
    """Limit the connections that have not logged in."""
    registry.pending_logins.limit = config.unauthenticated_connection_max
    per_address = config.unauthenticated_connection_max_per_address
    registry.pending_logins.max_per_address = per_address


def _connections(app: Running, config: Config) -> None:
    """Set limits and offers of connections; open connections keep what was negotiated."""
    for name, value in reloaded_settings(config).items():
        setattr(app.settings, name, value)
    limit_logins(app.registry, config)
    _http(app, config)
    app.overdue.set_timeout(config.consumer_timeout)


def _ceilings(app: Running, config: Config) -> None:
    app.broker.limit(
        Ceilings(
            config.vhost_max or None,
            config.cluster_queue_limit or None,
            config.cluster_exchange_limit or None,
        )
    )


def _memory(app: Running, config: Config) -> None:
    app.broker.gauge.set_high(memory_share(config))
    app.memory.measure()
    app.look_at_alarms()


def _disk(app: Running, config: Config) -> None:
    app.storage.set_limits(config)
    app.look_at_alarms()


def _stages(app: Running, config: Config) -> None:
    app.broker.stage_within(app.storage.room_for_stages(config))


def _management(app: Running, config: Config) -> None:
    for listener in app.http_listeners:
        listener.application.configure(config)


def _metrics(app: Running, config: Config) -> None:
    for listener in app.metrics_listeners:
        listener.application.per_object = config.metrics_per_object


def _http(app: Running, config: Config) -> None:
    for listener in (*app.http_listeners, *app.metrics_listeners):
        listener.connections.configure(config)


_Apply = Callable[[Running, Config], None]
APPLIED: dict[Reload, _Apply] = {
    Reload.USERS: _users,
    Reload.CONNECTIONS: _connections,
    Reload.STAGES: _stages,
    Reload.HTTP_API: _management,
    Reload.HTTP_CONNECTIONS: _http,
    Reload.METRICS: _metrics,
    Reload.CEILINGS: _ceilings,
    Reload.MEMORY: _memory,
    Reload.DISK: _disk,
}
"""What each part does with the new configuration; LOG and TLS are changed before, see `_apply`."""
