"""The class message as typed methods, in the octets of the client of 2007."""

from __future__ import annotations

from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.methods_message import MessageTransfer
from harebell.wire.v09.transitional_types import INLINE, REFERENCE, Body


def test_a_transfer_looks_as_the_client_of_2007_wrote_it():
    octets = SPEC.encode(MessageTransfer(routing_key="full", body=Body(INLINE, b"")))
    assert octets.startswith(bytes.fromhex("0078000a00000000"))
    assert octets.endswith(bytes.fromhex("000000000000000000"))
    assert b"\x04full" in octets


def test_a_body_by_reference_begins_with_one():
    octets = SPEC.encode(MessageTransfer(body=Body(REFERENCE, b"dummy")))
    assert octets.endswith(b"\x01\x00\x00\x00\x05dummy")
    assert SPEC.decode(octets).body == Body(REFERENCE, b"dummy")
