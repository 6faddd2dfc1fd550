"""A connection ends in slices, however its consumers and deliveries are spread over channels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from harebell.wire.v010 import commands as c010
from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c1
from harebell.wire.v1.frames import encode_frame
from tests.unit.front.amqp_0_9_1.world import World, publish
from tests.unit.front.amqp_0_10.peer import SessionPeer
from tests.unit.front.amqp_1_0.peer import LinkPeer
from tests.unit.model.things import rest

CHANNELS, CONSUMERS, MESSAGES = 120, 10, 900
UNITS = 300


def of_0_9_1(world: World) -> Any:
    peer = world.peer()
    for channel in range(1, CHANNELS + 1):
        opening = [m.ChannelOpen()] if channel > 1 else []
        consuming = [m.BasicConsume("q", f"c{n}", nowait=True) for n in range(CONSUMERS)]
        peer.send(*opening, m.BasicQos(prefetch_count=1), *consuming, channel=channel)
    return peer.connection


def of_0_10(world: World) -> Any:
    peer = SessionPeer(world).open()
    for channel in range(1, CHANNELS + 1):
        peer.attach(b"s%d" % channel, channel=channel)
        for n in range(CONSUMERS):
            flows = (c010.MessageFlow(f"t{n}", 0, 1), c010.MessageFlow(f"t{n}", 1, 0xFFFF_FFFF))
            peer.ask(c010.MessageSubscribe("q", f"t{n}", 0, 0), *flows, channel=channel)
    return peer.connection


def of_1_0(world: World) -> Any:
    peer = LinkPeer(world).open()
    for channel in range(1, CHANNELS + 1):
        asked: list[Any] = [c1.Begin(None, 0, 2048, 2048)]
        for n in range(CONSUMERS):
            name, source = f"r{channel}-{n}", c1.Source("/queues/q")
            asked.append(c1.Attach(name, n, True, source=source, target=c1.Target()))
            asked.append(c1.Flow(0, 2048, 0, 2048, n, 0, 1))
        peer.give(b"".join(encode_frame(each.encoded(), channel) for each in asked))
    return peer.connection


@pytest.mark.parametrize("version", [of_0_9_1, of_0_10, of_1_0])
def test_what_many_channels_have_goes_in_slices_and_comes_back_in_order(
    version: Callable[[World], Any],
) -> None:
    world = World()
    world.users.add("ann", "ann", vhosts=("/",))
    other = world.connect()
    other.log_in({}, user=b"ann")
    other.send(m.ChannelOpen(), m.QueueDeclare("q"))
    connection = version(world)
    other.give(b"".join(publish(b"%d" % n) for n in range(MESSAGES)))
    queue = world.broker.vhosts["/"].queues["q"]
    everything = CHANNELS * CONSUMERS
    assert (len(queue.consumers), queue.unacked) == (everything, MESSAGES)
    connection.take_output(world.now)
    world.limit(UNITS)
    left = [everything + MESSAGES]
    connection.eof()
    left.append(len(queue.consumers) + queue.unacked)
    other.give(publish(b"more"))
    while world.woken:
        world.next_turn()
        left.append(len(queue.consumers) + queue.unacked)
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) <= UNITS
    assert connection.out.size == 0
    assert connection.channels == {}
    assert rest(queue) == [*(b"%d" % n for n in range(MESSAGES)), b"more"]


def test_the_name_of_a_session_is_free_when_its_connection_is_lost() -> None:
    world = World()
    world.limit(UNITS)
    peer = SessionPeer(world).open()
    for channel in range(1, CHANNELS + 1):
        peer.attach(b"s%d" % channel, channel=channel)
        while world.woken:
            world.next_turn()
    peer.connection.eof()
    assert world.woken, "sessions are left to be ended"
    assert not world.registry.named_sessions
    while world.woken:
        world.next_turn()
    assert peer.connection.channels == {}
