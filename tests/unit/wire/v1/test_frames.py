"""Frames of AMQP 1.0 outside of the kernels."""

from __future__ import annotations

import pytest

from harebell.wire.v1.frames import AMQP, EMPTY, SASL, encode_frame, unexpected_type


@pytest.mark.rule("1.0#018", "1.0#021")
def test_a_frame_has_size_data_offset_type_and_channel() -> None:
    assert encode_frame(b"body", 258) == b"\0\0\0\x0c\2\0\1\2body"
    assert encode_frame(b"body", kind=SASL) == b"\0\0\0\x0c\2\1\0\0body"
    assert encode_frame(b"") == EMPTY


@pytest.mark.rule("1.0#022")
def test_a_frame_of_another_type_is_named_as_rabbitmq_does() -> None:
    error = unexpected_type(1, AMQP)
    assert error.condition == "amqp:connection:framing-error"
    assert error.text == "unexpected frame type 1 in amqp mode (expected 0)"
    assert unexpected_type(0, SASL).text == "unexpected frame type 0 in sasl mode (expected 1)"
