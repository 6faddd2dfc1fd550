"""Apply a changed configuration to a running broker (SIGHUP, `harebell config reload`).

`APPLIED` has what a key needs beyond the new value: keys without an entry are read where they are
used. The logs and the files of TLS are changed before them, because they may be unusable. A key
that the table of settings does not mark as reloadable keeps its value until a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harebell.model.settings.ceilings import Ceilings
from harebell.server.config import Config, Configuration, memory_octets
from harebell.server.config.settings import SETTINGS
from harebell.server.net.tls import tls_context

if TYPE_CHECKING:
    from harebell.auth.users import Users
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
    from harebell.front.common.settings import Settings
    from harebell.model.broker import Broker
    from harebell.server.disk.storage import Storage
    from harebell.server.logs.logger import PublishedLog
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
    # First what may fail: nothing is half applied.
    context = None if app.tls is None else tls_context(merged)
    if any(name.startswith("log_") for name in changed):
        app.logger.configure(merged)
    if app.tls is not None and context is not None:
        app.tls.use(merged, context)
        app.logger.write("info", "the TLS files were read again, for connections from now on")
    app.config = merged
    for apply in {APPLIED[name]: None for name in changed if name in APPLIED}:
        apply(app, merged)
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


def _users(app: Running, config: Config) -> None:
    app.users.restrict_to_loopback(config.loopback_users)
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
    settings.handshake_timeout = config.handshake_timeout_seconds
    settings.message_max = config.message_max_bytes
    pending = app.registry.pending_logins
    pending.most = config.unauthenticated_connection_max
    pending.most_per_address = config.unauthenticated_connection_max_per_address
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
    app.broker.gauge.set_high(memory_octets(config.memory_high_watermark))
    app.registry.relieve()


def _disk(app: Running, config: Config) -> None:
    app.storage.set_limits(config)


_Apply = Callable[[Running, Config], None]
APPLIED: dict[str, _Apply] = {
    **dict.fromkeys(
        (
            *("loopback_users", "default_limits_vhosts", "default_policies_operator"),
            *("credential_validator", "credential_validator_min_length"),
        ),
        _users,
    ),
    **dict.fromkeys(
        (
            *("channel_max", "channel_max_per_node", "connection_max", "frame_max", "heartbeat"),
            *("consumer_max_per_channel", "handshake_timeout_seconds", "message_max_bytes"),
            *("unauthenticated_connection_max", "unauthenticated_connection_max_per_address"),
            "consumer_timeout",
        ),
        _connections,
    ),
    **dict.fromkeys(("vhost_max", "cluster_queue_limit", "cluster_exchange_limit"), _ceilings),
    "memory_high_watermark": _memory,
    "disk_free_limit": _disk,
}
"""What to do with the new configuration when a key has changed."""
