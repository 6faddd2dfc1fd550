"""More than a thousand deliveries are settled in slices, and count as complete when all are."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import consume, expect_transfer, transfer

COUNT = 1500
UNITS = 100


def unacked(memory: MemorySite) -> int:
    return memory.broker.vhosts["/"].queues["q"].unacked


def fill(peer: Peer) -> None:
    peer.queue("q")
    for number in range(COUNT):
        transfer(peer, "q", b"%d" % number)
    peer.settle()


@pytest.mark.parametrize("in_ranges", [False, True])
def test_thousands_of_completed_transfers_are_acknowledged_in_slices(
    memory: MemorySite, memory_peer: Peer, in_ranges: bool
) -> None:
    peer = memory_peer
    fill(peer)
    consume(peer, "q")
    for _ in range(COUNT):
        expect_transfer(peer)
    assert unacked(memory) == COUNT
    memory.registry.turns.limit(UNITS, lambda: None)
    last = peer.received()
    if in_ranges:
        peer.complete(last - COUNT, (last - COUNT + 2, last))
    else:
        peer.complete(last)
    assert in_ranges <= unacked(memory) < COUNT
    assert memory.run_turns() > 5
    assert unacked(memory) == in_ranges


@pytest.mark.parametrize("mixed", [False, True])
def test_an_acknowledgement_of_thousands_is_complete_when_all_are_settled(
    memory: MemorySite, memory_peer: Peer, mixed: bool
) -> None:
    peer = memory_peer
    fill(peer)
    if mixed:
        peer.queue("other")
        consume(peer, "other")
        transfer(peer, "other", b"x")
        expect_transfer(peer)
    for _ in range(COUNT):
        peer.get("q")
    memory.registry.turns.limit(UNITS, lambda: None)
    peer.send(m.BasicAck(delivery_tag=0, multiple=True))
    peer.send(s.ExecutionFlush())
    assert 0 < unacked(memory) < COUNT
    assert memory.run_turns() > 5
    assert unacked(memory) == 0
    peer.expect(s.ExecutionComplete, cumulative_execution_mark=peer.sent())
    if mixed:
        assert memory.broker.vhosts["/"].queues["other"].unacked == 1


@pytest.mark.parametrize("basic", [False, True])
def test_an_end_between_two_slices_acknowledges_nothing_of_a_transaction(
    memory: MemorySite, memory_peer: Peer, basic: bool
) -> None:
    peer = memory_peer
    fill(peer)
    peer.run(m.TxSelect())
    if basic:
        for _ in range(COUNT):
            peer.get("q")
    else:
        consume(peer, "q")
        for _ in range(COUNT):
            expect_transfer(peer)
    memory.registry.turns.limit(UNITS, lambda: None)
    if basic:
        peer.send(m.BasicAck(delivery_tag=0, multiple=True))
    else:
        peer.complete(peer.received())
    assert memory.registry.turns.busy
    connection: Any = peer.wire
    connection.connection.cut()
    memory.run_turns()
    queue = memory.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (COUNT, 0)
    peer.ended = True


@pytest.mark.parametrize("requeue", [False, True])
def test_thousands_of_transfers_are_recovered_in_slices_and_in_order(
    memory: MemorySite, memory_peer: Peer, requeue: bool
) -> None:
    peer = memory_peer
    fill(peer)
    consume(peer, "q")
    for _ in range(COUNT):
        expect_transfer(peer)
    memory.registry.turns.limit(UNITS, lambda: None)
    peer.send(s.MessageRecover(requeue=requeue))
    assert memory.run_turns() > 5
    for number in range(COUNT):
        expect_transfer(peer, b"%d" % number, redelivered=True)
        memory.run_turns()
    peer.complete(peer.received())
    memory.run_turns()
    assert unacked(memory) == 0
    assert memory.broker.vhosts["/"].queues["q"].ready_count() == 0
