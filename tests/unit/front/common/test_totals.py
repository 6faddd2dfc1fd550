"""Counters of channels, queues, exchanges and connections, and the totals that never fall."""

from __future__ import annotations

from harebell.base.counters import NAMES, Counters
from harebell.base.slices import at_once
from harebell.front.limits import STATISTICS_SLICE_OBJECTS
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def _counted(counters: Counters) -> dict[str, int]:
    """The counters that are not zero."""
    return {name: n for name, n in zip(NAMES, counters.values(), strict=True) if n}


def _total(world: World) -> dict[str, int]:
    total = Counters()
    for sums in at_once(world.registry.sums()).values():
        total.add(sums.counters)
    return _counted(total)


def _with_queue(world: World) -> OctetPeer:
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    return peer


def test_a_publish_counts_for_its_channel_its_exchange_and_its_queue() -> None:
    world = World()
    peer = _with_queue(world)
    peer.give(publish(b"1") + publish(b"2"))
    channel, queue = peer.connection.channels[1], world.broker.vhosts["/"].queues["q"]
    assert _counted(channel.counters) == {"publish": 2}
    assert _counted(queue.counters) == {"publish": 2}
    default = world.broker.vhosts["/"].exchanges[""]
    assert (default.published, default.routed) == (2, 2)


def test_an_exchange_counts_a_message_once_for_each_queue_that_gets_it() -> None:
    world = World()
    peer = _with_queue(world)
    peer.ask(m.QueueDeclare("other"))
    for name in ("q", "other"):
        peer.ask(m.QueueBind(queue=name, exchange="amq.fanout"))
    peer.give(publish(b"1", exchange="amq.fanout"))
    fanout = world.broker.vhosts["/"].exchanges["amq.fanout"]
    assert (fanout.published, fanout.routed) == (1, 2)


def test_unroutable_messages_count_as_returned_or_dropped() -> None:
    world = World()
    peer = _with_queue(world)
    peer.give(publish(b"1", key="none", mandatory=True) + publish(b"2", key="none"))
    expected = {"publish": 2, "return_unroutable": 1, "drop_unroutable": 1}
    assert _counted(peer.connection.channels[1].counters) == expected


def test_confirms_are_counted_by_publish_and_not_by_method() -> None:
    world = World()
    peer = _with_queue(world)
    peer.ask(m.ConfirmSelect())
    peer.give(publish(b"1") + publish(b"2") + publish(b"3"))
    assert peer.methods() == [m.BasicAck(3, True)]
    assert _counted(peer.connection.channels[1].counters) == {"publish": 3, "confirm": 3}


def test_deliveries_and_acknowledgements_count_for_queue_channel_and_consumer() -> None:
    world = World()
    peer = _with_queue(world)
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.give(publish(b"1") + publish(b"2") + publish(b"3"))
    peer.send(m.BasicAck(2, True))
    peer.send(m.BasicNack(3, False, True))
    peer.send(m.BasicAck(4, False))
    channel, queue = peer.connection.channels[1], world.broker.vhosts["/"].queues["q"]
    expected = {"publish": 3, "deliver": 4, "redeliver": 1, "ack": 3}
    assert _counted(channel.counters) == expected
    assert _counted(queue.counters) == expected
    details = channel.details.queues["q"]
    assert channel.consumers["c"].details is details
    assert _counted(details) == {"deliver": 4, "redeliver": 1, "ack": 3}


def test_deliveries_without_acknowledgement_have_a_counter_of_their_own() -> None:
    world = World()
    peer = _with_queue(world)
    peer.give(publish(b"1"))
    peer.send(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
    peer.give(publish(b"2"))
    assert _total(world) == {"publish": 2, "deliver_no_ack": 2}


def test_gets_are_counted_by_their_kind() -> None:
    world = World()
    peer = _with_queue(world)
    peer.give(publish(b"1") + publish(b"2"))
    peer.ask(m.BasicGet(queue="q", no_ack=True))
    peer.ask(m.BasicGet(queue="q"))
    peer.ask(m.BasicGet(queue="q"))
    peer.send(m.BasicAck(2))
    queue = world.broker.vhosts["/"].queues["q"]
    expected = {"publish": 2, "get": 1, "get_no_ack": 1, "get_empty": 1, "ack": 1}
    assert _counted(queue.counters) == _total(world) == expected


def test_totals_do_not_fall_when_queue_channel_and_connection_go() -> None:
    world = World()
    peer = _with_queue(world)
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.give(publish(b"1"))
    peer.send(m.BasicAck(1))
    before = _total(world)
    assert before == {"publish": 1, "deliver": 1, "ack": 1}
    peer.send(m.QueueDelete("q"))
    assert _total(world) == before
    peer.send(m.ChannelClose(200, "", 0, 0))
    assert _total(world) == before
    octets = peer.connection.traffic.recv_oct
    peer.connection.eof()
    assert not world.registry.connections
    assert _total(world) == before
    ((place, sums),) = at_once(world.registry.sums()).items()
    assert place == ("/", "0-9-1")
    assert sums.traffic.recv_oct == octets > 0


def test_a_connection_counts_its_octets_and_its_end_only_once() -> None:
    world = World()
    peer = world.peer()
    before = peer.connection.traffic.recv_oct
    assert before > 8
    heartbeat = b"\x08\0\0\0\0\0\0\xce"
    peer.give(heartbeat)
    assert peer.connection.traffic.recv_oct == before + len(heartbeat)
    assert peer.connection.traffic.send_oct > 0
    connection = peer.connection
    connection.eof()
    connection.eof()
    ended = at_once(world.registry.sums())[("/", "0-9-1")]
    assert ended.traffic.recv_oct == before + len(heartbeat)


def test_churn_counts_what_comes_and_goes() -> None:
    world = World()
    peer = _with_queue(world)
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.QueueDelete("q"))
    peer.connection.eof()
    churn = world.broker.churn
    assert {name: getattr(churn, name) for name in churn.NAMES} == {
        "connection_created": 1,
        "connection_closed": 1,
        "channel_created": 1,
        "channel_closed": 1,
        "queue_declared": 2,
        "queue_created": 1,
        "queue_deleted": 1,
    }


def test_objects_that_end_between_two_slices_of_a_count_are_counted_once() -> None:
    """Whether it was counted before or not, and with its connection or alone."""
    world = World()
    peers = []
    for _ in range(2 * STATISTICS_SLICE_OBJECTS):
        peer = world.peer()
        peer.give(publish(b"x"))
        peers.append(peer)
    whole = _total(world)
    assert whole == {"publish": len(peers), "drop_unroutable": len(peers)}
    octets = sum(peer.connection.traffic.recv_oct for peer in peers)
    count = world.registry.sums()
    next(count)
    for number, peer in enumerate(peers):
        if number % 2:
            peer.connection.channels[1].connection.eof()
        else:
            peer.send(m.ChannelClose(200, "", 0, 0))
    ((_, sums),) = at_once(count).items()
    assert _counted(sums.counters) == whole
    assert octets <= sums.traffic.recv_oct
    assert _total(world) == whole
