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
from harebell.base.errors import ProtocolError
from harebell.front import limits
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
from harebell.front.amqp_0_10.session_states import CHANNEL, EVENTS, NOT_ATTACHED
from harebell.front.common.admission import check_channel
from harebell.front.common.event_exchange import channel_created
from harebell.front.common.state_table import IGNORED, Fault
from harebell.wire.v010 import controls
from harebell.wire.v010.composites import Control, Ranges
from harebell.wire.v010.ranges import near, wrapped

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.front.amqp_0_10.connection import Connection

NORMAL = 0
SESSION_BUSY = 1
TRANSPORT_BUSY = 2
UNKNOWN_IDS = 4


def serve_control(connection: Connection, channel: int, control: Control) -> None:
    """Serve a control of class session."""
    outcome = CHANNEL[connection.channel_state(channel)][EVENTS[control.NAME]]
    if outcome is IGNORED:
        return
    if outcome is NOT_ATTACHED:
        connection.refuse_unattached(channel)
        return
    handle = CHANNEL_HANDLERS.get(type(control))
    if handle is not None:
        handle(connection, channel, control)
        return
    session: Session = connection.channels[channel]
    try:
        if isinstance(outcome, Fault):
            raise ExecutionError(outcome.code, outcome.text)
        HANDLERS[type(control)](session, control)
    except Exception as error:
        session.caught(error, 2, 0)


# --- channels -----------------------------------------------------------------------------------


def attach(connection: Connection, channel: int, control: controls.SessionAttach) -> None:
    """session.attach: begin or resume a session."""
    attached: Session | None = connection.channels.get(channel)
    name = control.name
    if attached is not None:
        if attached.name == name:
            # The rule "idempotence": a repetition changes nothing.
            connection.send_control(channel, controls.SessionAttached(name))
        else:
            connection.send_control(channel, controls.SessionDetached(name, TRANSPORT_BUSY))
        return
    assert connection.vhost is not None, "sessions are attached on open connections"
    key = (connection.vhost.name, connection.user.name, name)
    session = _find(connection, key)
    if session is not None and session.on_channel:
        # A session is on one channel at a time, wherever its peer connects.
        if not control.force:
            connection.send_control(channel, controls.SessionDetached(name, SESSION_BUSY))
            return
        _detach_by_force(session)
    connection.ending.pop(channel, None)
    # `force` may have ended it: a session without a timeout does not outlive its channel.
    if session is None or session.ended:
        _begin(connection, channel, name)
    else:
        _resume(session, connection, channel)


def _find(connection: Connection, key: tuple[str, str, bytes]) -> Session | None:
    """Find the session of that name; one whose user or vhost was deleted is ended."""
    session: Session | None = connection.registry.named_sessions.get(key)
    if session is None or (
        session.vhost is connection.vhost and _same_user(session.user, connection.user)
    ):
        return session
    # Another user or vhost has that name by now: it must not inherit the session's deliveries.
    session.end()
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
        # No commands before the answer, session.expected: it says where the replay begins.
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
        # The session has failed, and both sides send a detach at once.
        connection.ending.pop(channel, None)
        detached = controls.SessionDetached(control.name, NORMAL)
    elif session.name != control.name:
        detached = controls.SessionDetached(control.name, NOT_ATTACHED.code)
    else:
        # What was executed in this turn is reported before the session leaves the channel.
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


def request_timeout(session: Session, control: controls.SessionRequestTimeout) -> None:
    """session.request-timeout: set the time without a channel; no number means no limit.

    The reply is 0 if there are very many sessions.
    """
    requested = limits.SESSION_TIMEOUT_SECONDS if control.timeout is None else control.timeout
    shares, user = session.connection.registry.kept_sessions, session.user.name
    before = session.timeout
    if not before and shares.objection(user):
        # The user's share of sessions without a channel, which take memory, is used up.
        requested = 0
    session.timeout = min(requested, limits.SESSION_TIMEOUT_SECONDS)
    if bool(before) != bool(session.timeout):
        shares.add(user, 1 if session.timeout else -1)
    if session.timeout and session.replay is None:
        # From now on only: earlier commands cannot be replayed.
        session.replay = Replay()
    elif not session.timeout:
        session.replay = None
    reply = controls.SessionTimeout(session.timeout)
    session.connection.send_control(session.number, reply)


def command_point(session: Session, control: controls.SessionCommandPoint) -> None:
    """session.command-point: the number of the peer's next command."""
    if control.command_offset:
        text = "a command cannot go on in the middle: none is kept that did not come whole"
        raise ExecutionError(NOT_IMPLEMENTED, text, 1)
    number = control.command_id
    # The first command-point sets the number; later ones are 32 bits of a number near it.
    if session.received:
        number = near(number, session.received)
    if number > session.received and session.received:
        text = f"command {number} after {session.received - 1}: what is between is lost"
        raise DetachError(UNKNOWN_IDS, text)
    session.go_on_at(number)


def expected(session: Session, control: controls.SessionExpected) -> None:
    """session.expected: replay what the peer has not received."""
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
    # The rule "known-completed-reply"; new credit may have ended the session meanwhile.
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
        # The rule "include-next-command": the set has the next number even if nothing is missing.
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
    controls.SessionRequestTimeout: request_timeout,
    controls.SessionCommandPoint: command_point,
    controls.SessionExpected: expected,
    controls.SessionConfirmed: confirmed,
    controls.SessionCompleted: completed,
    controls.SessionKnownCompleted: known_completed,
    controls.SessionFlush: flush,
    controls.SessionGap: gap,
}
