"""Open and close of a connection (AMQP 1.0 2.4 and 2.7.1).

The virtual host is `vhost:NAME` in the hostname of open; any other hostname means the default one,
as clients put the name of the machine there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from harebell.base import limits
from harebell.base.counters import BY_CLIENT
from harebell.base.errors import ProtocolError
from harebell.front.amqp_1_0.errors import (
    FRAMING_ERROR,
    NOT_ALLOWED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    ConnectionFault,
)
from harebell.front.common.admission import check_connection
from harebell.front.common.connection_log import log_closing, log_granted
from harebell.front.common.event_exchange import connection_created
from harebell.front.common.handing_over import hand_over
from harebell.front.common.login import note_client
from harebell.front.common.settings import COMPATIBLE_PRODUCT, COMPATIBLE_VERSION
from harebell.front.limits import IDLE_TIME_OUT_MIN_MS, LINKS_PER_SESSION, SESSION_NUMBER_MAX
from harebell.wire.v09.states import ConnectionState
from harebell.wire.v1.composites import Close, Open
from harebell.wire.v1.encoding import Symbols
from harebell.wire.v1.frames import MIN_MAX_FRAME_SIZE
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection

DEFAULT_VHOST = "/"
"""The vhost of clients that name none."""
COMPATIBLE_VERSION_1_0 = "4.2.0"
"""The version of RabbitMQ whose AMQP 1.0 this is: its clients use what that version has."""
CAPABILITIES = Symbols(("LINK_PAIR_V1_0", "ANONYMOUS-RELAY", "SHARED-SUBS"))
"""What the broker offers."""
_VHOST = "vhost:"
_MS = 1000
_FAILED = Symbol("amqp:connection-establishment-failed")
_CLOSE = Close().encoded()


def open_(connection: Connection, asked: Open) -> None:
    """open: check the limits of the peer, and select its vhost; sessions may begin."""
    connection.container = asked.container_id
    if asked.max_frame_size < MIN_MAX_FRAME_SIZE:
        raise ConnectionFault(
            FRAMING_ERROR,
            f"max-frame-size ({asked.max_frame_size} bytes) < minimum maximum frame size "
            f"({MIN_MAX_FRAME_SIZE} bytes)",
        )
    connection.frame_max = min(asked.max_frame_size, _frame_max(connection))
    _note_idle_time_out(connection, asked.idle_time_out)
    try:
        note_client(connection, _plain(asked.properties))
    except ProtocolError as error:
        # Shared checks have the codes of 0-9-1, here and below.
        raise ConnectionFault(NOT_ALLOWED, error.text) from None
    name = vhost_of(asked.hostname)
    vhost = connection.broker.vhosts.get(name)
    if vhost is None:
        # Before the permission: the broker that owns the vhost checks it.
        if hand_over(connection, name):
            return
        text = f"AMQP 1.0 connection failed: virtual host '{name}' does not exist"
        raise ConnectionFault(UNAUTHORIZED_ACCESS, text)
    try:
        check_connection(connection, vhost)
    except ProtocolError as error:
        raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, error.text) from None
    user = connection.user.name
    if not connection.user.opens(name):
        text = f"access to vhost '{name}' refused for user '{user}'"
        raise ConnectionFault(UNAUTHORIZED_ACCESS, text)
    connection.vhost = vhost
    connection.state = ConnectionState.OPEN
    # Both sides may use as many sessions as the one that allows fewer.
    connection.channel_max = min(asked.channel_max, channel_max(connection)) + 1
    connection.scanner.frame_max = _frame_max(connection)
    connection.scanner.fast = True
    connection.broker.events.actor = user
    connection.has_opened()
    connection_created(connection)
    connection.open_sent = True
    connection.send_encoded(0, Open.NAME, _own_open(connection)[1])
    log_granted(connection, name)


def own_open(connection: Connection) -> Open:
    """Return the open of the broker; a peer that is refused gets no more than it needs."""
    if connection.state is not ConnectionState.OPEN:
        return Open(connection.settings.cluster_name, properties={_FAILED: True})
    return _own_open(connection)[0]


def _own_open(connection: Connection) -> tuple[Open, bytes]:
    """Return the open of the broker, and its octets."""
    settings = connection.settings
    return _opens(
        _frame_max(connection),
        channel_max(connection),
        settings.heartbeat,
        settings.product,
        settings.version,
        settings.platform,
        settings.information,
        settings.cluster_name,
        connection.broker.events.node,
    )


@lru_cache(maxsize=4)
def _opens(
    frame_max: int,
    channel_max: int,
    heartbeat: int,
    product: str,
    version: str,
    platform: str,
    information: str,
    cluster_name: str,
    node: str,
) -> tuple[Open, bytes]:
    """Make the open of the broker: settings only, so all connections share it."""
    compatible = product == COMPATIBLE_PRODUCT and version == COMPATIBLE_VERSION
    # Half of the threshold: a peer that uses the whole of it is not cut off (AMQP 1.0 2.4.5).
    idle = heartbeat * _MS // 2
    own = Open(
        container_id=cluster_name,
        max_frame_size=frame_max,
        channel_max=channel_max,
        idle_time_out=idle or None,
        offered_capabilities=CAPABILITIES,
        properties={
            "product": product,
            "version": COMPATIBLE_VERSION_1_0 if compatible else version,
            "platform": platform,
            "copyright": "Copyright the Harebell authors. Licensed under the Apache License 2.0.",
            "information": information,
            "cluster_name": cluster_name,
            "node": node,
        },
    )
    return own, own.encoded()


def _frame_max(connection: Connection) -> int:
    return connection.settings.frame_max or limits.FRAME_MAX_BYTES


def channel_max(connection: Connection) -> int:
    """Return the highest number of a channel."""
    return min((connection.settings.channel_max or SESSION_NUMBER_MAX + 1) - 1, SESSION_NUMBER_MAX)


def handle_max() -> int:
    """Return the highest handle of a link."""
    return LINKS_PER_SESSION - 1


def _note_idle_time_out(connection: Connection, idle_ms: int | None) -> None:
    """Note how often the peer has to hear something, and the broker of it.

    Raises:
        ConnectionFault: the peer asks for more than is kept.
    """
    settings = connection.settings
    if idle_ms and idle_ms < IDLE_TIME_OUT_MIN_MS:
        text = f"idle-time-out ({idle_ms} ms) < minimum idle-time-out ({IDLE_TIME_OUT_MIN_MS} ms)"
        raise ConnectionFault(NOT_ALLOWED, text)
    if idle_ms:
        # A third: it is looked at about twice a second only.
        connection.beat_after = idle_ms / _MS / 3
    connection.silent_after = float(settings.heartbeat)
    # Shown by tools; and without it nothing is checked.
    connection.heartbeat = settings.heartbeat or -(-(idle_ms or 0) // _MS)


def vhost_of(hostname: str | None) -> str:
    """Return the vhost that the hostname of an open means."""
    if hostname is not None and hostname.startswith(_VHOST):
        return hostname[len(_VHOST) :]
    return DEFAULT_VHOST


def _plain(properties: dict[str, object] | None) -> dict[str, object]:
    """Return the properties of a peer with ordinary strings for symbols."""
    return {
        str(name): str(value) if isinstance(value, str) else value
        for name, value in (properties or {}).items()
    }


def close(connection: Connection, asked: Close) -> None:
    """close: release everything of the connection, then answer."""
    if connection.state in (ConnectionState.CLOSING, ConnectionState.CLOSED):
        # The answer to the broker's close, or one that crossed it: neither is answered.
        connection.finish()
        return
    if asked.error is not None:
        connection.log("warning", f"{connection.peer}: the client closes: {asked.error}")
    log_closing(connection)
    connection.end_reason = BY_CLIENT
    connection.release()

    # After the slices of `release`: when the client reads close, its messages are ready again.
    def answer() -> bool:
        if connection.open_sent:
            connection.send_encoded(0, Close.NAME, _CLOSE)
        connection.part()
        return True

    connection.perform(answer)
