"""Turn the model's refusals and internal errors into reply codes and scopes.

The front uses the errors of 0-9-1; `Errors` translates them into those of another version.
"""

from __future__ import annotations

from collections.abc import Mapping

from harebell.base.errors import ErrorKind, ProtocolError, Refusal
from harebell.wire.v09.reply_codes import reply_text

_CODES: dict[ErrorKind, tuple[int, bool]] = {
    ErrorKind.ACCESS_REFUSED: (403, False),
    ErrorKind.NOT_FOUND: (404, False),
    ErrorKind.NO_QUEUE_NAMED: (404, False),
    ErrorKind.RESOURCE_LOCKED: (405, False),
    ErrorKind.PRECONDITION_FAILED: (406, False),
    ErrorKind.INVALID_ARGUMENT: (406, False),
    # 409 to 413 are Harebell's own: 0-9-1 1.2 has no constants for such refusals.
    ErrorKind.GENERATION_CHANGED: (409, False),
    ErrorKind.RANGE_GONE: (410, False),
    ErrorKind.RECORD_DAMAGED: (411, False),
    ErrorKind.RESOURCE_ERROR: (506, True),
    ErrorKind.NOT_ALLOWED: (530, True),
    ErrorKind.NOT_IMPLEMENTED: (540, True),
    ErrorKind.INTERNAL_ERROR: (541, True),
    ErrorKind.FENCED: (412, False),
    ErrorKind.LOST: (413, False),
}
"""Kind -> reply code, and whether it closes the connection (AMQP 0-9-1 1.2, constants)."""


def reply_for(refusal: Refusal, class_id: int, method_id: int) -> ProtocolError:
    """Make the protocol error of 0-9-1 for a refusal."""
    code, hard = _CODES[refusal.kind]
    return ProtocolError(code, refusal.text, class_id, method_id, hard)


def soft(code: int, text: str, class_id: int, method_id: int) -> ProtocolError:
    """Make an error that closes the channel."""
    return ProtocolError(code, text, class_id, method_id, hard=False)


def hard(code: int, text: str, class_id: int, method_id: int) -> ProtocolError:
    """Make an error that closes the connection."""
    return ProtocolError(code, text, class_id, method_id, hard=True)


FailedMethod = tuple[int, int, int]
"""Class and method that failed, and the reply code of 0-9-1."""


class Errors:
    """The reply codes of a version.

    Args:
        names: its reply codes and their names.
        changes: reply code of 0-9-1 -> reply code here, and whether it closes the connection.
        places: the same for single methods; it comes first.
        kinds: the same for refusals of a kind; it comes before everything.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        changes: Mapping[int, tuple[int, bool]] | None = None,
        places: Mapping[FailedMethod, tuple[int, bool]] | None = None,
        kinds: Mapping[ErrorKind, tuple[int, bool]] | None = None,
    ) -> None:
        self._names = names
        self._changes = changes or {}
        self._places = places or {}
        self._kinds = kinds or {}

    def reply(self, refusal: Refusal, class_id: int, method_id: int) -> ProtocolError:
        """Make the protocol error of this version for a refusal."""
        change = self._kinds.get(refusal.kind)
        if change is not None:
            code, is_hard = change
            return ProtocolError(code, refusal.text, class_id, method_id, is_hard)
        return self.translated(reply_for(refusal, class_id, method_id))

    def translated(self, error: ProtocolError) -> ProtocolError:
        """Translate an error of 0-9-1 into this version."""
        change = self._places.get((error.class_id, error.method_id, error.code))
        if change is None:
            change = self._changes.get(error.code)
        if change is None:
            return error
        code, hard = change
        return ProtocolError(code, error.text, error.class_id, error.method_id, hard)

    def text(self, error: ProtocolError) -> str:
        """Make the reply text of a translated error."""
        return reply_text(error.code, error.text, self._names)


def describe(error: BaseException) -> str:
    """Describe an unexpected error and where it was raised, for the log."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} at {' < '.join(reversed(places))}"
