"""Single frames: whatever the scanner did not hand over as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError, Refusal
from harebell.front.amqp_0_9_1.failure import fail_channel
from harebell.front.common.admission import check_channel
from harebell.front.common.errors import hard
from harebell.front.common.event_exchange import channel_created
from harebell.wire.v09 import methods
from harebell.wire.v09.frames import BODY, HEADER, HEARTBEAT, METHOD
from harebell.wire.v09.states import ConnectionState, check_connection_method

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.front.amqp_0_9_1.connection import Connection

_IDS = 4
_ENDING = (ConnectionState.CLOSING, ConnectionState.CLOSED)


def take(connection: Connection, kind: int, channel: int, payload: bytes) -> None:
    """Take one frame.

    Raises:
        ProtocolError: the connection has to be closed with it.
    """
    if kind not in (METHOD, HEADER, BODY, HEARTBEAT):
        raise hard(501, f"type {kind}, all octets = <<>>: unknown_frame", 0, 0)
    if connection.state in _ENDING:
        _while_closing(connection, kind, channel, payload)
    elif kind == HEARTBEAT:
        _check_heartbeat(channel, payload)
    elif channel == 0:
        _connection_frame(connection, kind, payload)
    else:
        _channel_frame(connection, kind, channel, payload)


def _check_heartbeat(channel: int, payload: bytes) -> None:
    if channel != 0:
        raise hard(505, f"heartbeat frame on channel {channel}", 0, 0)
    if payload:
        raise hard(501, "type 8, all octets = <<>>: unknown_frame", 0, 0)


def _while_closing(connection: Connection, kind: int, channel: int, payload: bytes) -> None:
    """After connection.close only its handshake counts (AMQP 0-9-1 1.4.2.9).

    Several threads of a client may close its connection: each waits for a close-ok.
    """
    if kind != METHOD or channel != 0:
        return
    try:
        method = connection.spec.decode(payload)
    except ProtocolError:
        return
    if isinstance(method, methods.ConnectionCloseOk):
        connection.finish()
    elif isinstance(method, methods.ConnectionClose):
        connection.send(0, methods.ConnectionCloseOk())


def _connection_frame(connection: Connection, kind: int, payload: bytes) -> None:
    if kind != METHOD:
        raise hard(505, "content frame on channel 0", 0, 0)
    table = connection.spec
    # The place of a method comes before its fields: who has not logged in gets nothing decoded.
    if len(payload) >= _IDS:
        spec = table.method(int.from_bytes(payload[:2]), int.from_bytes(payload[2:_IDS]))
        check_connection_method(connection.state, spec, connection.profile.states)
    method = table.decode(payload)
    spec = table.spec_of(method)
    handler = connection.profile.connection_handlers.get(type(method))
    if handler is None:
        raise hard(540, f"{spec.name} is not supported", spec.class_id, spec.method_id)
    handler(connection, method)


def _channel_frame(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    if connection.state is not ConnectionState.OPEN:
        raise hard(504, f"frame on channel {number} before connection.open", 0, 0)
    channel = connection.channels.get(number)
    if channel is None:
        unopened(connection, kind, number, payload)
    elif channel.content is not None:
        content_frame(connection, channel, kind, payload)
    elif kind != METHOD:
        raise hard(505, "expected method frame, got non method frame instead", 0, 0)
    else:
        channel_method(connection, channel, connection.spec.decode(payload))


def channel_method(connection: Connection, channel: Channel, method: methods.Method) -> None:
    """A method on an open channel."""
    spec = connection.spec.spec_of(method)
    handler = connection.profile.handlers.get(type(method))
    if handler is None:
        if isinstance(method, methods.ChannelOpen):
            raise hard(504, "second 'channel.open' seen", spec.class_id, spec.method_id)
        raise hard(503, "unimplemented method", spec.class_id, spec.method_id)
    try:
        events = connection.broker.events
        events.actor = connection.user.name
        handler(channel, method)
        if events.waiting:
            events.tell()
    except (Refusal, ProtocolError) as error:
        fail_channel(connection, channel, error, spec.class_id, spec.method_id)


def content_frame(connection: Connection, channel: Channel, kind: int, payload: bytes) -> None:
    """A frame of the content that is under way on a channel."""
    content = channel.content
    try:
        whole = content.frame(kind, payload)
        connection.published = True
        if content.size > connection.message_max:
            raise channel.too_large(content.size)
        if whole:
            content.release()
            channel.content = None
            connection.scanner.pending -= 1
            connection.has_finished()
            content.done(channel, content)
    except (Refusal, ProtocolError) as error:
        fail_channel(connection, channel, error, *content.place)


def unopened(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    """A frame on a channel that is not open: open it, or ignore what was under way."""
    if number in connection.closed_channels:
        # What the peer sent before it knew is not even read (AMQP 0-9-1 1.5.2.5).
        end = connection.profile.channel_ends.get(payload[:_IDS])
        if kind == METHOD and end is not None:
            not_open(connection, number, end())
    elif kind == METHOD:
        not_open(connection, number, connection.spec.decode(payload))
    else:
        raise hard(504, "expected 'channel.open'", 0, 0)


def not_open(connection: Connection, number: int, method: methods.Method) -> None:
    """A method on a channel that is not open."""
    if connection.state is not ConnectionState.OPEN:
        return
    if number in connection.closed_channels:
        if isinstance(method, methods.ChannelCloseOk):
            connection.closed_channels.discard(number)
        elif isinstance(method, methods.ChannelClose):
            connection.send(number, methods.ChannelCloseOk())
        return
    if not isinstance(method, methods.ChannelOpen):
        spec = connection.spec.spec_of(method)
        if number == 0:
            check_connection_method(connection.state, spec, connection.profile.states)
        raise hard(504, "expected 'channel.open'", spec.class_id, spec.method_id)
    check_channel(connection)
    connection.channels[number] = channel = connection.profile.channel(connection, number)
    connection.broker.events.actor = connection.user.name
    channel_created(channel)
    connection.send(number, methods.ChannelOpenOk())
