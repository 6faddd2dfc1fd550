"""Methods, and ends of channels, that have thousands of things to remove: slice by slice."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish
from tests.unit.model.things import rest

UNITS = 300
BINDINGS = 2000


def bound(world: World) -> OctetPeer:
    """A peer with the exchange "wide" and so many bindings of it to the queue "q"."""
    peer = world.peer()
    peer.ask(m.ExchangeDeclare(exchange="wide", type="direct"))
    peer.ask(m.QueueDeclare(queue="q"))
    peer.send(
        *[
            m.QueueBind(queue="q", exchange="wide", routing_key=f"k{number}", nowait=True)
            for number in range(BINDINGS)
        ]
    )
    world.limit(UNITS)
    return peer


DELETIONS = pytest.mark.parametrize(
    ("deletion", "answer"),
    [
        (m.ExchangeDelete(exchange="wide"), m.ExchangeDeleteOk()),
        (m.QueueDelete(queue="q"), m.QueueDeleteOk(message_count=0)),
    ],
)


def neighbour(world: World) -> OctetPeer:
    """Another user's peer, with a channel."""
    world.users.add("ann", "ann", vhosts=("/",))
    peer = world.connect()
    peer.log_in({}, user=b"ann")
    peer.send(m.ChannelOpen())
    return peer


def left(world: World) -> int:
    vhost = world.broker.vhosts["/"]
    return sum(binding.destination.name == "q" for binding in vhost.bindings())


def assert_deleted(world: World) -> None:
    """Either the exchange or the queue is gone, and no binding is left."""
    vhost = world.broker.vhosts["/"]
    assert left(world) == 0
    assert ("wide" in vhost.exchanges) + ("q" in vhost.queues) == 1


@DELETIONS
def test_many_bindings_go_in_slices_and_what_follows_waits(
    deletion: m.Method, answer: m.Method
) -> None:
    world = World()
    peer = bound(world)
    peer.send(deletion, m.QueueDeclare(queue="next"))
    assert peer.methods() == []
    before = left(world)
    assert 0 < before < BINDINGS
    world.next_turn()
    assert 0 < left(world) < before
    assert world.turns() > 5
    assert peer.methods() == [answer, m.QueueDeclareOk("next", 0, 0)]
    assert_deleted(world)


@DELETIONS
def test_a_deletion_that_has_begun_is_carried_out_when_its_connection_is_lost(
    deletion: m.Method, answer: m.Method
) -> None:
    world = World()
    peer = bound(world)
    peer.send(deletion)
    peer.connection.eof()
    world.turns()
    assert_deleted(world)


@DELETIONS
def test_queues_that_others_delete_and_declare_meanwhile_stay_theirs(
    deletion: m.Method, answer: m.Method
) -> None:
    world = World()
    peer = bound(world)
    peer.send(deletion)
    vhost = world.broker.vhosts["/"]
    if isinstance(deletion, m.QueueDelete):
        vhost.delete_queue("q")
        vhost.declare_queue("q", arguments={"x-max-length": 7})
    else:
        vhost.delete_exchange("wide")
        vhost.declare_exchange("wide", "topic")
    vhost.bind("wide", vhost.queues["q"], "mine")
    world.turns()
    assert left(world) == 1
    assert peer.methods() == [answer]
    assert {"wide"} <= set(vhost.exchanges)
    assert {"q"} <= set(vhost.queues)


def test_a_queue_that_has_to_be_empty_stays_when_a_message_came_before_its_end() -> None:
    world = World()
    peer = bound(world)
    peer.send(m.QueueDelete(queue="q", if_empty=True))
    neighbour(world).give(publish(b"kept", "q"))
    world.turns()
    (closed,) = peer.methods()
    assert isinstance(closed, m.ChannelClose)
    assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 50, 40)
    assert "queue 'q' in vhost '/' not empty" in closed.reply_text
    assert world.broker.vhosts["/"].queues["q"].ready_count() == 1


def test_an_exchange_that_has_to_be_unused_is_refused_before_anything_goes() -> None:
    world = World()
    peer = bound(world)
    peer.send(m.ExchangeDelete(exchange="wide", if_unused=True))
    (closed,) = peer.methods()
    assert isinstance(closed, m.ChannelClose)
    assert "in use" in closed.reply_text
    assert left(world) == BINDINGS


def consuming(world: World, count: int) -> OctetPeer:
    """A peer with so many consumers of the queue "shared", which is auto-delete."""
    peer = world.peer()
    peer.ask(m.QueueDeclare("shared", auto_delete=True))
    peer.send(*[m.BasicConsume("shared", f"c{n}", nowait=True) for n in range(count)])
    world.limit(UNITS)
    return peer


def test_thousands_of_consumers_go_with_their_connection_in_slices_and_get_nothing_more() -> None:
    world = World()
    peer = consuming(world, 3000)
    queue = world.broker.vhosts["/"].queues["shared"]
    peer.connection.eof()
    assert 0 < len(queue.consumers) < 3000
    other = neighbour(world)
    other.send(m.BasicConsume("shared", "other", no_ack=True))
    other.give(publish(b"for others", "shared"))
    world.turn()
    world.turns()
    assert other.bodies() == [b"for others"]
    assert len(queue.consumers) == 1
    assert not queue.deleted


def test_an_auto_delete_queue_goes_with_the_last_of_thousands_of_consumers() -> None:
    world = World()
    peer = consuming(world, 3000)
    peer.send(m.ChannelClose(200, "done"), m.ChannelOpen(), channel=1)
    assert peer.methods() == []
    assert "shared" in world.broker.vhosts["/"].queues
    assert world.turns() > 5
    assert "shared" not in world.broker.vhosts["/"].queues
    assert peer.methods() == [m.ChannelCloseOk(), m.ChannelOpenOk()]


def test_deliveries_of_thousands_of_consumers_come_back_in_order() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.send(m.BasicQos(prefetch_count=1))
    peer.send(*[m.BasicConsume("q", f"c{n}", nowait=True) for n in range(1000)])
    peer.give(b"".join(publish(b"%d" % n, "q") for n in range(1500)))
    peer.frames()
    world.turn()
    queue = world.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (500, 1000)
    world.limit(UNITS)
    peer.connection.eof()
    world.turns()
    assert (queue.ready_count(), queue.unacked, len(queue.consumers)) == (1500, 0, 0)
    assert rest(queue) == [b"%d" % n for n in range(1500)]
