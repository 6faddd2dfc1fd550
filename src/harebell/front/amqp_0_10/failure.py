"""Where errors become execution.exception, session.detached and connection.close.

An error that is not the peer's is our own: the peer learns that much, the log gets the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base import limits
from harebell.base.errors import ProtocolError, Refusal
from harebell.front.amqp_0_9_1.failure import describe
from harebell.front.amqp_0_10.errors import (
    CONNECTION_FORCED,
    FRAMING_ERROR,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    DetachError,
    ExecutionError,
    close_text,
    described,
    execution_code,
)
from harebell.front.common.login import LoginRefused
from harebell.wire.v010 import commands, controls
from harebell.wire.v010.ranges import wrapped
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.connection import Connection
    from harebell.front.amqp_0_10.session_layer import SessionLayer

NOT_ATTACHED = 3
_TEXT_OCTETS = 1024
"""Octets of a description; more would be cut by clients anyway."""


def connection_error(code: int, text: str) -> ProtocolError:
    """An error that ends the connection; `code` is one of connection.close."""
    return ProtocolError(code, text)


def framing(text: str) -> ProtocolError:
    """The error for frames and controls that make no sense."""
    return ProtocolError(FRAMING_ERROR, text)


def unknown_commands(first: int, last: int) -> ExecutionError:
    """The error for a peer that speaks of commands which were never sent."""
    return ExecutionError(INVALID_ARGUMENT, f"commands {first} to {last} were not sent")


# --- the connection -----------------------------------------------------------------------------


def caught(connection: Connection, error: Exception) -> None:
    """Close the connection because of an error."""
    if not isinstance(error, ProtocolError):
        connection.settings.journal("error", f"{connection.peer}: {describe(error)}")
        error = ProtocolError(CONNECTION_FORCED, "internal error")
    close(connection, error.code, error.text, counted=not isinstance(error, LoginRefused))


def close(connection: Connection, code: int, text: str, *, counted: bool = True) -> None:
    """Close the connection with the reason.

    Args:
        connection: before it is open, or after.
        code: one of connection.close.
        text: for the peer and the log.
        counted: whether it counts as a failure of its address, before it is open.
    """
    text = close_text(code, text)
    connection.settings.journal("error", f"{connection.peer}: connection closed: {text}")
    if connection.state in (ConnectionState.CLOSING, ConnectionState.CLOSED):
        connection.finish()
        return
    if counted and connection.state is not ConnectionState.OPEN:
        connection.remember_failure()
    connection.release()
    connection.send_control(0, controls.ConnectionClose(code, text))
    connection.state = ConnectionState.CLOSING
    connection.paused = False
    connection.deadline = connection.now + limits.CLOSE_TIMEOUT_SECONDS
    connection.scanner.fast = False
    connection.scanner.hold = False
    if code == FRAMING_ERROR:
        # The frames cannot be told apart any more, so no close-ok can be found either.
        connection.finish()


# --- sessions -----------------------------------------------------------------------------------


def session_caught(session: Any, error: Exception, class_code: int, command_code: int) -> None:
    """A command failed: end its session, or the connection when the frames are broken."""
    connection = session.connection
    if isinstance(error, DetachError):
        detach(session, error.code, error.text)
        return
    if isinstance(error, ProtocolError) and error.hard and error.code == FRAMING_ERROR:
        connection.caught(error)
        return
    if isinstance(error, Refusal | ProtocolError):
        code, text = execution_code(error), error.text
    else:
        connection.settings.journal("error", f"{connection.peer}: {describe(error)}")
        code, text = INTERNAL_ERROR, "internal error"
    _fail(session, code, text, class_code, command_code, getattr(error, "field", None))


def _fail(
    session: SessionLayer,
    code: int,
    text: str,
    class_code: int,
    command_code: int,
    field: int | None,
) -> None:
    if session.ended:
        return
    connection = session.connection
    text = described(code, text)
    connection.settings.journal("error", f"{connection.peer}: {session!r} ended: {text}")
    session.complete_behind()
    octets = text.encode()
    if len(octets) > _TEXT_OCTETS:
        text = octets[:_TEXT_OCTETS].decode(errors="ignore") + "..."
    exception = commands.ExecutionException(
        error_code=code,
        command_id=wrapped(session.current),
        class_code=class_code,
        command_code=command_code,
        field_index=field,
        description=text,
    )
    session.send(exception)
    detach_by_us(session)


def detach_by_us(session: Any) -> None:
    """Ask the peer to let go; what it sends until it answers is passed over."""
    connection, number = session.connection, session.number
    connection.send_control(number, controls.SessionDetach(session.name))
    connection.ending[number] = session.name
    session.end()


def detach(session: Any, code: int, text: str) -> None:
    """The session leaves its channel, and is over."""
    connection, number = session.connection, session.number
    connection.settings.journal("error", f"{connection.peer}: {session!r} detached: {text}")
    connection.send_control(number, controls.SessionDetached(session.name, code))
    connection.ending[number] = session.name
    session.end()


def not_attached(connection: Connection, channel: int) -> None:
    """Something came for a session on a channel without one; it is said once."""
    connection.send_control(channel, controls.SessionDetached(b"", NOT_ATTACHED))
    connection.ending[channel] = b""
