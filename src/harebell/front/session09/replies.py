"""From the model's refusals and our own mistakes to AMQP 0-9-1 reply codes and scopes."""

from __future__ import annotations

from harebell.base.errors import ErrorKind, ProtocolError, Refusal

_CODES: dict[ErrorKind, tuple[int, bool]] = {
    ErrorKind.ACCESS_REFUSED: (403, False),
    ErrorKind.NOT_FOUND: (404, False),
    ErrorKind.RESOURCE_LOCKED: (405, False),
    ErrorKind.PRECONDITION_FAILED: (406, False),
    ErrorKind.RESOURCE_ERROR: (506, True),
    ErrorKind.NOT_ALLOWED: (530, True),
    ErrorKind.NOT_IMPLEMENTED: (540, True),
    ErrorKind.INTERNAL_ERROR: (541, True),
}
"""Kind -> reply code, and whether it closes the connection (AMQP 0-9-1 1.2, constants)."""


def reply_for(refusal: Refusal, class_id: int, method_id: int) -> ProtocolError:
    """The protocol error that tells a 0-9-1 peer of a refusal."""
    code, hard = _CODES[refusal.kind]
    return ProtocolError(code, refusal.text, class_id, method_id, hard)


def soft(code: int, text: str, class_id: int, method_id: int) -> ProtocolError:
    """An error that closes the channel."""
    return ProtocolError(code, text, class_id, method_id, hard=False)


def hard(code: int, text: str, class_id: int, method_id: int) -> ProtocolError:
    """An error that closes the connection."""
    return ProtocolError(code, text, class_id, method_id, hard=True)
