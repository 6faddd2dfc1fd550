"""Commands for connections, channels and consumers. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.catalog import CHANNELS, CONNECTIONS, CONSUMERS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused
from harebell.base.limits import NAME_BYTES

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel

OnlyVhost = Annotated[str | None, Argument("Only those of this vhost.", "NAME")]
Reason = Annotated[str | None, Argument("What the client is told.", "TEXT")]
_STATES = {"open": "running"}
"""States of connections for which RabbitMQ has another word."""

# --- connections ----------------------------------------------------------------------------------


class ConnectionRow(TypedDict):
    """What there is to say about a connection."""

    name: str
    user: str
    vhost: str
    state: str
    channels: int
    protocol: str
    peer_host: str
    peer_port: int
    host: str
    port: int
    ssl: bool
    timeout: int
    frame_max: int
    channel_max: int
    client_properties: dict[str, Any]
    connected_seconds: float


def connection_row(connection: BaseConnection, now: float) -> ConnectionRow:
    """What there is to say about a connection."""
    from harebell.wire import shown

    peer, vhost = connection.peer, connection.vhost
    state = connection.state.value
    return {
        "name": peer.connection_name,
        "user": connection.user.name,
        "vhost": "" if vhost is None else vhost.name,
        "state": "blocked" if connection.blocked else _STATES.get(state, state),
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


def _json(value: Any) -> Any:
    """Convert a value of a client's table to one that JSON has."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _connections(context: AdminContext, vhost: str | None) -> list[BaseConnection]:
    """Connections by age, also those that have not opened a vhost yet."""
    only = None if vhost is None else context.vhost(vhost)
    found = [each for each in context.registry.connections if only is None or each.vhost is only]
    return sorted(found, key=lambda each: (each.connected_at, str(each.peer)))


@CONNECTIONS.listing(
    "connections",
    "GET /api/connections",
    "GET /api/vhosts/{vhost}/connections",
    tag=MANAGEMENT,
    row=ConnectionRow,
    shown=("name", "user", "vhost", "state", "channels"),
)
def list_connections(context: AdminContext, vhost: OnlyVhost = None) -> list[ConnectionRow]:
    """List connections, the oldest first."""
    now = context.clock()
    return [connection_row(each, now) for each in _connections(context, vhost)]


def _checked_reason(reason: str | None) -> str:
    if reason is None:
        return "closed by an operator"
    if len(reason.encode()) > NAME_BYTES:
        raise CommandRefused(f"the reason has more than {NAME_BYTES} octets: shorten it")
    return reason


@CONNECTIONS.command(
    "DELETE /api/connections/{name}", tag=MANAGEMENT, done="connection '{name}' was closed"
)
def close(context: AdminContext, name: str, reason: Reason = None) -> Row:
    """Close the connection NAME, as `list` shows it, with 320 CONNECTION_FORCED."""
    text = _checked_reason(reason)
    closed = context.disconnect(text, lambda each: each.peer.connection_name == name)
    if not closed:
        raise CommandRefused(
            f"no connection '{name}': `harebell connections list` shows all by their names"
        )
    context.log("info", f"connection {name} was closed: {text}")
    return {"name": name, "connections_closed": closed}


def _closed(known: Mapping[str, Any]) -> str:
    return f"{plural(known['connections_closed'], 'connection')} closed"


@CONNECTIONS.command(tag=ADMINISTRATOR, done=_closed)
def close_all(
    context: AdminContext,
    vhost: Annotated[str | None, Argument("Only those to this vhost.", "NAME")] = None,
    user: Annotated[str | None, Argument("Only those of this user.", "NAME")] = None,
    reason: Reason = None,
) -> Row:
    """Close all connections, or those to a vhost or of a user."""
    text = _checked_reason(reason)
    where = None if vhost is None else context.vhost(vhost)
    who = None if user is None else context.user(user)
    closed = context.disconnect(
        text,
        lambda each: where in (None, each.vhost) and (who is None or each.user.name == who.name),
    )
    context.log("info", f"{closed} connections were closed: {text}")
    return {"connections_closed": closed}


# --- channels -------------------------------------------------------------------------------------


class ChannelRow(TypedDict):
    """What there is to say about a channel."""

    name: str
    connection: str
    number: int
    user: str
    vhost: str
    transactional: bool
    confirm: bool
    consumer_count: int
    messages_unacknowledged: int
    messages_unconfirmed: int
    messages_uncommitted: int
    acks_uncommitted: int
    prefetch_count: int
    global_prefetch_count: int


def _channels(
    context: AdminContext, vhost: str | None
) -> Iterator[tuple[BaseConnection, AnyChannel]]:
    """Connections with each of their channels; a session of AMQP 0-10 is one, too."""
    for connection in _connections(context, vhost):
        for _, channel in sorted(connection.channels.items()):
            yield connection, channel


def _channel_name(connection: BaseConnection, channel: AnyChannel) -> str:
    """The name of a channel, as RabbitMQ's tools show it."""
    return f"{connection.peer.connection_name} ({channel.number})"


def _channel_row(connection: BaseConnection, channel: AnyChannel) -> ChannelRow:
    confirms, transaction = channel.confirms, channel.transaction
    publishes, acks = (0, 0) if transaction is None else transaction.pending()
    return {
        "name": _channel_name(connection, channel),
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


@CHANNELS.listing(
    "channels",
    "GET /api/channels",
    "GET /api/vhosts/{vhost}/channels",
    tag=MANAGEMENT,
    row=ChannelRow,
    shown=("name", "user", "vhost", "consumer_count", "messages_unacknowledged", "prefetch_count"),
)
def list_channels(context: AdminContext, vhost: OnlyVhost = None) -> list[ChannelRow]:
    """List channels by connection and number."""
    return [_channel_row(*each) for each in _channels(context, vhost)]


# --- consumers ------------------------------------------------------------------------------------


class ConsumerRow(TypedDict):
    """What there is to say about a consumer."""

    vhost: str
    queue_name: str
    channel: str
    consumer_tag: str
    ack_required: bool
    exclusive: bool
    priority: int
    prefetch_count: int
    messages_unacknowledged: int
    arguments: dict[str, Any]


@CONSUMERS.listing(
    "consumers",
    "GET /api/consumers",
    "GET /api/consumers/{vhost}",
    tag=MANAGEMENT,
    row=ConsumerRow,
    shown=("vhost", "queue_name", "consumer_tag", "channel", "ack_required", "prefetch_count"),
)
def list_consumers(context: AdminContext, vhost: OnlyVhost = None) -> list[ConsumerRow]:
    """List consumers by connection, channel and tag."""
    return [
        {
            "vhost": channel.vhost.name,
            "queue_name": consumer.queue.name,
            "channel": _channel_name(connection, channel),
            "consumer_tag": tag,
            "ack_required": not consumer.no_ack,
            "exclusive": consumer.exclusive,
            "priority": consumer.priority,
            "prefetch_count": consumer.prefetch,
            "messages_unacknowledged": consumer.unacked,
            "arguments": _json(dict(consumer.arguments)),
        }
        for connection, channel in _channels(context, vhost)
        for tag, consumer in sorted((channel.consumers or {}).items())
    ]
