"""The part of the configuration that connections use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from harebell.base import limits as base_limits
from harebell.front import limits

COMPATIBLE_PRODUCT = "RabbitMQ"
COMPATIBLE_VERSION = "3.13.7"


class Log(Protocol):
    """Takes lines for the log."""

    def __call__(self, level: str, text: str, category: str = ..., origin: int = ...) -> None:
        """Write a line.

        Args:
            level: "debug", "info", "warning" or "error".
            text: what happened.
            category: what it is about: "connection", "channel", "queue", "user" or "default".
            origin: the number of the connection that it is about; 0 for none.
        """


def _nowhere(name: str) -> bool:
    """Every vhost is here."""
    return False


def _unused(name: str) -> tuple[int, int]:
    """No user has anything open at another broker."""
    return 0, 0


def _none_open() -> tuple[int, int]:
    """No other process of this node has anything open."""
    return 0, 0


def _silent(level: str, text: str, category: str = "", origin: int = 0) -> None:
    """Discard a log line."""


class Settings(Struct):
    """Limits and texts for connections.

    Args:
        product: the server property `product`. Clients depend on it and on the version: kombu and
            Celery, for example, set a prefetch per channel only for RabbitMQ 3.
        version: the server property `version`: the version of RabbitMQ whose behaviour it has.
        information: the server property `information`: the name of this broker.
        platform: the server property `platform`.
        frame_max: largest frame offered, in bytes.
        initial_frame_max: largest frame accepted before connection.open, in bytes.
        channel_max: most channels offered.
        channel_max_per_node: most channels of all connections together; 0 for no limit.
        connection_max: most connections; 0 for no limit.
        consumer_max_per_channel: most consumers of one channel or session; 0 for no limit.
        heartbeat: heartbeat interval offered, in seconds; 0 offers none.
        handshake_timeout: seconds from connecting to an open connection.
        message_max: largest body, in bytes.
        cluster_name: the server property `cluster_name`.
        host: the server property `host`: the name of the machine.
        rng: returns that many random bytes, for generated names.
        stamp_time: whether every message gets its arrival time, and whether it replaces the
            publisher's; None for no.
        stamp_node: the same with the name of the broker.
        stamp_sent: whether every delivery gets its sending time.
        anonymous_user: the user of logins with SASL ANONYMOUS; "" when it is disabled, None if
            nothing is configured: guest in AMQP 1.0, no user in other versions.
        addresses: what addresses of AMQP 1.0 mean that are not of RabbitMQ's version 2:
            "rabbitmq", "bare" or "v2" (`harebell.front.amqp_1_0.addresses`).
        mechanisms: the SASL mechanisms that may be used; none for the default.
        log: takes lines for the log.
        elsewhere: returns whether a vhost that this broker does not have is in another store of the
            cluster.
        used_elsewhere: returns how many connections and channels a user has open at the other
            owners of the cluster.
        open_elsewhere: returns how many connections and channels the other processes of this node
            have open.
    """

    rng: Callable[[int], bytes]
    product: str = COMPATIBLE_PRODUCT
    version: str = COMPATIBLE_VERSION
    information: str = "Harebell: AMQP broker, client and data pipeline in Python"
    platform: str = "Python"
    frame_max: int = base_limits.FRAME_MAX_BYTES
    initial_frame_max: int = base_limits.HANDSHAKE_FRAME_BYTES
    channel_max: int = base_limits.CHANNEL_MAX
    channel_max_per_node: int = 0
    connection_max: int = 0
    consumer_max_per_channel: int = limits.CONSUMERS_PER_CHANNEL
    heartbeat: int = limits.HEARTBEAT_SECONDS
    handshake_timeout: float = limits.HANDSHAKE_TIMEOUT_SECONDS
    message_max: int = limits.MESSAGE_MAX_BYTES
    cluster_name: str = "harebell@localhost"
    host: str = "localhost"
    stamp_time: bool | None = None
    stamp_node: bool | None = None
    stamp_sent: bool = False
    anonymous_user: str | None = None
    addresses: str = "rabbitmq"
    mechanisms: tuple[str, ...] = ()
    log: Log = _silent
    elsewhere: Callable[[str], bool] = _nowhere
    used_elsewhere: Callable[[str], tuple[int, int]] = _unused
    open_elsewhere: Callable[[], tuple[int, int]] = _none_open
