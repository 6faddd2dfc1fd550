"""Work has a budget: counted in units, so that the same input is cut at the same places."""

from __future__ import annotations

import pytest

from harebell.base.work import Work
from harebell.front.common.turns import Account, Chore, Turns
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import (
    EVERY_CAPABILITY,
    OctetPeer,
    World,
    fill,
    method_frame,
    publish,
    ready,
)

UNITS = 300


def other_user(world: World) -> OctetPeer:
    """A peer of another user, with channel 1 open."""
    world.users.add("ann", "ann", vhosts=("/",))
    peer = world.connect()
    peer.log_in(EVERY_CAPABILITY, user=b"ann")
    peer.send(m.ChannelOpen())
    assert peer.methods() == [m.ChannelOpenOk()]
    return peer


def fanout(world: World, queues: int) -> OctetPeer:
    """A peer with an exchange "wide" that leads to so many queues, "w0" and so on."""
    peer = world.peer()
    peer.send(m.ExchangeDeclare(exchange="wide", type="fanout", nowait=True))
    for number in range(queues):
        peer.send(
            m.QueueDeclare(queue=f"w{number}", nowait=True),
            m.QueueBind(queue=f"w{number}", exchange="wide", nowait=True),
        )
    assert peer.methods() == []
    return peer


def test_publishes_to_many_queues_wait_for_other_turns_when_a_user_has_spent_enough() -> None:
    world = World()
    peer = fanout(world, 100)
    peer.ask(m.ConfirmSelect())
    world.limit(UNITS)
    peer.give(b"".join(publish(b"%d" % n, exchange="wide") for n in range(12)))
    assert ready(world, "w0") == ready(world, "w99") == 3
    assert peer.connection.held_back
    assert world.woken == 1
    world.next_turn()
    assert ready(world, "w99") == 6
    world.turns()
    assert ready(world, "w99") == 12
    assert not peer.connection.held_back
    acks = [method for method in peer.methods() if isinstance(method, m.BasicAck)]
    assert [ack.delivery_tag for ack in acks] == sorted(ack.delivery_tag for ack in acks)
    assert acks[-1].delivery_tag == 12
    got = world.broker.vhosts["/"].queues["w7"]
    assert [got.get()[0].body for _ in range(12)] == [b"%d" % n for n in range(12)]  # type: ignore[index]


def test_others_are_served_in_the_turn_in_which_a_user_has_spent_everything() -> None:
    world = World()
    busy = fanout(world, 100)
    healthy = other_user(world)
    healthy.ask(m.QueueDeclare(queue="calm"))
    world.limit(UNITS)
    busy.give(publish(b"", exchange="wide") * 50)
    healthy.give(publish(b"x", "calm"))
    assert ready(world, "calm") == 1
    assert ready(world, "w0") < 50


def test_all_connections_of_a_user_share_one_budget() -> None:
    world = World()
    first = fanout(world, 100)
    second = world.peer()
    world.limit(UNITS)
    first.give(publish(b"", exchange="wide") * 3)
    assert ready(world, "w0") == 3
    second.give(publish(b"", exchange="wide"))
    assert ready(world, "w0") == 3
    assert second.connection.held_back
    world.turns()
    assert ready(world, "w0") == 4
    assert not second.connection.held_back


def test_connections_that_wait_go_on_one_after_the_other() -> None:
    world = World()
    peers = [fanout(world, 100), world.peer(), world.peer()]
    world.limit(120)
    for number, peer in enumerate(peers):
        peer.give(publish(b"%d" % number, exchange="wide") * 8)
    world.turns()
    queue = world.broker.vhosts["/"].queues["w0"]
    order = b"".join(queue.get()[0].body for _ in range(24))  # type: ignore[index]
    assert sorted(order) == sorted(b"012" * 8)
    assert order.find(b"1") < order.rfind(b"0")
    assert order.find(b"2") < order.rfind(b"0")


def test_small_input_never_waits() -> None:
    world = World()
    peer = world.peer()
    world.limit(UNITS)
    assert peer.ask(m.QueueDeclare(queue="q")) == m.QueueDeclareOk("q", 0, 0)
    assert world.woken == 0


def test_methods_that_a_peer_sent_before_its_end_are_carried_out() -> None:
    world = World()
    peer = fanout(world, 100)
    world.limit(UNITS)
    peer.give(publish(b"", exchange="wide") * 10)
    peer.connection.eof()
    assert peer.connection in world.registry.connections
    world.turns()
    assert ready(world, "w0") == 10
    assert peer.connection not in world.registry.connections


def test_a_peer_whose_input_waits_is_not_cut_for_silence() -> None:
    world = World()
    peer = world.peer(heartbeat=1)
    peer.ask(m.ExchangeDeclare(exchange="wide", type="fanout"))
    for number in range(100):
        peer.ask(m.QueueDeclare(queue=f"w{number}"))
        peer.ask(m.QueueBind(queue=f"w{number}", exchange="wide"))
    world.limit(UNITS)
    peer.give(publish(b"", exchange="wide") * 50)
    peer.connection.tick(world.now + 100)
    assert not peer.connection.closing
    world.turns()
    assert ready(world, "w0") == 50


def test_a_backlog_is_delivered_in_slices() -> None:
    world = World()
    peer = world.peer()
    fill(world, peer, "q", 2000)
    world.limit(UNITS)
    peer.send(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
    assert 1600 < ready(world, "q") < 2000
    world.turns()
    assert ready(world, "q") == 0
    assert peer.bodies() == [b"%d" % number for number in range(2000)]


def test_an_account_ends_with_its_last_user_and_a_later_one_is_new() -> None:
    turns = Turns(Work())
    turns.limit(100, lambda: None)
    account = turns.account("user ann")
    assert turns.account("user ann") is account
    assert turns.begin(account)
    turns.work.charge(99)
    turns.end()
    assert turns.account("user ann").spent == 99
    del account
    assert turns.account("user ann").spent == 0


def test_an_account_that_rests_goes_on_in_the_next_turn() -> None:
    turns = Turns(Work())
    turns.limit(100, lambda: None)
    done = []

    def step() -> bool:
        done.append(1)
        turns.rest()
        return len(done) == 3

    turns.wait(turns.account("user ann"), Chore(turns, turns.account("user ann"), step))
    for turn in range(1, 4):
        turns.next_turn()
        assert len(done) == turn
    turns.next_turn()
    assert len(done) == 3


class Failing:
    def go_on(self) -> None:
        raise ZeroDivisionError


def test_work_that_fails_in_its_turn_does_not_stop_the_others() -> None:
    woken = []
    turns = Turns(Work())
    turns.limit(100, lambda: woken.append(1))
    done = []

    def step() -> bool:
        done.append(1)
        return True

    account = turns.account("user ann")
    turns.wait(account, Failing())
    turns.later(step)
    with pytest.raises(ZeroDivisionError):
        turns.next_turn()
    assert len(woken) == 2
    turns.next_turn()
    assert done == [1]
    assert not turns.busy
    assert isinstance(account, Account)


def test_a_frame_of_another_connection_is_read_in_the_same_turn() -> None:
    world = World()
    busy = fanout(world, 100)
    other = other_user(world)
    world.limit(UNITS)
    busy.give(publish(b"", exchange="wide") * 9 + method_frame(m.ChannelFlow(active=True)))
    assert other.ask(m.ChannelFlow(active=True)) == m.ChannelFlowOk(active=True)
    assert busy.methods() == []
    world.turns()
    assert busy.methods() == [m.ChannelFlowOk(active=True)]


def test_a_long_operation_that_raises_ends_and_the_others_go_on() -> None:
    turns, done = Turns(Work()), []
    turns.limit(UNITS, lambda: None)
    told: list[str] = []
    turns.failures.report = lambda name, text: told.append(name)

    def broken() -> bool:
        raise ValueError("of one message")

    for step in (broken, lambda: bool(done.append("other")) or True):
        turns.later(step)
    turns.next_turn()
    assert done == ["other"]
    assert not turns.busy
    assert [name.rpartition(".")[2] for name in told] == ["broken"]
