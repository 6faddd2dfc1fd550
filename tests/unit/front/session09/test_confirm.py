"""Confirms: one ack per turn, numbers in order, never before a return."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from tests.unit.front.session09.world import OctetPeer, World, publish


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
