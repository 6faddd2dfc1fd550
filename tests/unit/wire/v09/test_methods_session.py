"""Sessions, execution, queries and dtx as typed methods."""

from __future__ import annotations

from harebell.wire.v09 import methods_session as m
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC


def test_a_flush_has_the_octets_of_the_client_of_2007():
    assert SPEC.encode(m.ExecutionFlush()) == bytes.fromhex("008c000a")


def test_what_a_binding_lacks_is_five_bits_of_one_octet():
    answer = m.BindingQueryOk(exchange_not_found=True, args_not_matched=True)
    assert SPEC.encode(answer) == bytes.fromhex("0082000b11")


def test_dtx_has_two_classes_that_are_named_by_two_words():
    assert SPEC.named("dtx-demarcation.start").type is m.DtxDemarcationStart
    assert SPEC.named("dtx-coordination.get-timeout-ok").type is m.DtxCoordinationGetTimeoutOk
