"""The class session: attach, detach and resume sessions (AMQP 0-10 9.2).

A session has a name, unique for its user and vhost. On a channel of a connection it is attached;
one with a timeout lives that long without a channel, and continues when it is attached again:

    attach -> attached, flush(expected)     the peer sends what it expects
    expected -> command-point, then a replay of what it has not received
    command-point                           the peer replays from there
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import RemoteUser
from harebell.base import limits
from harebell.base.errors import ProtocolError
from harebell.front.amqp_0_10.connection import NOT_ATTACHED
from harebell.front.amqp_0_10.errors import (
    CONNECTION_FORCED,
    ILLEGAL_ARGUMENT,
    NOT_IMPLEMENTED,
    DetachError,
    ExecutionError,
    connection_error,
)
from harebell.front.amqp_0_10.replay import Replay
from harebell.front.amqp_0_10.session import Session
from harebell.front.common.admission import check_channel
from harebell.front.common.event_exchange import channel_created
from harebell.wire.v010 import controls
from harebell.wire.v010.ranges import near, wrapped
from harebell.wire.v010.states import CHANNEL_SERVER, ChannelState
from harebell.wire.v010.structs import Control, Ranges

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.front.amqp_0_10.connection import Connection

NORMAL = 0
SESSION_BUSY = 1
TRANSPORT_BUSY = 2
UNKNOWN_IDS = 4


def state_of(connection: Connection, channel: int) -> ChannelState:
    """Return whether a session is attached on a channel, is leaving it, or neither."""
    if channel in connection.channels:
        return ChannelState.ATTACHED
    return ChannelState.ENDING if channel in connection.ending else ChannelState.DETACHED


def serve_control(connection: Connection, channel: int, control: Control) -> None:
    """Serve a control of class session."""
    state = state_of(connection, channel)
    if control.NAME not in CHANNEL_SERVER[state]:
        connection.not_attached(channel)
        return
    handle = CHANNEL_HANDLERS.get(type(control))
    if handle is not None:
        handle(connection, channel, control)
        return
    session: Session = connection.channels[channel]
    try:
        HANDLERS[type(control)](session, control)
    except Exception as error:
        session.caught(error, 2, 0)


# --- channels -----------------------------------------------------------------------------------


def attach(connection: Connection, channel: int, control: controls.SessionAttach) -> None:
    """session.attach: begin or resume a session."""
    here: Session | None = connection.channels.get(channel)
    name = control.name
    if here is not None:
        if here.name == name:
            # The rule "idempotence": a repetition changes nothing.
            connection.send_control(channel, controls.SessionAttached(name))
        else:
            connection.send_control(channel, controls.SessionDetached(name, TRANSPORT_BUSY))
        return
    assert connection.vhost is not None, "sessions are attached on open connections"
    key = (connection.vhost.name, connection.user.name, name)
    known = _known(connection, key)
    if known is not None and known.on_channel:
        if not control.force:
            connection.send_control(channel, controls.SessionDetached(name, SESSION_BUSY))
            return
        _detach_by_force(known)
    connection.ending.pop(channel, None)
    if known is None or known.ended:
        _begin(connection, channel, name)
    else:
        _resume(known, connection, channel)


def _known(connection: Connection, key: tuple[str, str, bytes]) -> Session | None:
    """Find the session of that name; one whose user or vhost was deleted is ended."""
    known: Session | None = connection.registry.named_sessions.get(key)
    if known is None or (
        known.vhost is connection.vhost and _same_user(known.user, connection.user)
    ):
        return known
    known.end()
    return None


def _same_user(one: User, other: User) -> bool:
    """True for one user of the broker, and for two logins of a user of another backend."""
    remote = isinstance(one, RemoteUser) and isinstance(other, RemoteUser)
    return one is other or (remote and one.name == other.name)


def _detach_by_force(session: Session) -> None:
    """Move a session that another connection attaches with force."""
    connection, number = session.connection, session.number
    connection.send_control(number, controls.SessionDetached(session.name, SESSION_BUSY))
    connection.ending[number] = session.name
    session.move()


def _begin(connection: Connection, channel: int, name: bytes) -> None:
    try:
        check_channel(connection)
    except ProtocolError as error:
        raise connection_error(CONNECTION_FORCED, error.text) from None
    session = Session(connection, channel, name)
    connection.channels[channel] = session
    connection.registry.named_sessions[session.key] = session
    channel_created(session)
    connection.send_control(channel, controls.SessionAttached(name))
    session.point()


def _resume(session: Session, connection: Connection, channel: int) -> None:
    """Resume a session that was without a channel."""
    session.return_to(connection, channel)
    connection.channels[channel] = session
    connection.send_control(channel, controls.SessionAttached(session.name))
    if session.replay is not None and len(session.replay):
        flush = controls.SessionFlush(expected=True, confirmed=True, completed=True)
        connection.send_control(channel, flush)
        return
    session.point()
    session.attached = True
    session.serve()


def detach(connection: Connection, channel: int, control: controls.SessionDetach) -> None:
    """session.detach: the session leaves its channel."""
    session: Session | None = connection.channels.get(channel)
    if session is None:
        connection.ending.pop(channel, None)
        detached = controls.SessionDetached(control.name, NORMAL)
    elif session.name != control.name:
        detached = controls.SessionDetached(control.name, NOT_ATTACHED)
    else:
        session.complete()
        detached = controls.SessionDetached(control.name, NORMAL)
        _leave(session)
    connection.send_control(channel, detached)


def _leave(session: Session) -> None:
    session.leave_first()
    session.leave()


def detached_(connection: Connection, channel: int, control: controls.SessionDetached) -> None:
    """session.detached: the reply to the broker's detach, or a detach by the peer."""
    connection.ending.pop(channel, None)
    session: Session | None = connection.channels.get(channel)
    if session is not None:
        _leave(session)


CHANNEL_HANDLERS: dict[type, Callable[[Any, int, Any], None]] = {
    controls.SessionAttach: attach,
    controls.SessionDetach: detach,
    controls.SessionDetached: detached_,
}


# --- sessions -----------------------------------------------------------------------------------


def attached(session: Session, control: controls.SessionAttached) -> None:
    """session.attached: an error, for the broker attaches no sessions."""
    raise ExecutionError(ILLEGAL_ARGUMENT, "session.attached without session.attach")


def request_timeout(session: Session, control: controls.SessionRequestTimeout) -> None:
    """session.request-timeout: set the time without a channel; no number means no limit.

    The reply is 0 if there are very many sessions.
    """
    wanted = limits.SESSION_TIMEOUT_SECONDS if control.timeout is None else control.timeout
    if (
        not session.timeout
        and len(session.connection.registry.named_sessions) > limits.SESSIONS_KEPT
    ):
        wanted = 0
    session.timeout = min(wanted, limits.SESSION_TIMEOUT_SECONDS)
    if session.timeout and session.replay is None:
        session.replay = Replay()
    elif not session.timeout:
        session.replay = None
    reply = controls.SessionTimeout(session.timeout)
    session.connection.send_control(session.number, reply)


def timeout(session: Session, control: controls.SessionTimeout) -> None:
    """session.timeout: ignored, the timeout of the peer has no effect here."""


def command_point(session: Session, control: controls.SessionCommandPoint) -> None:
    """session.command-point: the number of the peer's next command."""
    if control.command_offset:
        text = "a command cannot go on in the middle: none is kept that did not come whole"
        raise ExecutionError(NOT_IMPLEMENTED, text, 1)
    number = control.command_id
    if session.received:
        number = near(number, session.received)
    if number > session.received and session.received:
        text = f"command {number} after {session.received - 1}: what is between is lost"
        raise DetachError(UNKNOWN_IDS, text)
    session.go_on_at(number)


def expected(session: Session, control: controls.SessionExpected) -> None:
    """session.expected: replay what the peer has not received."""
    if session.attached or session.ended:
        return
    first = session.sent
    if control.commands:
        first = min(low for low, _ in session.meant(control.commands))
    elif session.replay is not None:
        # The peer has no state of the session: replay everything that is kept.
        first = session.replay.first(session.sent)
    session.send_again(first)


def confirmed(session: Session, control: controls.SessionConfirmed) -> None:
    """session.confirmed: drop commands that the peer has stored."""
    if session.replay is not None:
        for first, last in session.meant(control.commands):
            session.replay.drop(first, last)


def completed(session: Session, control: controls.SessionCompleted) -> None:
    """session.completed: the peer has executed commands of the broker."""
    session.acknowledged(control.commands)
    if control.timely_reply and not session.ended:
        known: Ranges = control.commands
        reply = controls.SessionKnownCompleted(known)
        session.connection.send_control(session.number, reply)


def known_completed(session: Session, control: controls.SessionKnownCompleted) -> None:
    """session.known-completed: stop reporting these completions."""
    for first, last in control.commands:
        low, high = near(first, session.received), near(last, session.received)
        session.settle_known(low, high)


def flush(session: Session, control: controls.SessionFlush) -> None:
    """session.flush: send the requested state at once."""
    connection, number = session.connection, session.number
    if control.expected:
        following = wrapped(session.received)
        connection.send_control(number, controls.SessionExpected(((following, following),)))
    session.complete()
    if control.confirmed:
        connection.send_control(number, controls.SessionConfirmed(session.completed()))
    if control.completed:
        session.send_completed()


def gap(session: Session, control: controls.SessionGap) -> None:
    """session.gap: commands that will not be sent count as executed."""
    for first, last in control.commands:
        low, high = near(first, session.received), near(last, session.received)
        if low > session.received:
            raise ExecutionError(ILLEGAL_ARGUMENT, f"commands before {low} are missing, too")
        session.pass_over(high + 1)


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    controls.SessionAttached: attached,
    controls.SessionRequestTimeout: request_timeout,
    controls.SessionTimeout: timeout,
    controls.SessionCommandPoint: command_point,
    controls.SessionExpected: expected,
    controls.SessionConfirmed: confirmed,
    controls.SessionCompleted: completed,
    controls.SessionKnownCompleted: known_completed,
    controls.SessionFlush: flush,
    controls.SessionGap: gap,
}
