"""A connection that has ended goes by its reference count, with all that it had."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v09 import methods as m
from harebell.wire.v1.composites import Transfer
from harebell.wire.v1.frames import encode_frame
from tests.unit.front.amqp_0_9_1.world import EVERY_CAPABILITY, HEADER_0_9_1, World, publish
from tests.unit.front.amqp_1_0.peer import LinkPeer

HEADERS = [
    b"AMQP\x01\x01\x08\x00",
    b"AMQP\x01\x01\x00\x09",
    HEADER_0_9_1,
    b"AMQP\x01\x01\x63\x00",
    b"AMQP\x01\x01\x00\x0a",
    HEADER_1_0_SASL,
    HEADER_1_0,
]


@pytest.fixture
def saved() -> Iterator[list[object]]:
    """Whatever a collection finds from now on."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def count(kind: str) -> int:
    """How many objects of a class there are; tests before may have left some."""
    return sum(type(each).__qualname__ == kind for each in gc.get_objects())


def ours(saved: list[object]) -> set[str]:
    gc.collect()
    return {
        type(each).__qualname__ for each in saved if type(each).__module__.startswith("harebell")
    }


@pytest.mark.parametrize(
    "header", HEADERS, ids=["0-8", "0-9", "0-9-1", "0-10t", "0-10", "1.0", "1.0 bare"]
)
def test_a_connection_that_said_its_version_and_left_needs_no_collection(
    header: bytes, saved: list[object]
) -> None:
    world = World(anonymous_user="guest")
    peer = world.connect()
    peer.give(header)
    kind = type(peer.connection).__qualname__
    assert kind != "Arrival"
    before = count(kind)
    peer.connection.eof()
    world.registry.take_dirty()
    peer.connection.transport = None
    del peer
    assert ours(saved) == set()
    assert count(kind) < before


def test_a_connection_with_channels_consumers_and_deliveries_needs_no_collection(
    saved: list[object],
) -> None:
    world = World()
    peer = world.connect()
    peer.log_in(EVERY_CAPABILITY)
    peer.send(m.ChannelOpen(), m.QueueDeclare(queue="q"), m.ConfirmSelect())
    peer.send(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.give(publish(b"one") + publish(b"two")[:-3])
    world.turn()
    assert peer.frames()
    peer.connection.eof()
    world.registry.take_dirty()
    peer.connection.transport = None
    del peer
    assert ours(saved) == set()


def test_a_connection_with_links_and_deliveries_needs_no_collection(saved: list[object]) -> None:
    world = World(slow=True)
    peer = LinkPeer(world).open()
    peer.attach("/queue/q", 0)
    peer.receive("/queue/q", 1, credit=5)
    # Some is delivered, some waits for the disk, and one has come in part.
    for _ in range(600):
        peer.publish(b"one", durable=True)
    peer.give(encode_frame(Transfer(0, 600, b"t", 0, more=True).encoded() + b"\0\x53\x75"))
    assert peer.session.unacked.count == 5
    peer.connection.eof()
    world.registry.take_dirty()
    peer.connection.transport = None
    del peer
    assert ours(saved) == set()
