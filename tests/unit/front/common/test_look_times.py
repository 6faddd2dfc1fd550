"""When connections are looked at: the times stay with them, and nothing due is left out."""

from __future__ import annotations

import random

from harebell.front.common.look_times import LookTimes
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEARTBEAT
from tests.unit.front.amqp_0_9_1.world import World, frame


class Placed:
    """What has a place."""

    place = -1


def test_those_whose_time_has_come_are_due_however_others_come_and_go() -> None:
    rng = random.Random(7)
    known: dict[Placed, float] = {}
    times = LookTimes()
    for _ in range(5_000):
        what = rng.random()
        if what < 0.4 or not known:
            made = Placed()
            times.add(made)
            known[made] = 0.0
        elif what < 0.6:
            gone = rng.choice(list(known))
            times.remove(gone)
            del known[gone]
            assert gone.place == -1
            times.remove(gone)
            times.set(gone.place, 0.0)
        else:
            moved = rng.choice(list(known))
            known[moved] = rng.random()
            times.set(moved.place, known[moved])
        now = rng.random()
        assert set(times.due(now)) == {each for each, time in known.items() if time <= now}


def test_a_connection_that_rests_is_looked_at_when_its_heartbeat_is_due() -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    connection = peer.connection
    connection.tick(world.now)
    assert connection.next_look() == world.now + 5
    world.now += 5
    connection.tick(world.now)
    assert peer.frames() == [(HEARTBEAT, 0, b"")]
    assert connection.next_look() == world.now + 5
    # It has to be cut ten seconds after that, and is looked at then.
    world.now += 5
    connection.tick(world.now)
    peer.give(frame(HEARTBEAT, 0, b""))
    world.now += 10
    connection.tick(world.now)
    assert connection.next_look() == world.now + 5
    world.now += 9
    connection.tick(world.now)
    assert connection.next_look() == world.now + 1
    assert not connection.closing
    world.now += 1
    connection.tick(world.now)
    assert connection.closing


def test_a_heartbeat_that_is_written_behind_its_tick_does_not_put_the_next_one_off() -> None:
    world = World()
    peer = world.peer(heartbeat=1)
    for _ in range(4):
        world.now += 0.5
        tick = world.now
        peer.connection.tick(tick)
        # The turn goes on for a while until its output is written.
        world.now += 0.01
        assert peer.frames() == [(HEARTBEAT, 0, b"")]
        assert peer.connection.next_look() == tick + 0.5
        peer.give(frame(HEARTBEAT, 0, b""))
        world.now = tick


def test_a_connection_without_heartbeats_is_looked_at_when_its_handshake_would_be_over() -> None:
    world = World()
    connection = world.peer().connection
    assert connection.next_look() == connection.deadline
    connection.tick(connection.deadline)
    assert connection.next_look() == float("inf")


def test_a_connection_that_is_closed_is_looked_at_at_once() -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    times = world.registry.look_times
    times.set(peer.connection.place, peer.connection.next_look())
    assert times.due(world.now) == []
    peer.connection.force_close("enough", world.now)
    assert [type(each) for each in peer.methods()] == [m.ConnectionClose]
    assert times.due(world.now) == [peer.connection]
    assert peer.connection.next_look() == 0
