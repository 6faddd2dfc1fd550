"""Errors of all layers.

There are three kinds (docs/internals/wire.md). The model refuses with a `Refusal`, which knows no
protocol version. The wire and the front raise `ProtocolError`, which carries an AMQP reply code, or
`ConditionError`, which carries the symbol that AMQP 1.0 has instead. Any other exception is a bug
of Harebell and closes the connection with 541.
"""

from __future__ import annotations

import enum

from harebell.base.limits import ERROR_TEXT_CHARACTERS


class ErrorKind(enum.Enum):
    """Reasons of refusals, independent of protocol versions."""

    ACCESS_REFUSED = "access refused"
    NOT_FOUND = "not found"
    NO_QUEUE_NAMED = "no queue named"
    RESOURCE_LOCKED = "resource locked"
    PRECONDITION_FAILED = "precondition failed"
    INVALID_ARGUMENT = "invalid argument"
    NOT_ALLOWED = "not allowed"
    NOT_IMPLEMENTED = "not implemented"
    RESOURCE_ERROR = "resource error"
    INTERNAL_ERROR = "internal error"
    LOST = "lost"
    GENERATION_CHANGED = "generation changed"
    RANGE_GONE = "range gone"
    RECORD_DAMAGED = "record damaged"
    FENCED = "fenced"


def shortened(text: str, characters: int = ERROR_TEXT_CHARACTERS) -> str:
    """Return a text for people without its middle, if it is long: it may repeat what was sent.

    Its begin says what is wrong, and its end what to do.
    """
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}... ({len(text)} characters) ...{text[-half:]}"


class HarebellError(Exception):
    """Base of every error that Harebell raises on purpose."""


class StoreError(HarebellError):
    """The stored data cannot be used; the text is a sentence for the user."""


class DiskError(StoreError):
    """The disk failed: a read or a sync returned an error."""


class BatchError(HarebellError, ValueError):
    """Rows that cannot become messages; the text says which row and why."""


class Refusal(HarebellError):
    """The model refuses an operation.

    Args:
        kind: the neutral reason; the front maps it to a reply code and a scope.
        text: the explanation with the name of the resource, without the name of the reply code.
    """

    def __init__(self, kind: ErrorKind, text: str) -> None:
        text = shortened(text)
        super().__init__(text)
        self.kind = kind
        self.text = text


class ProtocolError(HarebellError):
    """The peer violated the protocol, or requested what this version refuses.

    Args:
        code: AMQP reply code (0-9-1 section 1.2 of the XML, "constants").
        text: the explanation without the code's name.
        class_id: the class of the failed method, 0 if there is none.
        method_id: the failed method, 0 if there is none.
        hard: True closes the connection, False only the channel.
    """

    def __init__(
        self, code: int, text: str, class_id: int = 0, method_id: int = 0, hard: bool = True
    ) -> None:
        text = shortened(text)
        super().__init__(text)
        self.code = code
        self.text = text
        self.class_id = class_id
        self.method_id = method_id
        self.hard = hard


class ConditionError(HarebellError):
    """The peer violated AMQP 1.0, or requested what is refused.

    Args:
        condition: the symbol of the error (AMQP 1.0 2.8.14 to 2.8.18), as "amqp:not-found".
        text: the explanation without the condition.
    """

    def __init__(self, condition: str, text: str) -> None:
        text = shortened(text)
        super().__init__(text)
        self.condition = condition
        self.text = text


class DecodeError(ConditionError):
    """Octets of AMQP 1.0 that are no value, composite or message; the text names the field."""

    def __init__(self, text: str) -> None:
        super().__init__("amqp:decode-error", text)


class FramingError(ConditionError):
    """A frame of AMQP 1.0 that is malformed, too large, or of a type that may not come."""

    def __init__(self, text: str) -> None:
        super().__init__("amqp:connection:framing-error", text)
