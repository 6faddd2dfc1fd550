"""Commands for who is connected: `harebell connections`, `channels`, `consumers`.

The columns have the names of rabbitmqctl.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.base.limits import NAME_BYTES
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.channel_like import AnyChannel
from harebell.wire import shown


class Filter(Fields):
    """Of one vhost, or of all."""

    vhost: str | None = None


class Closed(Fields):
    """Which connection, and why."""

    name: str
    reason: str = "closed by an operator"


class ClosedAll(Fields):
    """Which connections, and why."""

    vhost: str | None = None
    user: str | None = None
    reason: str = "closed by an operator"


def _connections(context: AdminContext, vhost: str | None) -> list[BaseConnection]:
    """Connections in the order of their coming, those that do not know a vhost yet included."""
    wanted = None if vhost is None else context.vhost(vhost)
    found = [each for each in context.hub.connections if wanted is None or each.vhost is wanted]
    return sorted(found, key=lambda each: (each.connected_at, str(each.peer)))


def _json(value: Any) -> Any:
    """A value of a client's table, as JSON can have it."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def connection_facts(connection: BaseConnection, now: float) -> dict[str, Any]:
    """What there is to say about a connection."""
    peer, vhost = connection.peer, connection.vhost
    return {
        "name": peer.connection_name,
        "user": connection.user.name,
        "vhost": "" if vhost is None else vhost.name,
        "state": "blocked"
        if connection.blocked
        else _STATES.get(connection.state.value, connection.state.value),
        "channels": len(connection.channels),
        "protocol": shown(connection.version),
        "peer_host": peer.address,
        "peer_port": peer.port,
        "host": peer.host,
        "port": peer.host_port,
        "ssl": peer.tls,
        "timeout": connection.heartbeat,
        "frame_max": connection.frame_max,
        "channel_max": connection.channel_max,
        "client_properties": _json(dict(connection.client_properties)),
        "connected_seconds": round(now - connection.connected_at, 3),
    }


_STATES = {"open": "running"}
"""States of connections that RabbitMQ has another word for."""


def list_connections(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Connections, the oldest first."""
    now = context.clock()
    return [connection_facts(each, now) for each in _connections(context, asked.vhost)]


def _channels(
    context: AdminContext, vhost: str | None
) -> Iterator[tuple[BaseConnection, AnyChannel]]:
    for connection in _connections(context, vhost):
        for _, channel in sorted(connection.channels.items()):
            yield connection, channel


def channel_name(connection: BaseConnection, channel: AnyChannel) -> str:
    """The name of a channel, as RabbitMQ's tools show it."""
    return f"{connection.peer.connection_name} ({channel.number})"


def channel_facts(connection: BaseConnection, channel: AnyChannel) -> dict[str, Any]:
    """What there is to say about a channel."""
    confirms, transaction = channel.confirms, channel.transaction
    publishes, acks = (0, 0) if transaction is None else transaction.pending()
    return {
        "name": channel_name(connection, channel),
        "connection": connection.peer.connection_name,
        "number": channel.number,
        "user": connection.user.name,
        "vhost": channel.vhost.name,
        "transactional": transaction is not None,
        "confirm": confirms is not None,
        "consumer_count": len(channel.consumers or ()),
        "messages_unacknowledged": len(channel.unacked.numbers()),
        "messages_unconfirmed": 0 if confirms is None else confirms.taken - confirms.sent,
        "messages_uncommitted": publishes,
        "acks_uncommitted": acks,
        "prefetch_count": channel.prefetch,
        "global_prefetch_count": channel.prefetch_global,
    }


def list_channels(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Channels, by connection and number."""
    return [channel_facts(*each) for each in _channels(context, asked.vhost)]


def list_consumers(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Consumers, by connection, channel and tag."""
    return [
        {
            "vhost": channel.vhost.name,
            "queue_name": consumer.queue.name,
            "channel": channel_name(connection, channel),
            "consumer_tag": tag,
            "ack_required": not consumer.no_ack,
            "exclusive": consumer.exclusive,
            "priority": consumer.priority,
            "prefetch_count": consumer.prefetch,
            "messages_unacknowledged": consumer.unacked,
            "arguments": _json(dict(consumer.arguments)),
        }
        for connection, channel in _channels(context, asked.vhost)
        for tag, consumer in sorted((channel.consumers or {}).items())
    ]


def _reason(reason: str) -> str:
    if len(reason.encode()) > NAME_BYTES:
        raise Refused(f"the reason has more than {NAME_BYTES} octets: shorten it")
    return reason


def close(context: AdminContext, asked: Closed) -> dict[str, Any]:
    """Close one connection; its client is told the reason."""
    reason = _reason(asked.reason)
    closed = context.disconnect(reason, lambda each: each.peer.connection_name == asked.name)
    if not closed:
        raise Refused(
            f"no connection '{asked.name}': `harebell connections list` shows all by their names"
        )
    context.log("info", f"connection {asked.name} was closed: {reason}")
    return {"name": asked.name, "connections_closed": closed}


def close_all(context: AdminContext, asked: ClosedAll) -> dict[str, Any]:
    """Close every connection to a vhost, of a user, or at all."""
    reason = _reason(asked.reason)
    vhost = None if asked.vhost is None else context.vhost(asked.vhost)
    user = None if asked.user is None else context.user(asked.user)
    closed = context.disconnect(
        reason,
        lambda each: vhost in (None, each.vhost) and (user is None or each.user.name == user.name),
    )
    context.log("info", f"{closed} connections were closed: {reason}")
    return {"connections_closed": closed}


COMMANDS = {
    "connections.list": Command(Filter, list_connections),
    "connections.close": Command(Closed, close),
    "connections.close-all": Command(ClosedAll, close_all),
    "channels.list": Command(Filter, list_channels),
    "consumers.list": Command(Filter, list_consumers),
}
