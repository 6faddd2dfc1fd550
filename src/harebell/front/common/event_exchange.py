"""Events about connections, channels and consumers, for the event exchange and the counters.

In RabbitMQ `pid` and `channel` are the processes of the connection and the channel; here they are
the name of the connection, and of the channel in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.c_types import Done
from harebell.wire import as_tuple

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.model.consumer import Consumer


def _name(channel: Any) -> str:
    return f"{channel.connection.peer.connection_name} ({channel.number})"


def _given_name(connection: BaseConnection) -> dict[str, Any]:
    given = connection.client_properties.get("connection_name")
    return {"user_provided_name": given} if isinstance(given, str) else {}


def _origin(connection: BaseConnection) -> dict[str, Any]:
    peer = connection.peer
    return {
        "host": peer.host,
        "peer_host": peer.address,
        "peer_port": peer.port,
        "protocol": as_tuple(connection.version),
        "auth_mechanism": connection.mechanism,
        "ssl": peer.tls,
    }


def authenticated(connection: BaseConnection, user: str, error: str = "") -> Done:
    """Count a login, and emit user.authentication.success or failure."""
    connection.registry.count_login(connection.version, failed=bool(error))
    events = connection.broker.events
    if not events.wanted:
        return 0
    facts = {
        "connection_type": "network",
        "name": user,
        "connection_name": connection.peer.connection_name,
        **_origin(connection),
    }
    if error:
        events.note("user.authentication.failure", {**facts, "error": error})
    else:
        events.note("user.authentication.success", facts)
    return 0


def connection_created(connection: BaseConnection) -> Done:
    """Count a connection, and emit connection.created."""
    connection.broker.churn.connection_created += 1
    # Even without a listener: the end of the connection is counted only after this.
    connection.announced = True
    events = connection.broker.events
    if not events.wanted or connection.vhost is None:
        return 0
    facts = {
        # RabbitMQ's other type, direct, is for clients in its own Erlang node.
        "type": "network",
        "pid": connection.peer.connection_name,
        "name": connection.peer.connection_name,
        "port": connection.peer.host_port,
        **_origin(connection),
        "user": connection.user.name,
        "vhost": connection.vhost.name,
        "timeout": connection.heartbeat,
        "frame_max": connection.frame_max,
        "channel_max": connection.channel_max,
        "client_properties": connection.client_properties,
        "connected_at": connection.broker.clock.ms,
        "node": events.node,
    }
    events.note("connection.created", facts | _given_name(connection))
    return 0


def connection_closed(connection: BaseConnection) -> Done:
    """Count the end of a connection, and emit connection.closed."""
    churn = connection.broker.churn
    churn.connection_closed += 1
    churn.closed_by[connection.end_reason] += 1
    events = connection.broker.events
    if events.wanted:
        name = connection.peer.connection_name
        facts = {
            "name": name,
            "pid": name,
            "node": events.node,
            "client_properties": connection.client_properties,
        }
        events.note("connection.closed", facts | _given_name(connection))
    return 0


def channel_created(channel: Any) -> Done:
    """Count a channel, and emit channel.created."""
    connection: BaseConnection = channel.connection
    connection.broker.churn.channel_created += 1
    connection.registry.totals.channel_opened(channel)
    events = connection.broker.events
    if events.wanted:
        facts = {
            "pid": _name(channel),
            "name": _name(channel),
            "connection": connection.peer.connection_name,
            "number": channel.number,
            "user": connection.user.name,
            "vhost": channel.vhost.name,
        }
        events.note("channel.created", facts)
    return 0


def channel_closed(channel: Any) -> Done:
    """Count the end of a channel, and emit channel.closed."""
    connection: BaseConnection = channel.connection
    connection.broker.churn.channel_closed += 1
    connection.registry.totals.channel_closed(channel)
    events = connection.broker.events
    if events.wanted:
        events.note("channel.closed", {"pid": _name(channel), "name": _name(channel)})
    return 0


def _consumer(consumer: Consumer, channel: Any) -> dict[str, Any]:
    return {
        "consumer_tag": consumer.tag,
        "channel": _name(channel),
        "queue": consumer.queue.name,
        "vhost": consumer.queue.vhost,
    }


def consumer_created(channel: Any, consumer: Consumer) -> None:
    """Emit consumer.created."""
    events = channel.connection.broker.events
    if events.wanted:
        facts = {
            **_consumer(consumer, channel),
            "exclusive": bool(consumer.exclusive),
            "ack_required": not consumer.no_ack,
            "prefetch_count": consumer.prefetch,
            "arguments": consumer.arguments,
        }
        events.note("consumer.created", facts)


def consumer_deleted(channel: Any, consumer: Consumer) -> None:
    """Emit consumer.deleted."""
    events = channel.connection.broker.events
    if events.wanted:
        events.note("consumer.deleted", _consumer(consumer, channel))
