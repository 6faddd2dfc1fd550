"""Consumers: credit, congested output, starvation and relief."""

from __future__ import annotations

from harebell.base.limits import OUTPUT_HIGH_BYTES
from harebell.wire.v09 import methods as m
from tests.unit.front.session09.world import OctetPeer, World, publish

BIG = b"x" * 100_000


def consuming(world: World, prefetch: int = 0, no_ack: bool = True) -> OctetPeer:
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    if prefetch:
        peer.ask(m.BasicQos(0, prefetch))
    assert peer.ask(m.BasicConsume("q", "tag", no_ack=no_ack)) == m.BasicConsumeOk("tag")
    return peer


def test_a_consumer_gets_what_its_prefetch_allows_and_more_when_it_acknowledges() -> None:
    world = World()
    peer = consuming(world, prefetch=2, no_ack=False)
    peer.give(b"".join(publish(b"%d" % number) for number in range(5)))
    assert peer.bodies() == [b"0", b"1"]
    peer.send(m.BasicAck(1))
    assert peer.bodies() == [b"2"]
    peer.send(m.BasicAck(3, True))
    assert peer.bodies() == [b"3", b"4"]


def test_full_output_starves_a_consumer_and_messages_stay_in_the_queue() -> None:
    world = World()
    consumer, publisher = consuming(world), world.peer()
    count = OUTPUT_HIGH_BYTES // len(BIG) + 10
    for _ in range(count):
        publisher.give(publish(BIG))
    assert consumer.connection.out.size < OUTPUT_HIGH_BYTES + len(BIG) + 1000
    assert consumer.connection.starved
    waiting = world.broker.vhosts["/"].queues["q"].ready_count()
    assert waiting > 0
    got = len(consumer.bodies())
    assert got + waiting == count
    world.turn()
    consumer.connection.relieved()
    assert len(consumer.bodies()) == waiting


def test_a_congested_consumer_gets_nothing_until_the_peer_reads_again() -> None:
    world = World()
    consumer, publisher = consuming(world), world.peer()
    consumer.connection.congested = True
    publisher.give(publish(b"1") + publish(b"2"))
    consumer.connection.relieved()
    assert consumer.frames() == []
    consumer.connection.congested = False
    consumer.connection.relieved()
    assert consumer.bodies() == [b"1", b"2"]


def test_another_consumer_takes_what_a_congested_one_cannot() -> None:
    world = World()
    slow, fast = consuming(world), consuming(world)
    slow.connection.congested = True
    world.peer().give(publish(b"1") + publish(b"2"))
    assert slow.frames() == []
    assert fast.bodies() == [b"1", b"2"]


def test_a_deleted_queue_cancels_consumers_that_want_to_know() -> None:
    world = World()
    told = consuming(world)
    deaf = world.peer(capabilities={})
    deaf.ask(m.BasicConsume("q", "deaf"))
    world.peer().ask(m.QueueDelete("q"))
    assert told.methods() == [m.BasicCancel("tag", True)]
    assert deaf.methods() == []
    assert deaf.ask(m.BasicQos(0, 1)) == m.BasicQosOk()


def test_messages_fetched_with_get_do_not_count_against_the_channels_prefetch() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.BasicQos(0, 2, True))
    peer.give(b"".join(publish(b"%d" % number) for number in range(6)))
    for _ in range(2):
        peer.send(m.BasicGet("q"))
    assert peer.bodies() == [b"0", b"1"]
    peer.send(m.BasicConsume("q", "tag"))
    assert peer.bodies() == [b"2", b"3"]
    peer.send(m.BasicAck(3))
    assert peer.bodies() == [b"4"]


def test_deliveries_acknowledged_in_a_transaction_free_the_prefetch_at_its_commit() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.BasicQos(0, 1, True))
    peer.ask(m.TxSelect())
    world.peer().give(publish(b"1") + publish(b"2"))
    peer.send(m.BasicConsume("q", "tag"))
    assert peer.bodies() == [b"1"]
    peer.send(m.BasicAck(1))
    assert peer.bodies() == []
    peer.send(m.TxCommit())
    assert peer.bodies() == [b"2"]
