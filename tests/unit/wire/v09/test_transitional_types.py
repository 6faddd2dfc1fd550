"""Data types that only transitional 0-10 has: serial numbers and sets of them, UUIDs, bodies."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.methods_transitional import (
    ExecutionComplete,
    MessageTransfer,
    SessionAck,
    SessionAttached,
    SessionResume,
)
from harebell.wire.v09.transitional_types import INLINE, Body


def test_a_body_of_a_third_kind_is_a_syntax_error():
    octets = bytearray(SPEC.encode(MessageTransfer(body=Body(INLINE, b""))))
    octets[-5] = 2
    with pytest.raises(ProtocolError, match="neither inline") as caught:
        SPEC.decode(bytes(octets))
    assert caught.value.code == 502


def test_flush_and_complete_have_the_octets_of_the_client_of_2007():
    octets = SPEC.encode(ExecutionComplete(7, ((9, 9), (11, 13))))
    assert octets == bytes.fromhex("008c001400000007000400000009000000090000000b0000000d")
    assert SPEC.decode(octets) == ExecutionComplete(7, ((9, 9), (11, 13)))


def test_a_set_of_an_odd_count_is_not_allowed():
    octets = bytes.fromhex("008c001400000007000100000009")
    with pytest.raises(ProtocolError, match="pairs") as caught:
        SPEC.decode(octets)
    assert caught.value.code == 530


def test_a_set_that_runs_over_the_frame_is_a_syntax_error():
    with pytest.raises(ProtocolError) as caught:
        SPEC.decode(bytes.fromhex("008c001400000007000200000009"))
    assert caught.value.code == 502


@pytest.mark.parametrize("marks", [((1, 2**32),), ((-1, 2),)])
def test_a_serial_number_has_32_bits(marks: tuple[tuple[int, int], ...]):
    with pytest.raises(ValueError, match="between 0 and"):
        SPEC.encode(SessionAck(0, marks))


def test_a_session_id_is_read_bare_and_as_a_long_string():
    bare = bytes.fromhex("00140032") + bytes(range(16))
    assert SPEC.decode(bare) == SessionResume(bytes(range(16)))
    prefixed = bytes.fromhex("0014003200000010") + bytes(range(16))
    assert SPEC.decode(prefixed) == SessionResume(bytes(range(16)))


def test_a_session_id_is_written_bare():
    octets = SPEC.encode(SessionAttached(bytes(range(16)), 60))
    assert octets == bytes.fromhex("0014000b") + bytes(range(16)) + bytes.fromhex("0000003c")


def test_a_session_id_of_another_length_cannot_be_sent():
    with pytest.raises(ValueError, match="16 octets"):
        SPEC.encode(SessionAttached(b"short"))
