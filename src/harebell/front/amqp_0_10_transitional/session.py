"""The class session on a channel that has one (class 20); see `sessions` beside it.

A channel that was opened by channel.open has no session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError
from harebell.front.amqp_0_10_transitional.completion import after, distance
from harebell.front.amqp_0_10_transitional.sessions import Session
from harebell.front.common.errors import hard
from harebell.wire.v09 import methods_transitional as m

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.wire.v09.transitional_types import Ranges

_CLASS = 20
_SUCCESS = 200


def _session(channel: TransitionalChannel, method_id: int) -> Session:
    if channel.session is None:
        raise hard(503, "the channel has no session", _CLASS, method_id)
    return channel.session


def busy(channel: TransitionalChannel, method: m.SessionOpen | m.SessionResume) -> None:
    """session.open and session.resume on an open channel: an error."""
    method_id = 10 if isinstance(method, m.SessionOpen) else 50
    raise hard(504, f"channel busy: channel {channel.number} is in use", _CLASS, method_id)


def flow(channel: TransitionalChannel, method: m.SessionFlow) -> None:
    """session.flow: stop or resume deliveries."""
    _session(channel, 20)
    channel.connection.send(channel.number, m.SessionFlowOk(method.active))
    channel.set_flow(active=method.active)


def flow_ok(channel: TransitionalChannel, method: m.SessionFlowOk) -> None:
    """session.flow-ok: ignored, the broker sends no session.flow."""
    _session(channel, 21)


def close(channel: TransitionalChannel, method: m.SessionClose) -> None:
    """session.close: the session ends completely before the reply."""
    _session(channel, 40)
    connection, number = channel.connection, channel.number
    channel.ending = True
    connection.drop_channel(channel)
    connection.send(number, m.SessionClosed(_SUCCESS, "ok"))


def closed(channel: TransitionalChannel, method: m.SessionClosed) -> None:
    """session.closed: the client has destroyed the session."""
    _session(channel, 41)
    if method.reply_code != _SUCCESS:
        why = f"{method.reply_code}, {method.reply_text!a}"
        peer = channel.connection.peer
        channel.connection.log("warning", f"{peer}: the client ended a session: {why}")
    channel.ending = True
    channel.connection.drop_channel(channel)


def ping(channel: TransitionalChannel, method: m.SessionPing) -> None:
    """session.ping: reply with session.pong."""
    _session(channel, 60)
    channel.connection.send(channel.number, m.SessionPong())


def pong(channel: TransitionalChannel, method: m.SessionPong) -> None:
    """session.pong: ignored, every frame counts as a sign of life."""
    _session(channel, 70)


def suspend(channel: TransitionalChannel, method: m.SessionSuspend) -> None:
    """session.suspend: detach the session from its channel, for its lifetime."""
    _session(channel, 90)
    connection, number = channel.connection, channel.number
    connection.drop_channel(channel)
    connection.send(number, m.SessionDetached())


def check_set(mark: int, ranges: Ranges, name: str, method_id: int, class_id: int) -> None:
    """Refuse ranges that are not above their mark, or begin directly after it.

    Raises:
        ProtocolError: 502.
    """
    first_missing = after(mark)
    for first, last in ranges:
        if distance(first, last) < 0:
            why = f"{first} to {last} is no interval"
        elif distance(first_missing, first) <= 0:
            why = f"{first} to {last} is not above {first_missing}, the first number that is out"
        else:
            continue
        raise ProtocolError(502, f"{name}: {why}", class_id, method_id)


def ack(channel: TransitionalChannel, method: m.SessionAck) -> None:
    """session.ack: drop acknowledged frames; after a resume, send the missing ones."""
    session = _session(channel, 110)
    mark = method.cumulative_seen_mark
    check_set(mark, method.seen_frame_set, "seen-frame-set", 110, _CLASS)
    if method.seen_frame_set:
        # Frames come in order over TCP, so a gap can only be a fault of the client.
        text = "seen-frame-set: nothing arrives out of order here"
        raise hard(502, text, _CLASS, 110)
    replay = session.replay
    if replay is None:
        return
    if not replay.ack(mark):
        raise hard(502, f"frame {mark} was not sent, the last is {replay.sent}", _CLASS, 110)
    if session.resuming:
        # Now it is known what the client lacks: the kept frames, then new ones.
        session.resuming = False
        for frame in replay.again(channel.number):
            channel.connection.out.raw(frame)
        channel.connection.touch()
    channel.serve()


def high_water_mark(channel: TransitionalChannel, method: m.SessionHighWaterMark) -> None:
    """session.high-water-mark: acknowledge the received frames."""
    session = _session(channel, 120)
    channel.connection.send(channel.number, m.SessionAck(session.seen))


def solicit_ack(channel: TransitionalChannel, method: m.SessionSolicitAck) -> None:
    """session.solicit-ack: acknowledge the received frames, as for session.high-water-mark."""
    session = _session(channel, 130)
    channel.connection.send(channel.number, m.SessionAck(session.seen))


HANDLERS = {
    m.SessionOpen: busy,
    m.SessionResume: busy,
    m.SessionFlow: flow,
    m.SessionFlowOk: flow_ok,
    m.SessionClose: close,
    m.SessionClosed: closed,
    m.SessionPing: ping,
    m.SessionPong: pong,
    m.SessionSuspend: suspend,
    m.SessionAck: ack,
    m.SessionHighWaterMark: high_water_mark,
    m.SessionSolicitAck: solicit_ack,
}
