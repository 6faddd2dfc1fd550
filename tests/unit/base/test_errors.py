"""Errors carry what the layers above need to tell the peer."""

from __future__ import annotations

import pytest

from harebell.base.errors import (
    ConditionError,
    ErrorKind,
    HarebellError,
    ProtocolError,
    Refusal,
)
from harebell.base.limits import ERROR_TEXT_CHARACTERS


def test_a_refusal_carries_its_kind_and_text() -> None:
    refusal = Refusal(ErrorKind.NOT_FOUND, "no queue 'q'")
    assert (refusal.kind, refusal.text, str(refusal)) == (
        ErrorKind.NOT_FOUND,
        "no queue 'q'",
        "no queue 'q'",
    )


def test_a_protocol_error_closes_the_connection_unless_told_otherwise() -> None:
    error = ProtocolError(501, "bad frame")
    assert error.hard
    assert (error.code, error.class_id, error.method_id) == (501, 0, 0)
    assert not ProtocolError(404, "no", 50, 20, hard=False).hard


@pytest.mark.parametrize(
    "error", [Refusal(ErrorKind.NOT_ALLOWED, "x"), ProtocolError(530, "x")], ids=["model", "wire"]
)
def test_every_error_on_purpose_can_be_caught_as_one(error: Exception) -> None:
    assert isinstance(error, HarebellError)


def test_a_long_text_keeps_its_begin_and_its_end() -> None:
    text = "[" + "x" * 100_000 + "] are not recognised policy settings"
    for error in (
        Refusal(ErrorKind.PRECONDITION_FAILED, text),
        ProtocolError(406, text),
        ConditionError("amqp:invalid-field", text),
    ):
        assert error.text.startswith("[xxx")
        assert "... (100037 characters) ..." in error.text
        assert error.text.endswith("] are not recognised policy settings")
        assert str(error) == error.text
        assert len(error.text) < ERROR_TEXT_CHARACTERS + 40
