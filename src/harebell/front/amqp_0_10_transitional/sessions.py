"""Sessions (class 20): opened, detached, resumed with a replay, destroyed.

A session is the state of a channel that may be detached: consumers, unacknowledged deliveries,
transaction, completions. Its `Session` counts received frames, keeps sent ones, and has the timer
that ends it. One without a lifetime ends with its channel.

    attached  --suspend, connection lost-->  detached  --resume-->  resuming  --ack-->  attached
                                             detached  --lifetime over-->  destroyed

On a resume the server sends which frames it has (session.ack) and, if it may have to repeat some,
the number of its last frame (session.high-water-mark). The client answers with session.ack; missing
frames are sent again, then new ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_10_transitional.completion import after
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.replay import Replay
from harebell.front.common.admission import check_channel
from harebell.front.common.event_exchange import channel_created
from harebell.front.limits import SESSION_LIFETIME_SECONDS
from harebell.wire.v09.methods_transitional import (
    SessionAck,
    SessionAttached,
    SessionClosed,
    SessionHighWaterMark,
)

if TYPE_CHECKING:
    from harebell.base.timers import Timer
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_ID_BYTES = 16
_CLASS = b"\0\x14"
_MS = 1_000
_BUSY, _UNKNOWN = 405, 404


class Session:
    """The state of a session beside that of its channel.

    Args:
        channel: the channel that it was opened on, which belongs to the session from then on.
        identifier: its name, 16 bytes.
        lifetime: how many seconds it is kept without a channel.

    Attributes:
        seen: the number of the last received frame.
        replay: the sent frames; None if it cannot be resumed.
        resuming: whether output waits until the client acknowledges its frames.
    """

    def __init__(self, channel: TransitionalChannel, identifier: bytes, lifetime: int) -> None:
        self.channel = channel
        self.identifier = identifier
        self.lifetime = lifetime
        self.user = channel.connection.user.name
        self.seen = 0
        self.replay = Replay() if lifetime else None
        self.resuming = False
        self._timer: Timer | None = None

    def count(self, payload: bytes) -> None:
        """Count a received frame, except methods of class session, which the payload shows."""
        if payload[:2] != _CLASS:
            self.seen = after(self.seen)

    @property
    def name(self) -> str:
        """The identifier in its usual form."""
        return self.identifier.hex()

    def start_timer(self) -> None:
        """Start the timer that ends a detached session."""
        timers = self.channel.connection.broker.timers
        if self._timer is None:
            self._timer = timers.timer(self._expire)
        self._timer.set(timers.clock.steady + self.lifetime * _MS)

    def stop_timer(self) -> None:
        """Stop the timer of a session that has a channel again, or is destroyed."""
        if self._timer is not None:
            self._timer.stop()

    def _expire(self) -> None:
        connection = self.channel.connection
        connection.log("info", f"session {self.name} was not resumed in time")
        self.channel.end()


def _lifetime(connection: Connection, requested: int) -> int:
    """Return how long a session may live without a channel."""
    if connection.registry.kept_sessions.objection(connection.user.name):
        # The user's share of sessions without a channel, which take memory, is used up.
        return 0
    return min(requested, SESSION_LIFETIME_SECONDS)


def _new_identifier(connection: Connection) -> bytes:
    """Make a random UUID (RFC 4122, version 4)."""
    data = bytearray(connection.settings.rng(_ID_BYTES))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    return bytes(data)


def open_(connection: Connection, number: int, requested: int) -> None:
    """session.open: a new session, attached to the channel."""
    check_channel(connection)
    channel: TransitionalChannel = connection.profile.channel(connection, number)
    session = Session(channel, _new_identifier(connection), _lifetime(connection, requested))
    channel.session = session
    connection.channels[number] = channel
    if session.lifetime:
        connection.registry.sessions[session.identifier] = session
        connection.registry.kept_sessions.add(session.user)
    connection.broker.events.actor = connection.user.name
    channel_created(channel)
    connection.send(number, SessionAttached(session.identifier, session.lifetime))


def resume(connection: Connection, number: int, identifier: bytes) -> None:
    """session.resume: attach a detached session.

    A session of another user or vhost is refused like one that does not exist.
    """
    check_channel(connection)
    session: Session | None = connection.registry.sessions.get(identifier)
    if (
        session is None
        or session.user != connection.user.name
        or session.channel.vhost is not connection.vhost
    ):
        _refuse(connection, number, _UNKNOWN, f"NOT_FOUND - no session '{identifier.hex()}'")
        return
    if not session.channel.detached:
        text = f"RESOURCE_LOCKED - session busy: '{session.name}' is attached to a channel"
        _refuse(connection, number, _BUSY, text)
        return
    session.stop_timer()
    channel, replay = session.channel, session.replay
    assert replay is not None, "sessions that are kept have a lifetime"
    session.resuming = replay.sent != replay.acked
    channel.attach(connection, number)
    # Replies of the lost connection may have waited for it; the replay must not be earlier.
    connection.hold_until(channel.vhost.recorder.ticket)
    connection.broker.events.actor = connection.user.name
    channel_created(channel)
    connection.send(number, SessionAttached(session.identifier, session.lifetime))
    connection.send(number, SessionAck(session.seen))
    if session.resuming:
        connection.send(number, SessionHighWaterMark(replay.sent))
    else:
        channel.serve()


def _refuse(connection: Connection, number: int, code: int, text: str) -> None:
    connection.log("error", f"{connection.peer}: channel {number}: {text}")
    layer_of(connection).ended.add(number)
    connection.send(number, SessionClosed(code, text))
