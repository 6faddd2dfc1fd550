"""Limits on connections, channels and consumers, with RabbitMQ's error texts.

They are checked for new connections, channels and consumers; existing ones stay when a limit is
lowered. The order is RabbitMQ's: the broker's own limit, the vhost's, the user's. What a user has
open at the other owners of a cluster counts, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError
from harebell.front.common.errors import hard
from harebell.model.settings.vhost_limits import MAX_CONNECTIONS, over
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.model.vhost import VHost

_CONNECTION_OPEN = (10, 40)
_CHANNEL_OPEN = (20, 10)


def _opened(connection: BaseConnection) -> list[BaseConnection]:
    """Return the open connections of the broker."""
    return [each for each in connection.registry.connections if each.state is ConnectionState.OPEN]


def _counted(connection: BaseConnection) -> int:
    """Count the other connections: open ones, and ones that were accepted earlier."""
    # Those accepted later are left out: of two that open at the same time one gets in.
    ending = (ConnectionState.CLOSING, ConnectionState.CLOSED)
    return sum(
        (each.state is ConnectionState.OPEN or each.origin < connection.origin)
        and each.state not in ending
        and not each.closing
        for each in connection.registry.connections
    )


def check_connection(connection: BaseConnection, vhost: VHost) -> None:
    """Refuse a connection above the limits.

    Raises:
        ProtocolError: 530, for the whole connection.
    """
    try:
        _check_limits(connection, vhost)
    except ProtocolError:
        # Its client has made no mistake and may wait for its turn: its address is not blocked.
        throttle = connection.registry.handshake_throttle
        throttle.opened(connection.peer.address, connection.user.name)
        raise


def _check_limits(connection: BaseConnection, vhost: VHost) -> None:
    user = connection.user
    settings, maximum = connection.settings, connection.settings.connection_max
    if maximum and _counted(connection) + settings.open_elsewhere()[0] >= maximum:
        text = f"connection refused: node connection limit ({maximum}) is reached"
        raise hard(530, text, *_CONNECTION_OPEN)
    if vhost.ending:
        text = f"access to vhost '{vhost.name}' refused for user '{user.name}': it is being deleted"
        raise hard(530, text, *_CONNECTION_OPEN)
    if vhost.limits:
        count = sum(each.vhost is vhost for each in _opened(connection))
        limit = over(vhost.limits, MAX_CONNECTIONS, count)
        if limit is not None:
            raise hard(
                530,
                f"access to vhost '{vhost.name}' refused for user '{user.name}': connection limit "
                f"({limit}) is reached",
                *_CONNECTION_OPEN,
            )
    if user.max_connections >= 0:
        count = sum(each.user.name == user.name for each in _opened(connection))
        count += settings.used_elsewhere(user.name)[0]
        if count >= user.max_connections:
            raise hard(
                530,
                f"connection refused for user '{user.name}': user connection limit "
                f"({user.max_connections}) is reached",
                *_CONNECTION_OPEN,
            )


def check_channel(connection: BaseConnection) -> None:
    """Refuse a channel above the limits.

    Raises:
        ProtocolError: 530, for the whole connection.
    """
    # The number of channels and not the highest channel number, as in RabbitMQ.
    count, maximum = len(connection.channels), connection.channel_max
    if maximum and count >= maximum:
        raise hard(
            530,
            f"number of channels opened ({count}) has reached the negotiated channel_max "
            f"({maximum})",
            *_CHANNEL_OPEN,
        )
    settings, user = connection.settings, connection.user
    if settings.channel_max_per_node:
        count = sum(len(each.channels) for each in connection.registry.connections)
        count += settings.open_elsewhere()[1]
        if count >= settings.channel_max_per_node:
            raise hard(
                530,
                f"number of channels opened on node '{settings.cluster_name}' has reached the "
                f"maximum allowed limit of ({settings.channel_max_per_node})",
                *_CHANNEL_OPEN,
            )
    if user.max_channels >= 0:
        count = sum(
            len(each.channels)
            for each in connection.registry.connections
            if each.user.name == user.name
        )
        count += settings.used_elsewhere(user.name)[1]
        if count >= user.max_channels:
            raise hard(
                530,
                f"number of channels opened for user '{user.name}' has reached the maximum allowed "
                f"user limit of ({user.max_channels})",
                *_CHANNEL_OPEN,
            )


def check_consumer_count(connection: BaseConnection, count: int, place: tuple[int, int]) -> None:
    """Refuse a consumer above the limit of its channel.

    Raises:
        ProtocolError: 530, for the whole connection.
    """
    maximum = connection.settings.consumer_max_per_channel
    if maximum and count >= maximum:
        raise hard(530, f"reached maximum ({maximum}) of consumers per channel", *place)
