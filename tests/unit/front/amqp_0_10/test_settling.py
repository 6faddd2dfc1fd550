"""Thousands of deliveries are settled in slices, whatever ranges of numbers select them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.sequence import Sequence
from harebell.front.amqp_0_10.number_ranges import numbers_in
from harebell.model.limits import LETTER_UNITS
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.composites import Command
from harebell.wire.v010.structs import Acquired
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish
from tests.unit.front.amqp_0_10.peer import SessionPeer

COUNT = 3000
ALL = ((0, COUNT - 1),)
UNITS = 300
EXPLICIT, PRE_ACQUIRED, NOT_ACQUIRED = 0, 0, 1
WITHOUT_LIMIT = 0xFFFF_FFFF


def subscribed(world: World, acquire: int = PRE_ACQUIRED) -> SessionPeer:
    """A session that got all messages of a queue in commands 0 to COUNT - 1."""
    other = world.peer()
    other.ask(m.QueueDeclare(queue="q"))
    other.give(b"".join(publish(b"%d" % number) for number in range(COUNT)))
    peer = SessionPeer(world).open().attach()
    peer.ask(
        c.MessageSubscribe("q", "t", EXPLICIT, acquire),
        c.MessageFlow("t", 0, WITHOUT_LIMIT),
        c.MessageFlow("t", 1, WITHOUT_LIMIT),
        sync=True,
    )
    channel = peer.connection.channels[1]
    while max(channel.unacked.count, channel.shown.count) < COUNT:
        world.turn()
        peer.taken()
    return peer


def state(world: World) -> tuple[int, int]:
    """How many messages of the queue are ready, and how many are not settled."""
    queue = world.broker.vhosts["/"].queues["q"]
    return queue.ready_count(), queue.unacked


@pytest.mark.parametrize(
    ("command", "ready"),
    [
        (c.MessageAccept(ALL), 0),
        (c.MessageReject(ALL), 0),
        (c.MessageRelease(ALL), COUNT),
        (c.MessageAccept(((0, COUNT - 1),) * 50), 0),
    ],
)
def test_a_command_for_thousands_is_complete_when_all_are_settled(
    command: Command, ready: int
) -> None:
    world = World()
    peer = subscribed(world)
    peer.ask(c.MessageStop("t"), sync=True)
    assert state(world) == (0, COUNT)
    world.limit(UNITS)
    assert peer.ask(command, sync=True) == []
    assert 0 < state(world)[1] < COUNT
    turns = 0
    while world.turns():
        turns += 1
    answers = peer.taken()
    assert any(isinstance(each, k.SessionCompleted) for each in answers)
    assert state(world) == (ready, 0)


def test_thousands_are_acquired_in_slices_and_the_result_has_all() -> None:
    world = World()
    peer = subscribed(world, NOT_ACQUIRED)
    world.limit(UNITS)
    assert peer.ask(c.MessageAcquire(ALL), sync=True) == []
    assert 0 < state(world)[1] < COUNT
    while world.turns():
        pass
    (result,) = [each for each in peer.taken() if isinstance(each, c.ExecutionResult)]
    assert result == c.ExecutionResult(3, Acquired(ALL))
    assert state(world) == (0, COUNT)


def test_what_was_accepted_in_a_transaction_is_released_in_slices() -> None:
    world = World()
    peer = subscribed(world)
    peer.ask(c.MessageStop("t"), c.TxSelect(), c.MessageAccept(ALL), sync=True)
    while world.turns():
        pass
    world.limit(UNITS)
    peer.ask(c.MessageRelease(ALL), sync=True)
    assert state(world)[1] > 0
    while world.turns():
        pass
    assert state(world) == (COUNT, 0)
    peer.ask(c.TxRollback(), sync=True)
    assert state(world) == (COUNT, 0)


def test_the_end_of_the_session_between_two_slices_requeues_the_rest() -> None:
    world = World()
    peer = subscribed(world)
    world.limit(UNITS)
    peer.ask(c.MessageAccept(ALL), sync=True)
    left = state(world)[1]
    assert 0 < left < COUNT
    peer.connection.eof()
    while world.turns():
        pass
    ready, unacked = state(world)
    assert unacked == 0
    assert ready <= left
    assert peer.connection not in world.registry.connections


@given(
    st.sets(st.integers(0, 2000)),
    st.lists(st.tuples(st.integers(-5, 2000), st.integers(0, 500)), max_size=30),
)
def test_each_number_in_some_ranges_comes_once_and_in_order(
    members: set[int], spans: list[tuple[int, int]]
) -> None:
    sequence = Sequence()
    for number in sorted(members):
        sequence.put(number, "member")
    ranges = [(first, first + width) for first, width in spans]
    selected = [n for n in sorted(members) if any(low <= n <= high for low, high in ranges)]
    assert list(numbers_in(sequence, ranges)) == selected


class Counted(Sequence):
    """A sequence that counts searches."""

    searches = 0

    def next_from(self, number: int) -> int:
        self.searches += 1
        return super().next_from(number)


def test_thousands_of_overlapping_ranges_cost_what_their_numbers_do() -> None:
    sequence = Counted()
    for number in range(1000):
        sequence.put(number, "member")
    sequence.put(10**12, "member")
    ranges = [(0, 10**13 + each) for each in range(5000)] + [(5000, 6000)] * 3000
    assert len(list(numbers_in(sequence, ranges))) == 1001
    assert sequence.searches <= 1003


def test_a_hundred_rejected_messages_become_dead_letters_as_the_budget_allows() -> None:
    world = World()
    other = world.peer()
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    other.ask(m.QueueDeclare(queue="dead"))
    other.ask(m.QueueDeclare(queue="q", arguments=given))
    other.give(b"".join(publish(b"%d" % number) for number in range(100)))
    peer = SessionPeer(world).open().attach()
    peer.ask(
        c.MessageSubscribe("q", "t", EXPLICIT, PRE_ACQUIRED),
        c.MessageFlow("t", 0, WITHOUT_LIMIT),
        c.MessageFlow("t", 1, WITHOUT_LIMIT),
        sync=True,
    )
    assert peer.connection.channels[1].unacked.count == 100
    dead = world.broker.vhosts["/"].queues["dead"]
    world.limit(UNITS)
    peer.ask(c.MessageReject(((0, 99),)), sync=True)
    assert 0 < dead.ready_count() <= UNITS // LETTER_UNITS
    while world.turns():
        pass
    assert dead.ready_count() == 100
