"""The one place where errors become channel.close and connection.close.

An error that is not the peer's is our own: the peer learns that much, the log gets the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base import limits
from harebell.base.errors import ProtocolError, Refusal
from harebell.front.common.errors import hard
from harebell.front.common.login import LoginRefused
from harebell.wire.v09 import methods
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.front.amqp_0_9_1.connection import Connection


def caught(connection: Connection, error: Exception) -> None:
    """Close the connection because of an error."""
    if not isinstance(error, ProtocolError):
        connection.settings.journal("error", f"{connection.peer}: {describe(error)}")
        error = hard(541, "internal error", 0, 0)
    _fail(connection, error)


def channel_caught(
    connection: Connection, channel: Channel, error: Exception, class_id: int, method_id: int
) -> None:
    """Close the channel or the connection because of an error on the hot path."""
    try:
        if isinstance(error, Refusal | ProtocolError):
            fail_channel(connection, channel, error, class_id, method_id)
        else:
            caught(connection, error)
    except ProtocolError as hard_error:
        caught(connection, hard_error)


def fail_channel(
    connection: Connection,
    channel: Channel,
    error: Refusal | ProtocolError,
    class_id: int,
    method_id: int,
) -> None:
    """Close a channel with the reason; a hard error is raised for the connection."""
    errors = connection.profile.errors
    if isinstance(error, Refusal):
        error = errors.reply(error, class_id, method_id)
    else:
        error = errors.told(error)
    if error.hard:
        raise error
    text = errors.text(error)
    number = channel.number
    connection.settings.journal("error", f"{connection.peer}: channel {number} closed: {text}")
    if connection.channels.get(number) is not channel:
        return
    connection.end_channel(channel, error, text)


def may_be_told(connection: Connection, error: ProtocolError) -> bool:
    """Whether a peer whose connection is not open yet gets a connection.close."""
    if error.code == 403:
        return "authentication_failure_close" in connection.capabilities
    if connection.state is ConnectionState.OPENING and error.code == 504:
        # The peer has logged in and sends another method than connection.open.
        return error.class_id != 0
    return error.code in (402, 530)


def _fail(connection: Connection, error: ProtocolError) -> None:
    """Close the connection with the reason, where the peer may be told."""
    errors = connection.profile.errors
    counted = not isinstance(error, LoginRefused)
    error = errors.told(error)
    text = errors.text(error)
    connection.settings.journal("error", f"{connection.peer}: connection closed: {text}")
    if connection.state is ConnectionState.CLOSING:
        connection.finish()
        return
    if counted and connection.state is not ConnectionState.OPEN:
        connection.remember_failure()
    if connection.state is not ConnectionState.OPEN and not may_be_told(connection, error):
        connection.scanner.stopped = True
        if error.code == 403:
            connection.deadline = connection.now + limits.REFUSAL_PAUSE_SECONDS
        else:
            connection.cut()
        return
    connection.release()
    close = methods.ConnectionClose(
        reply_code=error.code,
        reply_text=text,
        class_id=error.class_id,
        method_id=error.method_id,
    )
    connection.send(0, close)
    connection.state = ConnectionState.CLOSING
    connection.paused = False
    connection.deadline = connection.now + limits.CLOSE_TIMEOUT_SECONDS
    connection.scanner.pending = 0
    connection.scanner.fast = False
    connection.scanner.hold = False
    if error.code == 501:
        # The frames cannot be told apart any more, so no close-ok can be found either.
        connection.finish()


def describe(error: BaseException) -> str:
    """An unexpected error and where it happened, for the log."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} at {' < '.join(reversed(places))}"
