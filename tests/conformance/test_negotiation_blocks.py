"""A client that keeps causing exceptions during negotiation is turned away for a while."""

from __future__ import annotations

import pytest

from harebell.front.limits import NEGOTIATION_BLOCK_SECONDS, NEGOTIATION_FAILURES
from harebell.wire.v09 import methods as m
from tests.conformance.conftest import Connect
from tests.conformance.frames import PROTOCOL_HEADER
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

pytestmark = pytest.mark.rule("0-9-1#058")


def _wrong_header(connect: Connect) -> None:
    peer = connect()
    peer.send_bytes(b"AMQP\x09\x09\x09\x09")
    assert peer.wire.read(0.0) == PROTOCOL_HEADER


def _wrong_mechanism(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.send(m.ConnectionStartOk({}, "KERBEROS", b"", "en_US"))
    peer.expect_closed()


def _wrong_vhost(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(0, 0, 0), m.ConnectionOpen("missing"))
    peer.expect_connection_close(530, "NOT_ALLOWED - vhost missing not found", "connection.open")


@pytest.mark.parametrize("fail", [_wrong_header, _wrong_mechanism, _wrong_vhost])
def test_an_address_that_keeps_failing_is_not_answered_for_a_while(
    memory: MemorySite, connect_memory: Connect, fail: object
) -> None:
    assert callable(fail)
    for _ in range(NEGOTIATION_FAILURES):
        fail(connect_memory)
    assert memory.logged("127.0.0.1", "not served for")
    connect_memory().expect_closed()
    other = Peer(memory, memory.connect("10.1.2.3"))
    other.greet()
    other.wire.drop()
    memory.now += NEGOTIATION_BLOCK_SECONDS
    connect_memory().open()


def test_a_connection_that_is_open_is_not_touched_and_forgives_its_address(
    memory: MemorySite, connect_memory: Connect
) -> None:
    early = connect_memory().open()
    for _ in range(NEGOTIATION_FAILURES - 1):
        _wrong_header(connect_memory)
    connect_memory().open()
    for _ in range(NEGOTIATION_FAILURES - 1):
        _wrong_header(connect_memory)
    connect_memory().open()
    early.queue("q")


def test_errors_on_an_open_connection_are_no_failures_of_negotiation(
    memory: MemorySite, connect_memory: Connect
) -> None:
    for _ in range(NEGOTIATION_FAILURES):
        peer = connect_memory().open()
        peer.send(m.BasicQos(1, 0))
        peer.expect_connection_close(540, "NOT_IMPLEMENTED - prefetch_size!=0 (1)", "basic.qos")
    assert len(memory.registry.handshake_throttle) == 0
    connect_memory().open()
