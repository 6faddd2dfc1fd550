"""Apply a changed configuration to a running broker (SIGHUP, `harebell config reload`).

`APPLIED` has what a key needs beyond the new value: keys without an entry are read where they are
used. The logs and the files of TLS are changed before them, because they may be unusable. A key
that the table of settings does not mark as reloadable keeps its value until a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harebell.base.names import did_you_mean
from harebell.model.settings.ceilings import Ceilings
from harebell.server.config import Config, Configuration, memory_bytes
from harebell.server.config.errors import ConfigError
from harebell.server.config.setting import Setting
from harebell.server.config.settings import ALIASES, BY_NAME, SETTINGS
from harebell.server.config.shown import plain, toml_value
from harebell.server.net.tls import tls_context

if TYPE_CHECKING:
    from harebell.auth.users import Users
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
    from harebell.front.common.settings import Settings
    from harebell.model.broker import Broker
    from harebell.server.disk.storage import Storage
    from harebell.server.http.listening import HttpListener
    from harebell.server.logs.published_log import PublishedLog
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
    broker: Broker
    storage: Storage
    http_listeners: list[HttpListener]
    metrics_listeners: list[HttpListener]


def reload(app: Running) -> dict[str, Any]:
    """Read the configuration again, and apply what can change.

    Returns:
        "changed": the keys that have a new value; "restart_needed": those that keep the old one.

    Raises:
        ConfigError: a source is invalid; nothing has changed.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    found = Configuration(app.config, {}, [], []) if app.again is None else app.again()
    old, new = app.config, found.config
    different = [each for each in SETTINGS if getattr(old, each.name) != getattr(new, each.name)]
    changed = [each.name for each in different if each.reloads]
    kept = [each.name for each in different if not each.reloads]
    merged = msgspec.structs.replace(old, **{name: getattr(new, name) for name in changed})
    _apply(app, merged, changed, reads_files=True)
    app.logger.reopen()
    for sentence in found.warnings:
        app.logger.write("warning", sentence)
    shown = ", ".join(changed) or "nothing"
    app.logger.write("info", f"the configuration was read again, changed: {shown}")
    if kept:
        app.logger.write(
            "warning", f"these keys keep their values until a restart: {', '.join(kept)}"
        )
    return {"changed": changed, "restart_needed": kept, "warnings": found.warnings}


def _apply(app: Running, config: Config, changed: list[str], *, reads_files: bool = False) -> None:
    """Apply a configuration; first what may fail, so that nothing is half applied.

    Args:
        app: the running broker.
        config: the new configuration.
        changed: the keys whose values differ.
        reads_files: whether the files of TLS are read also if their keys are the same.

    Raises:
        ConfigError: a log file cannot be written; nothing has changed.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    context = None
    if app.tls is not None and (reads_files or any(name.startswith("tls_") for name in changed)):
        context = tls_context(config)
    if any(name.startswith("log_") for name in changed):
        app.logger.configure(config)
    if app.tls is not None and context is not None:
        app.tls.use(config, context)
        app.logger.write("info", "the TLS files were read again, for connections from now on")
    app.config = config
    for apply in {APPLIED[name]: None for name in changed if name in APPLIED}:
        apply(app, config)


def set_key(app: Running, key: str, text: str) -> dict[str, Any]:
    """Give a key another value until a restart or the next reload.

    Args:
        app: the running broker.
        key: the key; it has to be one that reloads.
        text: the value, as it is written in an environment variable.

    Returns:
        "key" and "value".

    Raises:
        ConfigError: there is no such key, it needs a restart, or the value is wrong.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    setting = _changeable(key)
    try:
        value = setting.read(text)
    except ValueError as error:
        raise ConfigError(f"{setting.name} {error}") from None
    return _with(app, setting, value, "until a restart")


def unset_key(app: Running, key: str) -> dict[str, Any]:
    """Give a key the value again that the configuration has for it.

    Returns:
        "key" and "value".

    Raises:
        ConfigError: there is no such key, it needs a restart, or a source is invalid.
        StartError: the files of TLS are unusable; nothing has changed.
    """
    setting = _changeable(key)
    config = app.config if app.again is None else app.again().config
    return _with(app, setting, getattr(config, setting.name), "as it is configured")


def _changeable(key: str) -> Setting:
    """Return the setting of a key that a running broker can change.

    Raises:
        ConfigError: there is no such key, it needs a restart, or it is a secret.
    """
    setting = BY_NAME.get(ALIASES.get(key, key))
    if setting is None:
        raise ConfigError(f"there is no key {key!r}: {did_you_mean(key, BY_NAME, quote=chr(39))}")
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


def _connections(app: Running, config: Config) -> None:
    """Set limits and offers of connections; open connections keep what was negotiated."""
    settings = app.settings
    settings.channel_max = config.channel_max
    settings.channel_max_per_node = config.channel_max_per_node
    settings.connection_max = config.connection_max
    settings.consumer_max = config.consumer_max_per_channel
    settings.heartbeat = config.heartbeat
    settings.frame_max = config.frame_max
    settings.initial_frame_max = config.initial_frame_max
    settings.handshake_timeout = config.handshake_timeout_seconds
    settings.message_max = config.message_max_bytes
    settings.anonymous_user = config.anonymous_login_user or ""
    settings.stamp_time = config.message_interceptors_incoming_set_header_timestamp_overwrite
    settings.stamp_node = config.message_interceptors_incoming_set_header_routing_node_overwrite
    settings.stamp_sent = config.message_interceptors_outgoing_timestamp_enabled
    pending = app.registry.pending_logins
    pending.limit = config.unauthenticated_connection_max
    pending.max_per_address = config.unauthenticated_connection_max_per_address
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
    app.broker.gauge.set_high(memory_bytes(config.memory_high_watermark))
    app.registry.relieve()


def _disk(app: Running, config: Config) -> None:
    app.storage.set_limits(config)


def _stages(app: Running, config: Config) -> None:
    app.broker.stages.room = app.storage.room_for_stages(config)


def _management(app: Running, config: Config) -> None:
    for listener in app.http_listeners:
        listener.application.configure(config)


def _metrics(app: Running, config: Config) -> None:
    for listener in app.metrics_listeners:
        listener.application.per_object = config.metrics_per_object


_Apply = Callable[[Running, Config], None]
APPLIED: dict[str, _Apply] = {
    **dict.fromkeys(
        (
            *("loopback_users", "default_limits_vhosts", "default_policies_operator"),
            *("credential_validator", "credential_validator_min_length"),
            "password_hashing_module",
        ),
        _users,
    ),
    **dict.fromkeys(
        (
            *("channel_max", "channel_max_per_node", "connection_max", "frame_max", "heartbeat"),
            "initial_frame_max",
            *("consumer_max_per_channel", "handshake_timeout_seconds", "message_max_bytes"),
            *("unauthenticated_connection_max", "unauthenticated_connection_max_per_address"),
            *("consumer_timeout", "anonymous_login_user"),
            "message_interceptors_incoming_set_header_timestamp_overwrite",
            "message_interceptors_incoming_set_header_routing_node_overwrite",
            "message_interceptors_outgoing_timestamp_enabled",
        ),
        _connections,
    ),
    **dict.fromkeys(("stage_user_limit", "stage_vhost_limit"), _stages),
    **dict.fromkeys(
        (
            *("management_body_max_bytes", "management_cors_allow_origins"),
            *("management_cors_max_age", "management_csp_policy", "management_hsts_policy"),
        ),
        _management,
    ),
    "metrics_per_object": _metrics,
    **dict.fromkeys(("vhost_max", "cluster_queue_limit", "cluster_exchange_limit"), _ceilings),
    "memory_high_watermark": _memory,
    "disk_free_limit": _disk,
}
"""What to do with the new configuration when a key has changed."""
