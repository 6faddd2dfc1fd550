"""Frames on channels: methods that open a channel or session, commands, and contents.

command           every method but those of connection, session, channel and execution
on a free channel channel.open, session.open or session.resume
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_10_transitional import sessions
from harebell.front.amqp_0_10_transitional.completion import CONTROLS, SESSION_CLASS
from harebell.front.amqp_0_10_transitional.headers import lettered_header
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.transferring import RAW
from harebell.front.common.decisions import when_decided
from harebell.front.common.errors import hard
from harebell.wire.v09.frames import HEADER, METHOD
from harebell.wire.v09.methods import ChannelOpen, Method
from harebell.wire.v09.methods_transitional import SessionOpen, SessionResume
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, lettered

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_IDS = 4
_TABLES = ("arguments", "filter", "meta_data")
_BEGIN = (ChannelOpen, SessionOpen, SessionResume)


def take(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    """Take one frame on a channel of an open connection.

    Raises:
        ProtocolError: the connection has to be closed with it.
    """
    channel = connection.channels.get(number)
    if channel is None:
        _unopened(connection, kind, number, payload)
        return
    # Before anything can fail: session.ack has to say that the frame has arrived.
    if channel.session is not None:
        channel.session.count(payload if kind == METHOD else b"")
    # Methods of class session about frames may come between the frames of a content.
    if channel.content is not None and not _is_of_session(kind, payload):
        _content(connection, channel, kind, payload)
    elif kind != METHOD:
        raise hard(505, "expected method frame, got non method frame instead", 0, 0)
    else:
        _method(connection, channel, payload)


def _is_of_session(kind: int, payload: bytes) -> bool:
    return kind == METHOD and int.from_bytes(payload[:2]) == SESSION_CLASS


def _content(
    connection: Connection, channel: TransitionalChannel, kind: int, payload: bytes
) -> None:
    if kind == HEADER:
        payload = lettered_header(layer_of(connection), payload)
    connection.content_frame(channel, kind, payload)
    if channel.content is None:
        # The publish may wait for a decision about a permission; the command is complete after it.
        when_decided(connection, channel.completions.release)


def _method(connection: Connection, channel: TransitionalChannel, payload: bytes) -> None:
    if int.from_bytes(payload[:2]) not in CONTROLS:
        channel.completions.take()
    raw = RAW.get(payload[:_IDS])
    if raw is not None:
        _serve_raw(connection, channel, raw, payload)
        return
    method = connection.spec.decode(payload)
    _take_tables(connection, method)
    if connection.spec.spec_of(method).has_content:
        channel.completions.hold()
    connection.channel_method(channel, method)


def _take_tables(connection: Connection, method: Method) -> None:
    """Note the table types that the peer uses; convert them to those of 0-9-1."""
    for name in _TABLES:
        table = getattr(method, name, None)
        if isinstance(table, TypedTable):
            layer_of(connection).note_dialect(table)
            if table.dialect is FieldDialect.TYPED:
                setattr(method, name, lettered(table))


def _serve_raw(
    connection: Connection,
    channel: TransitionalChannel,
    handler: Callable[[Any, bytes], None],
    payload: bytes,
) -> None:
    class_id, method_id = int.from_bytes(payload[:2]), int.from_bytes(payload[2:_IDS])
    connection.serve_method(channel, partial(handler, channel, payload), class_id, method_id)


def _unopened(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    """Take a frame on a channel that is not open: open it, or ignore late frames."""
    ended = number in layer_of(connection).ended
    if number in connection.closed_channels:
        connection.frame_without_channel(kind, number, payload)
        return
    if kind != METHOD:
        if not ended:
            raise hard(504, "expected 'channel.open' or 'session.open'", 0, 0)
        return
    if ended:
        # Frames from before the peer got session.closed are not decoded; it has no reply, so the
        # next method that opens the channel shows that the peer knows.
        heads = {connection.spec.named(begin.NAME).head for begin in _BEGIN}
        if payload[:_IDS] not in heads:
            return
        layer_of(connection).ended.discard(number)
    _begin(connection, number, connection.spec.decode(payload))


def _begin(connection: Connection, number: int, method: Method) -> None:
    if isinstance(method, SessionOpen):
        sessions.open_(connection, number, method.detached_lifetime)
    elif isinstance(method, SessionResume):
        sessions.resume(connection, number, method.session_id)
    elif isinstance(method, ChannelOpen):
        connection.method_without_channel(number, method)
    else:
        spec = connection.spec.spec_of(method)
        text = "expected 'channel.open' or 'session.open'"
        raise hard(504, text, spec.class_id, spec.method_id)
