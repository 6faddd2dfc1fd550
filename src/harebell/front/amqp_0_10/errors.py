"""The errors of 0-10: codes of execution.exception and connection.close.

An error of a command ends only its session; malformed frames and login failures end the connection.
"""

from __future__ import annotations

from harebell.base.errors import ErrorKind, ProtocolError, Refusal

NORMAL = 200
CONNECTION_FORCED = 320
INVALID_PATH = 402
FRAMING_ERROR = 501

UNAUTHORIZED_ACCESS = 403
NOT_FOUND = 404
RESOURCE_LOCKED = 405
PRECONDITION_FAILED = 406
RESOURCE_DELETED = 408
ILLEGAL_STATE = 409
COMMAND_INVALID = 503
RESOURCE_LIMIT_EXCEEDED = 506
NOT_ALLOWED = 530
ILLEGAL_ARGUMENT = 531
NOT_IMPLEMENTED = 540
INTERNAL_ERROR = 541
INVALID_ARGUMENT = 542

NAMES = {
    UNAUTHORIZED_ACCESS: "unauthorized-access",
    NOT_FOUND: "not-found",
    RESOURCE_LOCKED: "resource-locked",
    PRECONDITION_FAILED: "precondition-failed",
    RESOURCE_DELETED: "resource-deleted",
    ILLEGAL_STATE: "illegal-state",
    COMMAND_INVALID: "command-invalid",
    RESOURCE_LIMIT_EXCEEDED: "resource-limit-exceeded",
    NOT_ALLOWED: "not-allowed",
    ILLEGAL_ARGUMENT: "illegal-argument",
    NOT_IMPLEMENTED: "not-implemented",
    INTERNAL_ERROR: "internal-error",
    INVALID_ARGUMENT: "invalid-argument",
}
"""The codes of execution.exception."""

CLOSE_NAMES = {
    CONNECTION_FORCED: "connection-forced",
    INVALID_PATH: "invalid-path",
    FRAMING_ERROR: "framing-error",
}
"""The codes of connection.close that say that something is wrong."""

_KINDS = {
    ErrorKind.ACCESS_REFUSED: UNAUTHORIZED_ACCESS,
    ErrorKind.NOT_FOUND: NOT_FOUND,
    ErrorKind.RESOURCE_LOCKED: RESOURCE_LOCKED,
    ErrorKind.PRECONDITION_FAILED: PRECONDITION_FAILED,
    ErrorKind.INVALID_ARGUMENT: ILLEGAL_ARGUMENT,
    ErrorKind.NOT_ALLOWED: NOT_ALLOWED,
    ErrorKind.NOT_IMPLEMENTED: NOT_IMPLEMENTED,
    ErrorKind.RESOURCE_ERROR: RESOURCE_LIMIT_EXCEEDED,
    ErrorKind.INTERNAL_ERROR: INTERNAL_ERROR,
}
_OTHERS = {311: RESOURCE_LIMIT_EXCEEDED, 502: ILLEGAL_ARGUMENT, 504: ILLEGAL_STATE}
"""Codes of 0-9-1, of which code that serves several versions may speak."""


class ExecutionError(ProtocolError):
    """A command failed: its session ends.

    Args:
        code: of execution.exception.
        text: why.
        field: the number of the wrong field, from 0; None for none.
    """

    def __init__(self, code: int, text: str, field: int | None = None) -> None:
        super().__init__(code, text, hard=False)
        self.field = field


class DetachError(ProtocolError):
    """The session must leave its channel for a reason that is not a command.

    Args:
        code: of session.detached.
        text: why, for the log.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text, hard=False)


def execution_code(error: Refusal | ProtocolError) -> int:
    """Return the code of execution.exception for an error."""
    if isinstance(error, Refusal):
        return _KINDS[error.kind]
    code = _OTHERS.get(error.code, error.code)
    return code if code in NAMES else INTERNAL_ERROR


def described(code: int, text: str) -> str:
    """Return the description of an exception, which begins with the name of its code."""
    return encodable(f"{NAMES[code]}: {text}")


def encodable(text: str) -> str:
    """Escape surrogates: a name in the text may come from bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def close_text(code: int, text: str) -> str:
    """Return the reply text of a connection.close, cut to the 255 bytes of a str8."""
    name = CLOSE_NAMES.get(code)
    full = encodable(text if name is None else f"{name}: {text}")
    data = full.encode()
    return full if len(data) <= _REPLY_TEXT else _cut(data)


_REPLY_TEXT = 255


def _cut(data: bytes) -> str:
    return data[: _REPLY_TEXT - 3].decode(errors="ignore") + "..."


def connection_error(code: int, text: str) -> ProtocolError:
    """Make an error that ends the connection; `code` is one of connection.close."""
    return ProtocolError(code, text)


def framing(text: str) -> ProtocolError:
    """Make the error for invalid frames and controls."""
    return ProtocolError(FRAMING_ERROR, text)


def unknown_commands(first: int, last: int) -> ExecutionError:
    """Make the error for a peer that refers to commands which were never sent."""
    return ExecutionError(INVALID_ARGUMENT, f"commands {first} to {last} were not sent")
