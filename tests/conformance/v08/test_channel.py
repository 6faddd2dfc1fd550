"""Class channel of 0-8 and 0-9: opening, flow, closing; and what belongs to one channel."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as old
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import Peer8


def test_open_ok_has_no_fields_in_0_8(connect: Connect) -> None:
    peer = connect().open(channels=())
    peer.send(m.ChannelOpen())
    assert peer.next_frame("channel.open-ok").payload == b"\0\x14\0\x0b"


def test_open_ok_has_a_long_string_in_0_9(connect_0_9: Connect) -> None:
    peer = connect_0_9().open(channels=())
    peer.send(m.ChannelOpen())
    assert peer.next_frame("channel.open-ok").payload == b"\0\x14\0\x0b\0\0\0\0"


@pytest.mark.rule("0-8#027", "0-8#028", "0-8#029")
def test_flow_stops_deliveries_and_lets_them_go_on(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.consume(name)
    assert older.ask(m.ChannelFlow(active=False)).active is False
    older.publish("", name, b"one").publish("", name, b"two")
    older.expect_silence()
    assert older.count(name) == 2
    assert older.ask(m.ChannelFlow(active=True)).active is True
    older.expect_delivery(b"one")
    older.expect_delivery(b"two")


@pytest.mark.rule("0-8#027")
def test_a_consumer_on_a_stopped_channel_begins_in_silence(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.publish("", name, b"waiting")
    older.ask(m.ChannelFlow(active=False))
    older.consume(name)
    older.expect_silence()
    # What is asked for by basic.get comes all the same.
    assert older.get(name).body == b"waiting"
    older.ask(m.ChannelFlow(active=True))


def test_another_consumer_is_served_while_a_channel_is_stopped(older: Peer8, name: str) -> None:
    older.ask(m.ChannelOpen(), 2)
    older.queue(name, exclusive=True)
    older.consume(name)
    older.consume(name, channel=2)
    older.ask(m.ChannelFlow(active=False))
    for body in (b"one", b"two"):
        older.publish("", name, body)
        older.expect_delivery(body, 2)


@pytest.mark.rule("0-8#030")
def test_a_client_that_answers_flow_unasked_does_no_harm(older: Peer8) -> None:
    older.send(m.ChannelFlowOk(active=True))
    older.expect_silence()


@pytest.mark.rule("0-8#031")
def test_after_its_own_close_the_broker_ignores_the_channel_until_close_ok(older: Peer8) -> None:
    older.send(m.QueueDeclare("missing", passive=True))
    older.expect(m.ChannelClose, reply_code=404)
    older.send(m.QueueDeclare("ignored", exclusive=True))
    older.publish("", "ignored", b"ignored")
    older.send(m.ChannelCloseOk())
    older.ask(m.ChannelOpen())
    older.send(m.QueueDeclare("ignored", passive=True))
    older.expect(m.ChannelClose, reply_code=404)
    older.send(m.ChannelCloseOk())


def test_pings_are_answered_in_0_9(connect_0_9: Connect) -> None:
    peer = connect_0_9().open()
    for method in (old.ChannelPing(), old.ChannelPong()):
        peer.send(method)
        peer.expect(old.ChannelOk)
    peer.send(old.ChannelOk())
    peer.expect_silence()


def test_a_channel_cannot_be_resumed(connect_0_9: Connect) -> None:
    peer = connect_0_9().open()
    peer.send(old.ChannelResume(b"gone"))
    text = "NOT_IMPLEMENTED - channel.resume: a channel ends with its connection"
    peer.expect_connection_close(540, text, (20, 50))


@pytest.mark.rule("0-8#001", "0-8#002")
def test_tags_mean_something_on_their_own_channel_only(older: Peer8, name: str) -> None:
    older.ask(m.ChannelOpen(), 2)
    older.queue(name, exclusive=True)
    older.consume(name, consumer_tag="tag")
    # The same tag on another channel is another consumer's, and cancelling it there is no error.
    older.consume(name, 2, consumer_tag="tag")
    older.ask(m.BasicCancel("tag"), 2)
    older.publish("", name, b"one")
    found = older.expect_delivery(b"one", 1)
    older.send(m.BasicAck(found.method.delivery_tag), channel=2)
    older.expect_channel_close(406, "PRECONDITION_FAILED - unknown delivery tag 1", (60, 80), 2)
