"""The class channel, with which clients of 2007 opened (class 21)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.frames import BODY, HEADER, METHOD, frame
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


def test_a_channel_is_opened_in_the_octets_of_2007(connect: Connect):
    peer = connect().open(channels=())
    peer.send_bytes(bytes.fromhex("010001000000050015000a00ce"))
    found = peer.next_frame("channel.open-ok")
    assert found.octets == bytes.fromhex("010001000000040015000bce")


@pytest.mark.rule("0-10t#274")
def test_opening_a_channel_twice_ends_the_connection(peer: Peer):
    peer.send(m.ChannelOpen())
    peer.expect_connection_close(504, "channel.open")


def test_a_method_before_open_ends_the_connection(connect: Connect):
    peer = connect().open(channels=())
    peer.send(m.QueueDeclare("q"))
    peer.expect_connection_close(504, "queue.declare", "expected 'channel.open'")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_before_open_ends_the_connection(connect: Connect, kind: int):
    peer = connect().open(channels=())
    peer.send_bytes(frame(kind, 1, b""))
    peer.expect_connection_close(504)


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_that_belongs_to_nothing_is_an_invalid_command(peer: Peer, kind: int):
    peer.send_bytes(frame(kind, 1, b""))
    peer.expect_connection_close(503)


@pytest.mark.rule("0-10t#275", "0-10t#276")
def test_a_channel_is_active_until_its_client_pauses_it(peer: Peer, name: str):
    peer.queue(name)
    peer.consume(name)
    peer.publish("", name, b"one")
    peer.expect_delivery(b"one")
    assert not peer.ask(m.ChannelFlow(False)).active
    peer.publish("", name, b"two")
    peer.settle()
    peer.expect_silence()
    assert peer.ask(m.ChannelFlow(True)).active
    peer.expect_delivery(b"two")


def test_commands_are_counted_from_one_again_after_reopening(peer: Peer, name: str):
    peer.queue(name)
    peer.ask(m.ChannelClose())
    peer.ask(m.ChannelOpen())
    assert peer.settle().cumulative_execution_mark == 0


@pytest.mark.rule("0-10t#279")
def test_after_our_close_nothing_but_its_end_counts(peer: Peer, name: str):
    peer.send(m.QueueDeclare(f"{name}-none", passive=True))
    peer.send(m.QueueDeclare(name))
    peer.publish("", name, b"ignored")
    peer.expect_channel_close(404, "queue.declare")
    peer.ask(m.ChannelOpen())
    peer.send(m.QueueDeclare(name, passive=True))
    peer.expect_channel_close(404, "queue.declare")


def test_deliveries_held_by_a_closed_channel_go_back(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"back")
    peer.get(name)
    peer.ask(m.ChannelClose())
    peer.ask(m.ChannelOpen())
    assert peer.get(name, no_ack=True).method.redelivered


def test_channels_do_not_disturb_each_other(connect: Connect, name: str):
    peer = connect().open(channels=(1, 2))
    peer.queue(name, channel=1)
    publish = bytes.fromhex("003c0028000000") + bytes((len(name),)) + name.encode() + b"\0"
    peer.payload(publish, 1)
    assert peer.queue(name, channel=2, passive=True) == name
    peer.send_bytes(frame(HEADER, 1, bytes.fromhex("003c0000") + (1).to_bytes(8) + b"\0\0"))
    peer.send_bytes(frame(BODY, 1, b"x"))
    assert peer.get(name, channel=2, no_ack=True).body == b"x"


def test_a_method_within_a_content_is_an_invalid_command(peer: Peer, name: str):
    peer.queue(name)
    publish = bytes.fromhex("003c0028000000") + bytes((len(name),)) + name.encode() + b"\0"
    peer.payload(publish)
    peer.send_bytes(frame(METHOD, 1, bytes.fromhex("008c000a")))
    peer.expect_connection_close(503, "basic.publish")
