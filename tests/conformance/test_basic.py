"""The basic class: order, consumers, get, prefetch, returns, and sharing the way to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer, publish_octets
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#057")
@pytest.mark.parametrize("exchange", ["", "amq.direct", "amq.fanout", "amq.topic", "amq.headers"])
@pytest.mark.parametrize("waiting", [True, False])
def test_order_is_kept_from_channel_to_channel(
    connect: Connect, exchange: str, waiting: bool
) -> None:
    writer, reader = connect().open(), connect().open()
    reader.queue("q")
    if exchange:
        reader.ask(m.QueueBind("q", exchange, "q"))
    if waiting:
        reader.consume("q", no_ack=True)
    bodies = numbered(500)
    writer.send_bytes(b"".join(publish_octets(exchange, "q", text) for text in bodies))
    if not waiting:
        writer.expect_silence()
        reader.consume("q", no_ack=True)
    assert [reader.expect_delivery().body for _ in bodies] == bodies


@pytest.mark.rule("0-9-1#023")
def test_with_two_readers_what_one_gives_back_comes_late_to_the_other(peer: Peer) -> None:
    peer.ask(m.ChannelOpen(), 2)
    peer.queue("q")
    for text in numbered(3):
        peer.publish("", "q", text)
    first = peer.get("q", no_ack=False)
    assert [peer.get("q", channel=2).body for _ in range(2)] == [b"1", b"2"]
    peer.send(m.BasicReject(first.method.delivery_tag, requeue=True))
    peer.expect_silence()
    late = peer.get("q", channel=2)
    assert (late.body, late.method.redelivered) == (b"0", True)


@pytest.mark.rule("0-9-1#026")
def test_requests_sent_together_are_answered_one_by_one_in_order(peer: Peer) -> None:
    peer.send(
        m.QueueDeclare(queue="q"),
        m.QueueBind("q", "amq.direct", "k"),
        m.BasicQos(0, 5),
        m.BasicGet(queue="q"),
        m.QueueDelete(queue="q"),
    )
    for reply in (m.QueueDeclareOk, m.QueueBindOk, m.BasicQosOk, m.BasicGetEmpty, m.QueueDeleteOk):
        peer.expect(reply)


# --- consuming ------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#056")
def test_no_delivery_comes_before_consume_ok_nor_behind_cancel_ok(peer: Peer) -> None:
    peer.queue("q")
    for text in numbered(3):
        peer.publish("", "q", text)
    peer.send(m.BasicConsume("q", "t", no_ack=True))
    peer.expect(m.BasicConsumeOk, consumer_tag="t")
    for text in numbered(3):
        peer.expect_delivery(text, consumer_tag="t")
    peer.send(m.BasicCancel("t"))
    peer.expect(m.BasicCancelOk, consumer_tag="t")
    peer.publish("", "q", b"late")
    peer.expect_silence()
    assert peer.count("q") == 1


@pytest.mark.rule("0-9-1r#092")
def test_a_consumer_with_no_ack_has_nothing_to_acknowledge(connect: Connect) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue("q")
    peer.publish("", "q", b"body")
    peer.consume("q", no_ack=True)
    tag = peer.expect_delivery(b"body", redelivered=False).method.delivery_tag
    peer.send(m.BasicAck(tag))
    text = f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    peer.expect_channel_close(406, text, "basic.ack")
    assert other.count("q") == 0


@pytest.mark.rule("0-9-1r#093")
def test_a_consumer_without_no_ack_keeps_its_messages_until_it_acknowledges(
    connect: Connect,
) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue("q")
    peer.consume("q")
    for text in numbered(2):
        peer.publish("", "q", text)
    tags = [peer.expect_delivery(text).method.delivery_tag for text in numbered(2)]
    assert tags == [1, 2]
    peer.send(m.BasicAck(1))
    peer.expect_silence()
    peer.close()
    assert other.count("q") == 1
    found = other.get("q")
    assert (found.body, found.method.redelivered) == (b"1", True)


def test_consumers_of_higher_priority_are_served_first(peer: Peer) -> None:
    peer.queue("q")
    peer.ask(m.BasicQos(0, 1))
    peer.consume("q", consumer_tag="low", arguments={"x-priority": -1})
    peer.consume("q", consumer_tag="high", arguments={"x-priority": 5})
    peer.consume("q", consumer_tag="usual")
    for text in numbered(3):
        peer.publish("", "q", text)
    assert [peer.expect_delivery().method.consumer_tag for _ in range(3)] == [
        "high",
        "usual",
        "low",
    ]


@pytest.mark.rule("0-9-1r#098")
@pytest.mark.parametrize("notified", [True, False])
def test_a_consumer_may_be_cancelled_when_its_queue_is_gone(
    connect: Connect, notified: bool
) -> None:
    capabilities = ["consumer_cancel_notify"] if notified else []
    peer, other = connect().open(capabilities=capabilities), connect().open()
    peer.queue("q")
    peer.consume("q", consumer_tag="t")
    other.ask(m.QueueDelete(queue="q"))
    if notified:
        peer.expect(m.BasicCancel, consumer_tag="t", nowait=True)
        # Some clients answer, although nobody asks for it.
        peer.send(m.BasicCancelOk("t"))
    peer.send(m.BasicCancel("t"))
    peer.expect(m.BasicCancelOk, consumer_tag="t")


def test_an_acknowledgement_for_a_deleted_queue_is_fine(peer: Peer) -> None:
    peer.queue("q")
    peer.consume("q")
    peer.publish("", "q", b"x")
    tag = peer.expect_delivery(b"x").method.delivery_tag
    peer.ask(m.QueueDelete(queue="q"))
    peer.send(m.BasicAck(tag))
    peer.expect_silence()


@pytest.mark.rule("0-9-1r#103")
def test_a_message_waits_for_a_consumer_that_may_never_come(peer: Peer) -> None:
    peer.queue("q")
    peer.publish("", "q", b"patient", mandatory=True)
    peer.expect_silence()
    assert peer.count("q") == 1
    peer.consume("q", no_ack=True)
    peer.expect_delivery(b"patient")


# --- get ------------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#104")
@pytest.mark.parametrize("no_ack", [True, False])
def test_a_message_got_is_acknowledged_unless_no_ack_was_asked_for(
    connect: Connect, no_ack: bool
) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue("q")
    peer.publish("", "q", b"1").publish("", "q", b"2")
    found = peer.get("q", no_ack=no_ack)
    assert found.method == m.BasicGetOk(1, False, "", "q", 1)
    peer.close()
    assert other.count("q") == (1 if no_ack else 2)


def test_get_of_an_empty_queue_says_so(peer: Peer) -> None:
    peer.queue("q")
    peer.send(m.BasicGet(queue="q"))
    peer.expect(m.BasicGetEmpty)


# --- prefetch -------------------------------------------------------------------------------------


def test_the_prefetch_counts_for_each_consumer_started_later(peer: Peer) -> None:
    peer.queue("a")
    peer.queue("b")
    peer.queue("c")
    peer.ask(m.BasicQos(0, 1))
    peer.consume("a", consumer_tag="one")
    peer.ask(m.BasicQos(0, 2))
    peer.consume("b", consumer_tag="two")
    peer.ask(m.BasicQos(0, 0))
    peer.consume("c", consumer_tag="all")
    for queue in "abc":
        for text in numbered(4):
            peer.publish("", queue, text)
    tags = [peer.expect_delivery().method.consumer_tag for _ in range(7)]
    assert [tags.count(tag) for tag in ("one", "two", "all")] == [1, 2, 4]
    peer.expect_silence()


def test_a_global_prefetch_is_shared_by_the_channel_and_combines_with_each(peer: Peer) -> None:
    peer.queue("q")
    peer.ask(m.BasicQos(0, 2))
    peer.ask(m.BasicQos(0, 3, True))
    for tag in ("one", "two"):
        peer.consume("q", consumer_tag=tag)
    for text in numbered(9):
        peer.publish("", "q", text)
    tags = [peer.expect_delivery().method.consumer_tag for _ in range(3)]
    assert sorted(tags) in (["one", "one", "two"], ["one", "two", "two"])
    peer.expect_silence()
    peer.send(m.BasicAck(3, multiple=True))
    for text in numbered(9)[3:6]:
        peer.expect_delivery(text)
    peer.expect_silence()


def test_get_and_no_ack_do_not_obey_the_prefetch(peer: Peer) -> None:
    peer.queue("q")
    peer.ask(m.BasicQos(0, 1))
    for text in numbered(9):
        peer.publish("", "q", text)
    for text in numbered(3):
        assert peer.get("q", no_ack=False).body == text
    peer.consume("q", no_ack=True)
    for text in numbered(9)[3:]:
        peer.expect_delivery(text)


# --- returns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exchange", "key"), [("", "nowhere"), ("amq.direct", "nowhere")])
def test_a_mandatory_message_that_finds_no_queue_comes_back(
    peer: Peer, exchange: str, key: str
) -> None:
    properties = BasicProperties(message_id="7", headers={"a": [1, None]})
    peer.publish(exchange, key, b"body" * 9, properties, mandatory=True)
    found = peer.expect_content(m.BasicReturn)
    assert found.method == m.BasicReturn(312, "NO_ROUTE", exchange, key)
    assert (found.body, found.properties) == (b"body" * 9, properties)
    peer.publish(exchange, key, b"dropped without a word")
    peer.expect_silence()


@pytest.mark.rule("0-9-1r#099")
def test_publishing_to_an_exchange_that_is_not_there_closes_the_channel(peer: Peer) -> None:
    peer.publish("none", "k", b"body")
    peer.expect_channel_close(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "basic.publish")


# --- channels -------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#052")
def test_many_channels_live_on_one_connection(peer: Peer) -> None:
    numbers = [1, *range(2, 200), 65_535]
    for number in numbers[1:]:
        peer.ask(m.ChannelOpen(), number)
    queues = {number: peer.ask(m.QueueDeclare(exclusive=True), number).queue for number in numbers}
    for number, queue in queues.items():
        peer.publish("", queue, b"%d" % number, channel=number)
    for number, queue in queues.items():
        assert peer.get(queue, channel=number).body == b"%d" % number


@pytest.mark.rule("0-9-1#011", "0-9-1#012")
def test_a_channel_number_is_free_again_after_close(peer: Peer) -> None:
    peer.queue("q")
    for tag in range(1, 4):
        peer.publish("", "q", b"x")
        peer.consume("q", consumer_tag="t")
        found = peer.expect_delivery(b"x")
        # Delivery tags begin anew, and what was out has come back.
        assert (found.method.delivery_tag, found.method.redelivered) == (1, tag > 1)
        if tag > 1:
            peer.expect_delivery(b"x", delivery_tag=2)
            peer.send(m.BasicAck(2))
        peer.ask(m.ChannelClose(200))
        peer.ask(m.ChannelOpen())
    assert peer.count("q") == 1


# --- more than a client reads ---------------------------------------------------------------------

BIG = b"x" * 100_000


@pytest.mark.rule("0-9-1#054", "0-9-1#055")
def test_a_flooded_channel_does_not_hold_up_a_quiet_one(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer, writer = connect_memory().open(channels=(1, 2)), connect_memory().open()
    wire: Any = peer.wire
    for queue, channel in (("flood", 1), ("quiet", 2)):
        peer.queue(queue)
        peer.consume(queue, channel, no_ack=True)
    wire.stop_reading()
    for _ in range(100):
        writer.publish("", "flood", BIG)
    writer.publish("", "quiet", b"hello")
    before: list[bytes] = []
    for _ in range(3):
        wire.reading = True
        wire.flush()
        wire.reading = False
    wire.start_reading()
    while not before or before[-1] != b"hello":
        found = peer.expect_content(m.BasicDeliver, 2 if _next_channel(peer) == 2 else 1)
        before.append(found.body)
    assert len(before) < 40, "the quiet channel waited for the flooded one"
    for _ in range(101 - len(before)):
        peer.expect_delivery(BIG)


def _next_channel(peer: Peer) -> int:
    """The channel of the frame that comes next."""
    if not peer.reader.data:
        peer.reader.data += peer.wire.read(0) or b""
    return int.from_bytes(peer.reader.data[1:3])


def test_a_consumer_that_does_not_read_leaves_messages_in_the_queue(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer, writer = connect_memory().open(), connect_memory().open()
    wire: Any = peer.wire
    peer.queue("q")
    peer.consume("q", no_ack=True)
    wire.stop_reading()
    for _ in range(200):
        writer.publish("", "q", BIG)
    assert wire.connection.out.size < 3_000_000
    assert writer.count("q") > 170
    wire.start_reading()
    for _ in range(200):
        peer.expect_delivery(BIG)
    assert writer.count("q") == 0
