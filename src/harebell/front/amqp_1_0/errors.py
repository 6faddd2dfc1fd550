"""The errors of AMQP 1.0: a condition, a description, and what ends because of it.

LinkError         detach of a link            SessionError      end of a session
ConnectionFault   close of the connection     Refusal           of the model: by its kind
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.errors import ConditionError, ErrorKind, ProtocolError, Refusal
from harebell.model.resource import LimitReached
from harebell.wire.v1.composites import Error

INTERNAL_ERROR = "amqp:internal-error"
NOT_FOUND = "amqp:not-found"
UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
DECODE_ERROR = "amqp:decode-error"
RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
NOT_ALLOWED = "amqp:not-allowed"
INVALID_FIELD = "amqp:invalid-field"
NOT_IMPLEMENTED = "amqp:not-implemented"
RESOURCE_LOCKED = "amqp:resource-locked"
PRECONDITION_FAILED = "amqp:precondition-failed"
RESOURCE_DELETED = "amqp:resource-deleted"
ILLEGAL_STATE = "amqp:illegal-state"
FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"

CONNECTION_FORCED = "amqp:connection:forced"
FRAMING_ERROR = "amqp:connection:framing-error"

WINDOW_VIOLATION = "amqp:session:window-violation"
HANDLE_IN_USE = "amqp:session:handle-in-use"
UNATTACHED_HANDLE = "amqp:session:unattached-handle"

STOLEN = "amqp:link:stolen"
TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"

UNKNOWN_ID = "amqp:transaction:unknown-id"
ROLLBACK = "amqp:transaction:rollback"

_KINDS = {
    ErrorKind.ACCESS_REFUSED: UNAUTHORIZED_ACCESS,
    ErrorKind.NOT_FOUND: NOT_FOUND,
    ErrorKind.NO_QUEUE_NAMED: NOT_FOUND,
    ErrorKind.RESOURCE_LOCKED: RESOURCE_LOCKED,
    ErrorKind.PRECONDITION_FAILED: PRECONDITION_FAILED,
    ErrorKind.INVALID_ARGUMENT: INVALID_FIELD,
    ErrorKind.NOT_ALLOWED: NOT_ALLOWED,
    ErrorKind.NOT_IMPLEMENTED: NOT_IMPLEMENTED,
    ErrorKind.RESOURCE_ERROR: RESOURCE_LIMIT_EXCEEDED,
    ErrorKind.INTERNAL_ERROR: INTERNAL_ERROR,
}
_CODES = {
    311: MESSAGE_SIZE_EXCEEDED,
    403: UNAUTHORIZED_ACCESS,
    404: NOT_FOUND,
    405: RESOURCE_LOCKED,
    406: PRECONDITION_FAILED,
    501: FRAMING_ERROR,
    502: DECODE_ERROR,
    506: RESOURCE_LIMIT_EXCEEDED,
    530: NOT_ALLOWED,
    540: NOT_IMPLEMENTED,
}
"""Codes of 0-9-1, of which code that serves several versions may speak."""


class AmqpError(ConditionError):
    """An error that the peer is told.

    Args:
        condition: the symbol of the condition.
        text: the description.
        info: further facts, by symbol.
    """

    def __init__(self, condition: str, text: str, info: Mapping[str, Any] | None = None) -> None:
        super().__init__(condition, text)
        self.info = info


class LinkError(AmqpError):
    """An error of a link: the link is detached, and its session goes on."""


class SessionError(AmqpError):
    """An error of a session: the session ends, and the connection goes on."""


class ConnectionFault(AmqpError):
    """An error of the connection, which is closed."""


def framing(text: str) -> ConnectionFault:
    """Make the error for invalid frames, and for frames that may not come now."""
    return ConnectionFault(FRAMING_ERROR, text)


def of_link(error: Exception) -> AmqpError | None:
    """Return what an error in the work for a link means for the peer.

    A missing permission ends the session, as in RabbitMQ; everything else detaches the link.

    Returns:
        The error with its scope; None for an internal error, of which the peer gets no details.
    """
    if isinstance(error, AmqpError):
        return error
    condition = condition_of(error)
    if condition is None:
        return None
    kind = SessionError if condition == UNAUTHORIZED_ACCESS else LinkError
    return kind(condition, text_of(error))


def condition_of(error: Exception) -> str | None:
    """Return the condition of an error that the peer may know; None for an internal one."""
    if isinstance(error, ConditionError):
        return error.condition
    if isinstance(error, LimitReached):
        return RESOURCE_LIMIT_EXCEEDED
    if isinstance(error, Refusal):
        return _KINDS.get(error.kind, PRECONDITION_FAILED)
    if isinstance(error, ProtocolError):
        return _CODES.get(error.code, INTERNAL_ERROR)
    return None


def text_of(error: Exception) -> str:
    """Return the description of an error; octets that are no UTF-8 are escaped."""
    text: str = getattr(error, "text", str(error))
    return text.encode(errors="backslashreplace").decode()


def composite(condition: str, text: str, info: Mapping[str, Any] | None = None) -> Error:
    """Return the error as a frame has it, its description cut to what the smallest frame has."""
    data = text.encode(errors="backslashreplace")
    if len(data) > _TEXT_BYTES:
        data = data[: _TEXT_BYTES - 3] + b"..."
    return Error(condition, data.decode(errors="ignore"), dict(info) if info else None)


_TEXT_BYTES = 400
"""Octets of a description: a frame has 512 at least."""
