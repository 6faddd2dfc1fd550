"""Thousands of deliveries are settled in slices, and a session may end between two of them."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.limits import RANGES_MAX
from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import DeliveryProperties
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import assembly
from tests.conformance.v010.talk import NOT_ACQUIRED, Talk, begin

COUNT = 3000
UNITS = 100


def filled(connect: Connect010, count: int = COUNT) -> None:
    talk = begin(connect())[0]
    talk.do(c.QueueDeclare("q"))
    for number in range(count):
        talk.peer.transfer("", b"%d" % number, DeliveryProperties(routing_key="q"))
    talk.sent += count
    talk.sync()


def queue(memory: MemorySite) -> Any:
    return memory.broker.vhosts["/"].queues["q"]


def test_an_end_between_two_slices_accepts_nothing_of_a_transaction(
    memory: MemorySite, memory010: Connect010
) -> None:
    filled(memory010)
    talk = begin(memory010())[0]
    talk.do(c.TxSelect())
    talk.subscribe("q")
    assert queue(memory).unacked == COUNT
    memory.registry.turns.limit(UNITS, lambda: None)
    talk.peer.send(c.MessageAccept(((0, COUNT - 1),)))
    assert memory.registry.turns.busy
    connection: Any = talk.peer.wire
    connection.connection.cut()
    memory.run_turns()
    assert (queue(memory).ready_count(), queue(memory).unacked) == (COUNT, 0)


@pytest.mark.parametrize("command", [c.MessageAccept, c.MessageReject, c.MessageRelease])
def test_thousands_of_single_numbers_are_settled_in_slices(
    memory: MemorySite, memory010: Connect010, command: Any
) -> None:
    filled(memory010)
    talk = begin(memory010())[0]
    talk.subscribe("q", credit=COUNT)
    memory.registry.turns.limit(UNITS, lambda: None)
    talk.peer.send(command(tuple((number, number) for number in range(0, COUNT, 2))))
    assert memory.run_turns() > 5
    assert queue(memory).unacked == COUNT // 2
    talk.sent += 1
    talk.sync()


def test_no_more_is_acquired_than_the_result_has_room_for(memory010: Connect010) -> None:
    count = 2 * RANGES_MAX + 20
    filled(memory010, count)
    first, second = (begin(memory010())[0] for _ in range(2))
    for talk in (first, second):
        talk.subscribe("q", acquire_mode=NOT_ACQUIRED)
        talk.got.clear()
    for low in (0, count // 2 - 1):
        _acquired(first, tuple((number, number) for number in range(low, low + count // 2, 2)))
    # Now every second message is left.
    everything = ((0, count - 1),)
    assert len(_acquired(second, everything)) == RANGES_MAX
    assert len(_acquired(second, everything)) == 10


def _acquired(talk: Talk, ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    acquired: tuple[tuple[int, int], ...] = talk.ask(c.MessageAcquire(ranges)).transfers
    return acquired


def test_transfers_to_exchanges_in_turn_are_all_accepted(memory010: Connect010) -> None:
    count = RANGES_MAX + 10
    talk = begin(memory010())[0]
    talk.do(c.ExchangeDeclare("a", "fanout"), c.ExchangeDeclare("b", "fanout"))
    talk.do(c.QueueDeclare("q"), c.ExchangeBind("q", "a", ""), c.ExchangeBind("q", "b", ""))
    talk.peer.send_bytes(
        *(
            assembly(c.MessageTransfer("ab"[number % 2], accept_mode=0), [], b"x", 1, False, 65535)
            for number in range(count)
        )
    )
    talk.sent += count
    talk.sync()
    accepts = [each for each in talk.others() if isinstance(each, c.MessageAccept)]
    assert sum(len(each.transfers) for each in accepts) == count
