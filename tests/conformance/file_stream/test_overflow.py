"""Queues of 0-8 that are too full: files wait, packets go by their priority."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import FileAck, FilePublish
from tests.conformance.file_stream.versions import rule
from tests.conformance.v08.contents import Connect08, Peer08


def bodies(peer: Peer08, queue: str) -> list[bytes]:
    """What is in a queue."""
    found = []
    while peer.count(queue):
        peer.send(m.BasicGet(queue=queue, no_ack=True))
        found.append(peer.expect_whole(m.BasicGetOk).body)
    return found


@rule("0-8#120")
@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_a_full_queue_stops_the_publisher_of_a_file(
    peer08: Peer08, other08: Peer08, overflow: str
) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 2, "x-overflow": overflow})
    for number in range(2):
        peer08.publish_file(queue, b"%d" % number, f"id-{number}")
    peer08.expect_silence()
    peer08.publish_file(queue, b"2", "id-2")
    peer08.expect(m.ChannelFlow, active=False)
    peer08.send(m.ChannelFlowOk(active=False))
    assert peer08.count(queue) == 2
    other08.files(queue)
    assert other08.take_file().body == b"0"
    other08.send(FileAck(1))
    peer08.expect(m.ChannelFlow, active=True)
    peer08.send(m.ChannelFlowOk(active=True))
    assert other08.take_file().body == b"1"
    assert other08.take_file().body == b"2"


@rule("0-8#120")
def test_messages_published_while_the_queue_was_full_wait_in_their_order(
    peer08: Peer08, other08: Peer08
) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 1})
    for number in range(4):
        peer08.stage(f"id-{number}", b"%d" % number)
    for number in range(4):
        peer08.send(FilePublish("", queue, identifier=f"id-{number}"))
    peer08.expect(m.ChannelFlow, active=False)
    other08.files(queue)
    for number in range(4):
        assert other08.take_file().body == b"%d" % number
    peer08.expect(m.ChannelFlow, active=True)


@rule("0-8#120")
def test_other_messages_go_where_a_queue_is_full_of_files(peer08: Peer08) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 2})
    peer08.publish_file(queue, b"file", "one")
    peer08.publish("", queue, b"first", b"\0\0")
    peer08.publish("", queue, b"second", b"\0\0")
    peer08.publish("", queue, b"third", b"\0\0")
    assert bodies(peer08, queue) == [b"file", b"third"]


@rule("0-8#120")
def test_a_limit_of_octets_holds_for_files_too(peer08: Peer08) -> None:
    queue = peer08.queue("full", arguments={"x-max-length-bytes": 100})
    peer08.publish_file(queue, bytes(60), "one")
    peer08.publish_file(queue, bytes(60), "two")
    peer08.expect(m.ChannelFlow, active=False)
    assert peer08.count(queue) == 1
    peer08.send(m.BasicGet(queue=queue, no_ack=True))
    peer08.expect_whole(m.BasicGetOk)
    peer08.expect(m.ChannelFlow, active=True)
    assert peer08.count(queue) == 1


def test_a_publisher_that_closes_its_channel_leaves_the_file_staged(connect08: Connect08) -> None:
    peer = connect08().open()
    queue = peer.queue("full", arguments={"x-max-length": 1})
    peer.publish_file(queue, b"one", "left-1")
    peer.publish_file(queue, b"two", "left-2")
    peer.expect(m.ChannelFlow, active=False)
    peer.ask(m.ChannelClose(reply_code=200))
    peer.ask(m.ChannelOpen())
    assert bodies(peer, queue) == [b"one"]
    peer.send(FilePublish("", queue, identifier="left-2"))
    assert bodies(peer, queue) == [b"two"]


@rule("0-8#143")
def test_a_full_queue_discards_the_least_urgent_packet(peer08: Peer08) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 3})
    for priority in (5, 2, 7, 2, 9, 1, 4):
        peer08.packet(queue, b"%d" % priority, priority=priority)
    assert bodies(peer08, queue) == [b"5", b"7", b"9"]


@rule("0-8#143", "0-8#144")
def test_packets_of_one_priority_are_discarded_in_their_order(peer08: Peer08) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 2})
    for number in range(4):
        peer08.packet(queue, b"%d" % number)
    assert bodies(peer08, queue) == [b"2", b"3"]


def test_messages_of_class_basic_go_in_their_order_as_ever(peer08: Peer08) -> None:
    queue = peer08.queue("full", arguments={"x-max-length": 2})
    for number in range(4):
        peer08.publish("", queue, b"%d" % number, b"\x08\0" + bytes((9 - number,)))
    assert bodies(peer08, queue) == [b"2", b"3"]
