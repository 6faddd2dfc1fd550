"""Consumers: credit, congested output, starvation and relief."""

from __future__ import annotations

from harebell.front.limits import OUTPUT_HIGH_BYTES
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

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


def two_queues(world: World, together: int) -> OctetPeer:
    """A peer that consumes `bulk` and `urgent` on a channel with one limit, and has 100 in bulk."""
    peer = world.peer()
    for name in ("bulk", "urgent"):
        peer.ask(m.QueueDeclare(name))
    peer.give(b"".join(publish(b"bulk", key="bulk") for _ in range(100)))
    peer.ask(m.BasicQos(0, together, True))
    for name in ("bulk", "urgent"):
        peer.send(m.BasicConsume(name, name))
    return peer


def test_a_channel_wide_limit_lets_queues_take_turns() -> None:
    peer = two_queues(World(), 10)
    assert peer.bodies() == [b"bulk"] * 10
    peer.give(publish(b"urgent", key="urgent") * 3)
    got = []
    for tag in range(1, 8):
        peer.send(m.BasicAck(tag))
        got += peer.bodies()
    assert got == [b"bulk", b"urgent", b"bulk", b"urgent", b"bulk", b"urgent", b"bulk"]


def test_room_that_comes_at_once_is_shared_message_by_message() -> None:
    peer = two_queues(World(), 10)
    assert peer.bodies() == [b"bulk"] * 10
    peer.give(publish(b"urgent", key="urgent") * 20)
    peer.send(m.BasicAck(10, True))
    got = peer.bodies()
    assert [got.count(b"bulk"), got.count(b"urgent")] == [5, 5]


def test_requeued_messages_make_room_for_others_first() -> None:
    peer = two_queues(World(), 10)
    assert peer.bodies() == [b"bulk"] * 10
    peer.give(publish(b"urgent", key="urgent") * 3)
    peer.send(m.BasicNack(10, True, True))
    assert peer.bodies().count(b"urgent") == 3
    peer.send(m.BasicReject(13, True))
    peer.send(m.BasicRecover(True))
    assert len(peer.bodies()) == 11


def test_a_limit_of_its_own_keeps_a_consumer_from_no_turn_of_others() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("bulk"))
    peer.ask(m.QueueDeclare("urgent"))
    peer.ask(m.BasicQos(0, 2))
    peer.ask(m.BasicQos(0, 3, True))
    peer.send(m.BasicConsume("bulk", "bulk"))
    peer.send(m.BasicConsume("urgent", "urgent"))
    peer.give(publish(b"bulk", key="bulk") * 9 + publish(b"urgent", key="urgent") * 9)
    got = peer.bodies()
    assert got == [b"bulk", b"bulk", b"urgent"]
    for tag in range(1, 16):
        peer.send(m.BasicAck(tag))
        got += peer.bodies()
    assert [got.count(b"bulk"), got.count(b"urgent")] == [9, 9]


def test_cancelled_consumers_do_not_wait_for_their_turn() -> None:
    peer = two_queues(World(), 10)
    assert len(peer.bodies()) == 10
    for number in range(50):
        peer.send(m.BasicConsume("bulk", f"c{number}"))
        peer.send(m.BasicCancel(f"c{number}"))
    channel = peer.connection.channels[1]
    assert len(channel.waiting) <= 2 * len(channel.consumers) + 9
    peer.send(m.BasicCancel("bulk"))
    peer.give(publish(b"urgent", key="urgent"))
    peer.bodies()
    peer.send(m.BasicAck(1))
    assert peer.bodies() == [b"urgent"]


def test_consumers_of_one_channel_take_turns_when_the_output_is_full() -> None:
    world = World()
    peer, publisher = world.peer(), world.peer()
    names = [f"q{number}" for number in range(8)]
    for name in names:
        peer.ask(m.QueueDeclare(name))
    peer.connection.congested = True
    for name in names:
        peer.send(m.BasicConsume(name, name, no_ack=True))
    busy = {"q2": b"2", "q3": b"3"}
    count = 4 * OUTPUT_HIGH_BYTES // len(BIG)
    for name, body in busy.items():
        for _ in range(count):
            publisher.give(publish(body * len(BIG), key=name))
    peer.connection.congested = False
    got: list[bytes] = []
    for _ in range(4):
        peer.connection.relieved()
        got += [body[:1] for body in peer.bodies()]
    assert abs(got.count(b"2") - got.count(b"3")) <= 2
    assert got.count(b"2") > count // 4


def test_channels_of_one_connection_take_turns_when_the_output_is_full() -> None:
    world = World()
    peer, publisher = world.peer(), world.peer()
    peer.connection.congested = True
    for number in range(1, 9):
        if number > 1:
            peer.ask(m.ChannelOpen(), channel=number)
        peer.ask(m.QueueDeclare(f"q{number}"), channel=number)
        peer.ask(m.BasicConsume(f"q{number}", "c", no_ack=True), channel=number)
    count = 4 * OUTPUT_HIGH_BYTES // len(BIG)
    for number in (3, 4):
        for _ in range(count):
            publisher.give(publish(b"%d" % number * len(BIG), key=f"q{number}"))
    peer.connection.congested = False
    got: list[bytes] = []
    for _ in range(4):
        peer.connection.relieved()
        got += [body[:1] for body in peer.bodies()]
    assert abs(got.count(b"3") - got.count(b"4")) <= 2
    assert got.count(b"3") > count // 4
