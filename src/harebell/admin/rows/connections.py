"""Rows of connections, channels and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.command import Row
from harebell.admin.limits import STUCK_SECONDS
from harebell.admin.rows.common import GARBAGE_COLLECTION, NO_RATE, moment
from harebell.admin.statistics import Range, message_stats, with_details

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.model.consumer import Consumer

_STATES = {"open": "running"}
"""States of connections for which RabbitMQ has another word."""
_MS = 1000
CONNECTION_COLUMNS = (
    *("name", "user", "vhost", "state", "channels", "protocol", "peer_host", "peer_port", "host"),
    *("port", "ssl", "timeout", "frame_max", "channel_max", "client_properties"),
    *("connected_seconds", "connected_at", "user_provided_name", "user_who_performed_action"),
    *("auth_mechanism", "node", "type", "recv_oct", "recv_oct_details", "recv_cnt", "send_oct"),
    *("send_oct_details", "send_cnt", "send_pend", "kept_bytes", "ssl_protocol"),
    *("ssl_key_exchange", "ssl_cipher", "ssl_hash", "peer_cert_subject", "peer_cert_issuer"),
    *("peer_cert_validity", "garbage_collection", "reductions", "reductions_details"),
)
"""What there is to say about a connection."""


def connection_row(
    context: AdminContext, connection: BaseConnection, period: Range | None = None
) -> Row:
    """What there is to say about a connection."""
    from harebell.front.common.kept import kept_bytes
    from harebell.wire import shown
    from harebell.wire.json_values import shown_table

    peer, vhost, traffic = connection.peer, connection.vhost, connection.traffic
    state = connection.state.value
    session = peer.session
    age = context.clock() - connection.connected_at
    passed = with_details(
        {"recv_oct": traffic.recv_oct, "send_oct": traffic.send_oct},
        context.statistics.series(connection),
        period,
    )
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
        "client_properties": shown_table(connection.client_properties),
        "connected_seconds": round(age, 3),
        "connected_at": context.broker.clock.ms - round(age * _MS),
        "user_provided_name": client_name(connection),
        "user_who_performed_action": connection.user.name,
        "auth_mechanism": connection.mechanism,
        "node": context.broker.events.node,
        "type": "network",
        "recv_oct": passed["recv_oct"],
        "recv_oct_details": passed.get("recv_oct_details", {}),
        "recv_cnt": traffic.recv_cnt,
        "send_oct": passed["send_oct"],
        "send_oct_details": passed.get("send_oct_details", {}),
        "send_cnt": traffic.send_cnt,
        "send_pend": connection.out.size,
        "kept_bytes": kept_bytes(connection),
        "ssl_protocol": None if session is None else session.protocol,
        "ssl_key_exchange": None if session is None else session.key_exchange,
        "ssl_cipher": None if session is None else session.cipher,
        "ssl_hash": None if session is None else session.hash,
        "peer_cert_subject": None if session is None else session.subject or None,
        "peer_cert_issuer": None if session is None else session.issuer or None,
        "peer_cert_validity": None if session is None else session.validity or None,
        "garbage_collection": GARBAGE_COLLECTION,
        "reductions": 0,
        "reductions_details": NO_RATE,
    }


CHANNEL_COLUMNS = (
    *("name", "connection", "number", "user", "vhost", "transactional", "confirm"),
    *("consumer_count", "messages_unacknowledged", "messages_unconfirmed", "messages_uncommitted"),
    *("acks_uncommitted", "prefetch_count", "global_prefetch_count", "state", "node"),
    *("connection_details", "user_who_performed_action", "message_stats", "idle_since"),
    *("pending_raft_commands", "garbage_collection", "reductions", "reductions_details"),
    *("user_provided_name", "stuck_seconds"),
)
"""What there is to say about a channel."""


def client_name(connection: BaseConnection) -> str:
    """Return the name that the client gave its connection; "" without one."""
    given = connection.client_properties.get("connection_name")
    return given if isinstance(given, str) else ""


def _idle_since(context: AdminContext, channel: AnyChannel) -> int | None:
    """Return since when nothing was counted for a channel (ms since 1970); None while it works."""
    counters = channel.counters
    if sum(counters.values()) != counters.seen:
        return None
    return context.statistics.idle_since(counters.moved_at)


def _stuck_seconds(context: AdminContext, idle: int | None, unacked: int) -> float | None:
    """Return for how long deliveries are held while nothing happens; None if that is not long."""
    if idle is None or not unacked:
        return None
    seconds = (context.broker.clock.ms - idle) / _MS
    return seconds if seconds >= STUCK_SECONDS else None


def channel_name(connection: BaseConnection, channel: AnyChannel) -> str:
    """The name of a channel, as RabbitMQ's tools show it."""
    return f"{connection.peer.connection_name} ({channel.number})"


def channel_row(
    context: AdminContext,
    connection: BaseConnection,
    channel: AnyChannel,
    period: Range | None = None,
) -> Row:
    """What there is to say about a channel."""
    confirms, transaction, counters = channel.confirms, channel.transaction, channel.counters
    publishes, acks = (0, 0) if transaction is None else transaction.pending()
    idle, unacked = _idle_since(context, channel), len(channel.unacked.numbers())
    return {
        "name": channel_name(connection, channel),
        "connection": connection.peer.connection_name,
        "number": channel.number,
        "user": connection.user.name,
        "vhost": channel.vhost.name,
        "transactional": transaction is not None,
        "confirm": confirms is not None,
        "consumer_count": len(channel.consumers or ()),
        "messages_unacknowledged": unacked,
        "messages_unconfirmed": 0 if confirms is None else confirms.taken - confirms.sent,
        "messages_uncommitted": publishes,
        "acks_uncommitted": acks,
        "prefetch_count": channel.prefetch,
        "global_prefetch_count": channel.prefetch_global,
        "state": "flow" if connection.blocked else "running",
        "node": context.broker.events.node,
        "connection_details": {
            "name": connection.peer.connection_name,
            "peer_host": connection.peer.address,
            "peer_port": connection.peer.port,
        },
        "user_who_performed_action": connection.user.name,
        "message_stats": message_stats(counters, context.statistics.series(channel), period=period),
        "idle_since": None if idle is None else moment(idle),
        "pending_raft_commands": 0,
        "garbage_collection": GARBAGE_COLLECTION,
        "reductions": 0,
        "reductions_details": NO_RATE,
        "user_provided_name": client_name(connection),
        "stuck_seconds": _stuck_seconds(context, idle, unacked),
    }


CONSUMER_COLUMNS = (
    *("vhost", "queue_name", "channel", "consumer_tag", "ack_required", "exclusive", "priority"),
    *("prefetch_count", "messages_unacknowledged", "arguments", "active", "activity_status"),
    *("offset", "offset_lag", "queue", "channel_details", "user_who_performed_action"),
    "stuck_seconds",
)
"""What there is to say about a consumer."""


def consumer_row(
    context: AdminContext, connection: BaseConnection, channel: AnyChannel, consumer: Consumer
) -> Row:
    """What there is to say about a consumer."""
    # Imported here: commands are described without loading a broker.
    from harebell.model.queue.stream import StreamQueue
    from harebell.wire.json_values import shown_table

    queue = consumer.queue
    single = queue.consumers.active_tag()
    active = single in (None, consumer.tag)
    reading = queue.reading_of(consumer) if isinstance(queue, StreamQueue) else None
    offset, offset_lag = reading or (None, None)
    return {
        "vhost": channel.vhost.name,
        "queue_name": queue.name,
        "channel": channel_name(connection, channel),
        "consumer_tag": consumer.tag,
        "ack_required": not consumer.no_ack,
        "exclusive": consumer.exclusive,
        "priority": consumer.priority,
        "prefetch_count": consumer.prefetch,
        "messages_unacknowledged": consumer.unacked,
        "arguments": shown_table(consumer.arguments),
        "active": active,
        "activity_status": "up" if single is None else "single_active" if active else "waiting",
        "offset": offset,
        "offset_lag": offset_lag,
        "queue": {"name": queue.name, "vhost": queue.vhost},
        "channel_details": channel_details(connection, channel),
        "user_who_performed_action": connection.user.name,
        "stuck_seconds": _stuck_seconds(context, _idle_since(context, channel), consumer.unacked),
    }


def channel_details(connection: BaseConnection, channel: AnyChannel) -> dict[str, Any]:
    """Return the member `channel_details` of a consumer or a delivery."""
    return {
        "name": channel_name(connection, channel),
        "number": channel.number,
        "user": connection.user.name,
        "connection_name": connection.peer.connection_name,
        "peer_host": connection.peer.address,
        "peer_port": connection.peer.port,
        "node": connection.broker.events.node,
    }
