"""The methods of transitional 0-10 as typed values, in the octets of the client of 2007."""

from __future__ import annotations

from harebell.wire.v09 import methods_transitional as m
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.transitional_types import INLINE, REFERENCE, Body


def test_a_flush_has_the_octets_of_the_client_of_2007():
    assert SPEC.encode(m.ExecutionFlush()) == bytes.fromhex("008c000a")


def test_missing_parts_of_a_binding_are_five_bits_of_one_octet():
    answer = m.BindingQueryOk(exchange_not_found=True, args_not_matched=True)
    assert SPEC.encode(answer) == bytes.fromhex("0082000b11")


def test_dtx_has_two_classes_that_are_named_by_two_words():
    assert SPEC.named("dtx-demarcation.start").type is m.DtxDemarcationStart
    assert SPEC.named("dtx-coordination.get-timeout-ok").type is m.DtxCoordinationGetTimeoutOk


def test_a_transfer_looks_as_the_client_of_2007_wrote_it():
    octets = SPEC.encode(m.MessageTransfer(routing_key="full", body=Body(INLINE, b"")))
    assert octets.startswith(bytes.fromhex("0078000a00000000"))
    assert octets.endswith(bytes.fromhex("000000000000000000"))
    assert b"\x04full" in octets


def test_a_body_by_reference_begins_with_one():
    octets = SPEC.encode(m.MessageTransfer(body=Body(REFERENCE, b"dummy")))
    assert octets.endswith(b"\x01\x00\x00\x00\x05dummy")
    assert SPEC.decode(octets).body == Body(REFERENCE, b"dummy")
