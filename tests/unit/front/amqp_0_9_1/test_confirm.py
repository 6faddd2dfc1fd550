"""Confirms: one ack per turn, numbers in order, never before a return."""

from __future__ import annotations

from harebell.model.queue.contract import PENDING, REJECTED
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def confirming(world: World) -> OctetPeer:
    peer = world.peer()
    assert peer.ask(m.ConfirmSelect()) == m.ConfirmSelectOk()
    peer.ask(m.QueueDeclare("q"))
    return peer


def test_the_publishes_of_one_read_are_confirmed_together() -> None:
    peer = confirming(World())
    peer.give(publish(b"1") + publish(b"2") + publish(b"3"))
    assert peer.methods() == [m.BasicAck(3, True)]
    peer.give(publish(b"4"))
    assert peer.methods() == [m.BasicAck(4, False)]


def test_an_unroutable_message_is_returned_before_it_is_confirmed() -> None:
    peer = confirming(World())
    peer.give(publish(b"1", key="nowhere", mandatory=True))
    names = [type(method).__name__ for method in peer.methods()]
    assert names == ["BasicReturn", "BasicAck"]


def test_selecting_twice_does_not_start_the_numbers_again() -> None:
    peer = confirming(World())
    peer.give(publish(b"1"))
    peer.methods()
    assert peer.ask(m.ConfirmSelect()) == m.ConfirmSelectOk()
    peer.give(publish(b"2"))
    assert peer.methods() == [m.BasicAck(2, False)]


def test_selecting_without_a_reply_works_too() -> None:
    peer = World().peer()
    peer.send(m.ConfirmSelect(nowait=True))
    assert peer.methods() == []
    peer.give(publish(b"1"))
    assert peer.methods() == [m.BasicAck(1, False)]


def test_channels_are_confirmed_each_with_its_own_numbers() -> None:
    peer = confirming(World())
    peer.ask(m.ChannelOpen(), channel=2)
    peer.ask(m.ConfirmSelect(), channel=2)
    peer.give(publish(b"1") + publish(b"2") + publish(b"1", channel=2))
    acks = [(channel, payload) for _, channel, payload in peer.frames()]
    assert [channel for channel, _ in acks] == [1, 2]
    assert [int.from_bytes(payload[4:12]) for _, payload in acks] == [2, 1]


def test_a_rejected_message_is_told_after_the_acks_before_it() -> None:
    peer = confirming(World())
    confirms = peer.connection.channels[1].confirms
    confirms.published(0)
    confirms.published(0)
    confirms.published(1)
    confirms.published(0)
    confirms.flush()
    assert peer.methods() == [
        m.BasicAck(2, True),
        m.BasicNack(3),
        m.BasicAck(4, False),
    ]
    assert (confirms.taken, confirms.sent) == (4, 4)


def test_a_transactional_channel_cannot_confirm() -> None:
    peer = World().peer()
    peer.ask(m.TxSelect())
    answer = peer.ask(m.ConfirmSelect())
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"


KEPT = BasicProperties(delivery_mode=2)


def slowly(world: World) -> OctetPeer:
    """A confirming peer with a durable queue "d" and a transient one "q"."""
    peer = world.peer()
    peer.send(m.ConfirmSelect(), m.QueueDeclare("q"), m.QueueDeclare("d", durable=True))
    world.commit()
    assert len(peer.methods()) == 3
    return peer


def kept(count: int = 1) -> bytes:
    return publish(b"kept", "d", properties=KEPT) * count


def test_a_persistent_message_in_a_durable_queue_is_confirmed_when_it_is_on_disk() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(kept(2))
    assert peer.methods() == []
    assert world.store.commit.urgent
    world.commit()
    assert peer.methods() == [m.BasicAck(2, True)]
    assert world.registry.waiting == {}


def test_a_transient_message_is_confirmed_at_once() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(publish(b"1") + publish(b"2", "d") + publish(b"3", "nowhere"))
    assert peer.methods() == [m.BasicAck(3, True)]
    assert not world.store.commit.urgent


def test_messages_before_a_waiting_one_are_confirmed_and_those_after_it_wait() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(publish(b"1") + publish(b"2") + kept() + publish(b"4"))
    assert peer.methods() == [m.BasicAck(2, True)]
    peer.give(publish(b"5"))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.BasicAck(5, True)]


def test_publishes_during_a_commit_wait_for_the_next_one() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(kept(2))
    first = world.store.begin()
    peer.give(kept(3))
    world.finish(first)
    assert peer.methods() == [m.BasicAck(2, True)]
    assert world.registry.waiting != {}
    peer.give(publish(b"6"))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.BasicAck(6, True)]


def test_a_refused_message_is_told_in_its_turn() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(kept())
    confirms = peer.connection.channels[1].confirms
    assert confirms is not None
    confirms.published(REJECTED)
    confirms.published(REJECTED | PENDING)
    peer.give(kept() + publish(b"5"))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [
        m.BasicAck(1, False),
        m.BasicNack(2),
        m.BasicNack(3),
        m.BasicAck(5, True),
    ]


def test_confirms_leave_before_the_channel_is_closed() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(publish(b"1") + kept(2))
    assert peer.methods() == [m.BasicAck(1, False)]
    peer.send(m.ChannelClose(200, "", 0, 0))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.BasicAck(3, True), m.ChannelCloseOk()]
    assert world.registry.waiting == {}


def test_confirms_leave_before_the_error_that_closes_the_channel() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(kept(2) + publish(b"3", exchange="missing"))
    assert peer.methods() == []
    world.commit()
    ack, close = peer.methods()
    assert ack == m.BasicAck(2, True)
    assert isinstance(close, m.ChannelClose)


def test_a_dead_connection_takes_its_confirms_along() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(kept(2))
    peer.connection.eof()
    assert world.registry.waiting == {}
    world.commit()
    assert peer.frames() == []


def test_a_message_for_several_queues_waits_when_one_of_them_does() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.send(m.QueueBind("q", "amq.fanout"), m.QueueBind("d", "amq.fanout"))
    world.commit()
    peer.methods()
    peer.give(publish(b"1", exchange="amq.fanout", properties=KEPT))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.BasicAck(1, False)]
