"""Thousands of deliveries are settled in slices, and what follows waits for their end."""

from __future__ import annotations

import pytest

from harebell.model.limits import LETTER_UNITS
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, fill, publish, ready

UNITS = 300


def test_a_negative_acknowledgement_of_thousands_comes_back_in_slices_and_in_order() -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 5000)
    peer.send(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.frames()
    world.turn()
    assert ready(world, "q") == 0
    world.limit(UNITS)
    peer.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=True), m.ChannelFlow(active=True))
    assert 0 < ready(world, "q") < 5000
    # Nothing goes out again, and nothing that follows is carried out, before all is back.
    assert peer.frames() == []
    while peer.connection.tasks:
        assert world.woken == 1
        assert peer.frames() == []
        world.next_turn()
    bodies: list[bytes] = []
    flows = 0
    for _ in range(200):
        frames = peer.frames()
        bodies += [load for kind, _, load in frames if kind == 3]
        flows += sum(load[:4] == b"\0\x14\0\x15" for kind, _, load in frames if kind == 1)
        if world.woken:
            world.next_turn()
        world.turn()
    assert bodies == [b"%d" % number for number in range(5000)]
    assert flows == 1


@pytest.mark.parametrize("requeue", [False, True])
def test_the_next_methods_wait_until_thousands_are_settled(requeue: bool) -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 3000)
    for _ in range(3000):
        peer.send(m.BasicGet(queue="q"))
    peer.frames()
    world.turn()
    world.limit(UNITS)
    peer.send(
        m.BasicNack(delivery_tag=2500, multiple=True, requeue=requeue),
        m.QueueDeclare(queue="q", passive=True),
    )
    assert peer.methods() == []
    assert world.turns() >= 3
    (answer,) = peer.methods()
    assert answer == m.QueueDeclareOk("q", 2500 if requeue else 0, 0)
    assert world.broker.vhosts["/"].queues["q"].unacked == 500


def test_a_hundred_refused_deliveries_become_dead_letters_in_slices() -> None:
    world = World()
    peer = world.peer()
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.ask(m.QueueDeclare(queue="dead"))
    peer.ask(m.QueueDeclare(queue="q", arguments=given))
    peer.give(b"".join(publish(b"%d" % number, "q") for number in range(100)))
    for _ in range(100):
        peer.send(m.BasicGet(queue="q"))
    peer.frames()
    world.turn()
    world.limit(UNITS)
    peer.send(m.BasicNack(multiple=True), m.QueueDeclare(queue="dead", passive=True))
    assert 0 < ready(world, "dead") <= 32
    assert peer.methods() == []
    world.turns()
    assert peer.methods() == [m.QueueDeclareOk("dead", 100, 0)]


def test_an_acknowledgement_of_thousands_is_carried_out_when_the_peer_is_gone() -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 3000)
    for _ in range(3000):
        peer.send(m.BasicGet(queue="q"))
    peer.frames()
    world.turn()
    world.limit(UNITS)
    peer.send(m.BasicAck(delivery_tag=2999, multiple=True))
    assert world.broker.vhosts["/"].queues["q"].unacked > 1000
    peer.connection.eof()
    world.turns()
    assert world.broker.vhosts["/"].queues["q"].unacked == 0
    assert ready(world, "q") == 1
    assert peer.connection not in world.registry.connections


def test_a_channel_is_closed_when_what_it_held_is_back() -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 3000)
    for _ in range(3000):
        peer.send(m.BasicGet(queue="q"))
    peer.frames()
    world.turn()
    world.limit(UNITS)
    peer.send(m.ChannelClose(200, "", 0, 0))
    assert peer.methods() == []
    assert 0 < ready(world, "q") < 3000
    world.turns()
    assert ready(world, "q") == 3000
    assert peer.methods() == [m.ChannelCloseOk()]


@pytest.mark.parametrize("closed", [False, True])
def test_any_number_of_deliveries_without_acknowledgement_is_passed_over(closed: bool) -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 2)
    peer.send(m.BasicGet(queue="q"))
    # As if so many messages had been consumed without acknowledgements meanwhile.
    peer.connection.channels[1].next_tag = 10**15
    peer.send(m.BasicGet(queue="q"))
    peer.frames()
    if closed:
        peer.send(m.ChannelClose(200, "", 0, 0))
        assert peer.methods() == [m.ChannelCloseOk()]
        assert ready(world, "q") == 2
    else:
        peer.send(m.BasicAck(delivery_tag=0, multiple=True))
        assert world.broker.vhosts["/"].queues["q"].unacked == 0


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_an_acknowledgement_for_two_consumers_of_a_queue_serves_both(kind: str) -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare(queue="q", durable=True, arguments={"x-queue-type": kind}))
    peer.give(b"".join(publish(b"%d" % number) for number in range(8)))
    peer.ask(m.BasicQos(prefetch_count=2))
    arguments = {"x-stream-offset": "first"} if kind == "stream" else {}
    for tag in ("a", "b"):
        peer.send(m.BasicConsume(queue="q", consumer_tag=tag, arguments=arguments))
    first = peer.bodies()
    peer.send(m.BasicAck(delivery_tag=4, multiple=True))
    second = peer.bodies()
    shared = [b"0", b"1", b"2", b"3"], [b"4", b"5", b"6", b"7"]
    each = [b"0", b"1", b"0", b"1"], [b"2", b"3", b"2", b"3"]
    assert (first, second) == (each if kind == "stream" else shared)


def test_an_acknowledgement_of_several_runs_serves_their_queues_in_order() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.BasicQos(prefetch_count=2))
    for name in ("p", "q"):
        fill(world, peer, name, 6)
    for name in ("p", "q"):
        peer.send(m.BasicConsume(queue=name, consumer_tag=name))
    assert peer.bodies() == [b"0", b"1", b"0", b"1"]
    peer.send(m.BasicAck(delivery_tag=2, multiple=False))
    assert peer.bodies() == [b"2"]
    # Of the tags 1 to 4 one is gone already; 5 stays.
    peer.send(m.BasicAck(delivery_tag=4, multiple=True))
    assert peer.bodies() == [b"3", b"2", b"3"]
    peer.send(m.BasicNack(delivery_tag=5, multiple=False, requeue=True))
    assert peer.bodies() == [b"2"]
    peer.send(m.BasicAck(delivery_tag=0, multiple=True))
    # Of p, q and p again: each is served when the next one begins.
    assert peer.bodies() == [b"4", b"4", b"5", b"5"]
    assert peer.connection.channels[1].unacked.count == 4


@pytest.mark.parametrize(("capabilities", "left"), [({"uncounted_requeue"}, 2), (set(), 0)])
def test_deliveries_of_a_client_that_only_looks_have_not_failed(
    capabilities: set[str], left: int
) -> None:
    world = World()
    owner = world.peer()
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 1}
    owner.ask(m.QueueDeclare("q", durable=True, arguments=arguments))
    owner.give(publish(b"0") + publish(b"1"))
    for _ in range(2):
        peer = world.peer()
        peer.connection.capabilities = set(capabilities)
        peer.send(m.BasicConsume(queue="q"), m.TxSelect(), m.BasicAck(1))
        assert ready(world, "q") == 0
        # What is acknowledged in a transaction that did not end is one of them.
        peer.connection.eof()
    assert ready(world, "q") == left


@pytest.mark.parametrize("in_transaction", [False, True])
def test_few_refused_deliveries_become_dead_letters_as_the_budget_allows(
    in_transaction: bool,
) -> None:
    # A publisher chooses how long the history of a letter is, and so how long one letter takes.
    world = World()
    peer = world.peer()
    given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.ask(m.QueueDeclare(queue="dead"))
    peer.ask(m.QueueDeclare(queue="q", arguments=given))
    peer.give(b"".join(publish(b"%d" % number, "q") for number in range(12)))
    for _ in range(12):
        peer.send(m.BasicGet(queue="q"))
    peer.frames()
    world.turn()
    if in_transaction:
        peer.ask(m.TxSelect())
        peer.send(m.BasicNack(multiple=True))
        world.limit(2 * LETTER_UNITS)
        peer.send(m.TxCommit())
    else:
        world.limit(2 * LETTER_UNITS)
        peer.send(m.BasicNack(multiple=True))
    assert 0 < ready(world, "dead") <= 2
    while world.woken:
        world.next_turn()
    assert ready(world, "dead") == 12
