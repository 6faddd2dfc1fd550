"""The stream class of 0-8: packets without acknowledgement, at a rate, the urgent ones first."""

from __future__ import annotations

import pytest

from harebell.front.limits import STREAM_WINDOW_MESSAGES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import (
    StreamCancel,
    StreamConsume,
    StreamDeliver,
    StreamPublish,
    StreamQos,
)
from harebell.wire.v09.property_list import STREAM, StreamProperties
from tests.conformance.file_stream.versions import rule
from tests.conformance.v08.contents import Connect08, Peer08

FULL = StreamProperties("video/mpeg", "gzip", {"a": 1, "b": "text"}, 7, 1_186_000_000)
RATE = 1_000
"""Octets a second."""


def consume(peer: Peer08, queue: str, channel: int = 1, **options: object) -> str:
    tag: str = peer.ask(StreamConsume(queue=queue, **options), channel).consumer_tag  # type: ignore[arg-type]
    return tag


def drain(peer: Peer08, last: bytes) -> list[bytes]:
    """The packets that come, up to and with that one."""
    found: list[bytes] = []
    while not found or found[-1] != last:
        found.append(peer.take_packet().body)
    return found


# --- from the publisher to the consumer -------------------------------------------------------


def test_a_packet_is_delivered_as_it_was_published(peer08: Peer08) -> None:
    queue = peer08.queue("packets")
    consume(peer08, queue, consumer_tag="t")
    body = bytes(range(256)) * 2_000
    peer08.send_content(StreamPublish("", queue), STREAM, FULL, body)
    found = peer08.take_packet(body, consumer_tag="t", delivery_tag=1, exchange="", queue=queue)
    assert STREAM.encode(found.properties) == STREAM.encode(FULL)


def test_the_queue_that_a_packet_came_from_is_named(peer08: Peer08) -> None:
    peer08.ask(m.ExchangeDeclare("all", "fanout"))
    for name in ("one", "two"):
        peer08.queue(name)
        peer08.ask(m.QueueBind(name, "all", ""))
        consume(peer08, name)
    peer08.packet("", b"x", "all")
    names = {peer08.take_packet(b"x", exchange="all").method.queue for _ in range(2)}
    assert names == {"one", "two"}


@rule("0-8#145")
def test_a_delivered_packet_is_gone_from_its_queue(peer08: Peer08) -> None:
    queue = peer08.queue("packets")
    peer08.packet(queue, b"x")
    assert peer08.count(queue) == 1
    consume(peer08, queue)
    peer08.take_packet(b"x")
    assert peer08.count(queue) == 0
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0


def test_the_methods_of_a_message_class_cannot_acknowledge_a_packet(peer08: Peer08) -> None:
    queue = peer08.queue("packets")
    consume(peer08, queue)
    peer08.packet(queue, b"x")
    peer08.take_packet(delivery_tag=1)
    peer08.send(m.BasicAck(1))
    peer08.expect(m.ChannelClose)
    peer08.send(m.ChannelCloseOk())


# --- consumers --------------------------------------------------------------------------------


@rule("0-8#148")
def test_different_channels_have_rates_of_their_own(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open(channels=(1, 2))
    peer.ask(m.ExchangeDeclare("all", "fanout"))
    for channel, name in ((1, "slow"), (2, "fast")):
        peer.queue(name)
        peer.ask(m.QueueBind(name, "all", ""))
        consume(peer, name, channel)
    peer.ask(StreamQos(consume_rate=RATE), 1)
    for _ in range(3):
        peer.packet("", bytes(RATE), "all")
    peer.take_packet(channel=1)
    for _ in range(3):
        peer.take_packet(channel=2)
    for _ in range(2):
        peer.take_packet(channel=1)


def test_packets_that_wait_for_a_cancelled_consumer_go_back(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(consume_rate=RATE))
    tag = consume(peer, queue)
    for _ in range(4):
        peer.packet(queue, bytes(RATE))
    peer.take_packet()
    peer.ask(StreamCancel(tag))
    assert peer.count(queue) == 3


def test_a_consumer_may_pass_over_what_its_own_connection_sends(
    peer08: Peer08, other08: Peer08
) -> None:
    queue = peer08.queue("packets")
    consume(peer08, queue, no_local=True)
    peer08.packet(queue, b"own")
    peer08.expect_silence()
    other08.packet(queue, b"other's")
    peer08.take_packet(b"other's")


# --- rates and windows ------------------------------------------------------------------------


@rule("0-8#146")
@pytest.mark.parametrize("whole", [False, True])
def test_packets_come_at_the_rate_that_was_asked_for(
    connect08_memory: Connect08, whole: bool
) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(consume_rate=RATE, global_=whole))
    consume(peer, queue)
    for number in range(5):
        peer.packet(queue, bytes((number,)) * (2 * RATE))
    site = peer.site
    began = site.now  # type: ignore[union-attr]
    times = []
    for number in range(5):
        peer.take_packet(bytes((number,)) * (2 * RATE))
        times.append(round(site.now - began))  # type: ignore[union-attr]
    assert times == [0, 2, 4, 6, 8]


def test_the_rate_of_a_connection_is_shared_by_its_channels(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open(channels=(1, 2))
    for channel in (1, 2):
        queue = peer.queue(f"packets-{channel}")
        consume(peer, queue, channel)
    peer.ask(StreamQos(consume_rate=RATE, global_=True))
    began = peer.site.now  # type: ignore[union-attr]
    for number in range(4):
        peer.packet(f"packets-{number % 2 + 1}", bytes(RATE))
    for _ in range(4):
        method = peer.next_method()[1]
        assert isinstance(method, StreamDeliver)
        for _ in range(2):
            peer.next_frame("the content")
    assert round(peer.site.now - began) == 3  # type: ignore[union-attr]


def test_a_rate_of_zero_is_none(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(consume_rate=RATE))
    consume(peer, queue)
    for _ in range(5):
        peer.packet(queue, bytes(100 * RATE))
    peer.take_packet()
    began = peer.site.now  # type: ignore[union-attr]
    peer.ask(StreamQos(consume_rate=0))
    for _ in range(4):
        peer.take_packet()
    assert peer.site.now == began  # type: ignore[union-attr]


@rule("0-8#144", "0-8#146")
def test_urgent_packets_push_others_out_where_a_consumer_is_slow(
    connect08_memory: Connect08,
) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(prefetch_count=3, consume_rate=RATE))
    consume(peer, queue)
    peer.packet(queue, bytes(RATE))
    peer.take_packet()
    for number in range(3):
        peer.packet(queue, b"low-%d" % number + bytes(RATE), priority=number)
    for number in range(2):
        peer.packet(queue, b"high-%d" % number + bytes(RATE), priority=5 + number)
    peer.packet(queue, b"last", priority=0)
    found = [peer.take_packet().body[:6] for _ in range(4)]
    assert found == [b"high-1", b"high-0", b"low-2\0", b"last"]
    assert peer.count(queue) == 0


@rule("0-8#144")
def test_low_and_high_priorities_are_two_levels(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets", arguments={"x-max-priority": 9})
    for priority in (4, 5):
        peer.packet(queue, b"%d" % priority, priority=priority)
    consume(peer, queue)
    assert drain(peer, b"4") == [b"5", b"4"]


def test_packets_of_one_priority_all_come_however_slow_the_consumer(
    connect08_memory: Connect08,
) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(prefetch_count=2, consume_rate=100_000))
    consume(peer, queue)
    for number in range(50):
        peer.packet(queue, b"%02d" % number + bytes(5_000))
    found = [peer.take_packet().body[:2] for _ in range(50)]
    assert found == [b"%02d" % number for number in range(50)]


def test_messages_of_class_basic_are_never_discarded(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(prefetch_count=1, consume_rate=100_000))
    consume(peer, queue)
    for number in range(5):
        raw = b"\x08\x00" + bytes((number,))
        octets = b"basic-%d" % number + bytes(3_000)
        peer.publish("", queue, octets, raw)
    found = sorted(peer.take_packet().body[:7] for _ in range(5))
    assert found == [b"basic-%d" % number for number in range(5)]


def test_a_consumer_whose_socket_is_full_gets_the_urgent_packets_first(
    connect08_memory: Connect08,
) -> None:
    publisher, peer = connect08_memory().open(), connect08_memory().open()
    queue = publisher.queue("packets")
    consume(peer, queue)
    peer.wire.stop_reading()  # type: ignore[attr-defined]
    publisher.packet(queue, b"low", priority=1)
    publisher.packet(queue, b"high", priority=9)
    peer.wire.start_reading()  # type: ignore[attr-defined]
    peer.take_packet(b"high")
    peer.take_packet(b"low")


def test_more_than_a_window_waits_in_the_queue(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    queue = peer.queue("packets")
    peer.ask(StreamQos(consume_rate=1))
    consume(peer, queue)
    peer.packet(queue, b"x")
    peer.take_packet()
    for _ in range(STREAM_WINDOW_MESSAGES + 10):
        peer.packet(queue, b"x")
    assert peer.count(queue) == 9


# --- publishing -------------------------------------------------------------------------------


def test_an_unknown_exchange_closes_the_channel_before_the_content_comes(peer08: Peer08) -> None:
    peer08.send(StreamPublish("missing", "k"))
    peer08.refused(404, "no exchange 'missing' in vhost '/'")


def test_malformed_properties_end_the_connection(peer08: Peer08) -> None:
    peer08.send_content(StreamPublish("", "k"), STREAM, b"\0\x01", b"x")
    close = peer08.expect(m.ConnectionClose)
    assert "unknown property flags" in close.reply_text
    peer08.opened = False


def test_the_header_of_another_class_ends_the_connection(peer08: Peer08) -> None:
    peer08.send(StreamPublish("", "k"))
    peer08.send_header(b"\x00\x3c\x00\x00" + bytes(8) + b"\0\0")
    close = peer08.expect(m.ConnectionClose)
    assert "expected content header for class 80" in close.reply_text
    peer08.opened = False


def test_packets_are_part_of_a_transaction(peer08: Peer08) -> None:
    queue = peer08.queue("packets")
    peer08.ask(m.TxSelect())
    peer08.packet(queue, b"x")
    assert peer08.count(queue) == 0
    peer08.ask(m.TxRollback())
    peer08.packet(queue, b"y")
    peer08.ask(m.TxCommit())
    assert peer08.count(queue) == 1
