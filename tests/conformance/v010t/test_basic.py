"""The class basic, deprecated in favour of message and still served (class 60)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.typed_fields import FieldDialect, decode_typed, encode_typed
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


def count(peer: Peer, queue: str, channel: int = 1) -> int:
    """Messages that wait in a queue."""
    declared: m.QueueDeclareOk = peer.ask(m.QueueDeclare(queue, passive=True), channel)
    return declared.message_count


# --- tags and acknowledgements ------------------------------------------------------------------


@pytest.mark.rule("0-10t#005", "0-10t#006", "0-10t#116")
def test_unacknowledged_messages_come_again_as_redelivered(connect: Connect, name: str):
    peer = connect().open()
    peer.queue(name)
    peer.consume(name)
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("", name, body)
    found = [peer.expect_content(m.BasicDeliver) for _ in range(4)]
    peer.run(m.BasicAck(found[1].method.delivery_tag, multiple=True))
    peer.close()
    again = connect().open()
    again.consume(name)
    again.expect_delivery(b"3", redelivered=True)
    again.expect_delivery(b"4", redelivered=True)


@pytest.mark.rule("0-10t#115")
def test_a_consumer_without_acknowledgements_gets_everything_once(peer: Peer, name: str):
    peer.queue(name)
    peer.consume(name, no_ack=True)
    for number in range(20):
        peer.publish("", name, b"%d" % number)
    for number in range(20):
        peer.expect_delivery(b"%d" % number)
    assert count(peer, name) == 0


# --- keeping messages ---------------------------------------------------------------------------


@pytest.mark.rule("0-10t#108", "0-10t#110")
def test_a_queue_that_grows_long_loses_nothing(memory_peer: Peer):
    memory_peer.queue("q", durable=True)
    persistent = BasicProperties(delivery_mode=2)
    for number in range(300):
        kind = persistent if number % 2 else BasicProperties()
        memory_peer.publish("", "q", number.to_bytes(2) + bytes(8_000), kind)
    memory_peer.settle()
    for number in range(300):
        assert memory_peer.get("q", no_ack=True).body[:2] == number.to_bytes(2)


@pytest.mark.rule("0-10t#109")
def test_a_publisher_is_held_back_by_not_being_read():
    site = MemorySite(memory_high=1_000_000)
    peer, other = Peer(site, site.connect()).open(), Peer(site, site.connect()).open()
    peer.queue("q")
    while not peer.wire.connection.paused:  # type: ignore[attr-defined]
        peer.publish("", "q", bytes(100_000))
    while count(other, "q"):
        other.get("q", no_ack=True)
    site.turn()
    assert not peer.wire.connection.paused  # type: ignore[attr-defined]
    peer.settle()


@pytest.mark.rule("0-10t#111")
def test_over_its_limit_a_queue_dead_letters_from_the_head(peer: Peer, name: str):
    dead = f"{name}-dead"
    peer.queue(dead)
    arguments = {
        "x-max-length": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead,
    }
    peer.queue(name, arguments=arguments)
    peer.publish("", name, b"one")
    peer.publish("", name, b"two")
    assert peer.get(dead, no_ack=True).body == b"one"
    assert peer.get(name, no_ack=True).body == b"two"


@pytest.mark.departs("0-10t#112")
def test_a_queue_without_a_highest_priority_keeps_its_order(peer: Peer, name: str):
    peer.queue(name)
    for priority in (0, 9, 4):
        peer.publish("", name, b"%d" % priority, BasicProperties(priority=priority))
    assert [peer.get(name, no_ack=True).body for _ in range(3)] == [b"0", b"9", b"4"]


@pytest.mark.rule("0-10t#113")
def test_a_queue_with_priorities_has_ten_levels(peer: Peer, name: str):
    peer.queue(name, arguments={"x-max-priority": 9})
    for priority in range(10):
        peer.publish("", name, b"%d" % priority, BasicProperties(priority=priority))
    assert [peer.get(name, no_ack=True).body for _ in range(10)] == [
        b"%d" % priority for priority in range(9, -1, -1)
    ]


@pytest.mark.rule("0-10t#114")
def test_messages_of_one_priority_keep_their_order_whether_persistent_or_not(peer: Peer, name: str):
    peer.queue(name, durable=True, arguments={"x-max-priority": 9})
    for number, mode in zip(range(6), itertools.cycle((1, 2)), strict=False):
        properties = BasicProperties(priority=5, delivery_mode=mode)
        peer.publish("", name, b"%d" % number, properties)
    bodies = [peer.get(name, no_ack=True).body for _ in range(6)]
    assert bodies == [b"%d" % number for number in range(6)]


def test_a_queue_s_messages_expire_whoever_published_them(memory: MemorySite, memory_peer: Peer):
    memory_peer.queue("q", arguments={"x-message-ttl": 1_000})
    memory_peer.publish("", "q", b"old")
    memory.pass_time(2)
    memory_peer.send(m.BasicGet("q"))
    memory_peer.expect(m.BasicGetEmpty)


# --- qos ----------------------------------------------------------------------------------------


# --- consumers ----------------------------------------------------------------------------------


@pytest.mark.rule("0-10t#121", "0-10t#132")
@pytest.mark.parametrize("method", [m.BasicConsume(), m.BasicGet()], ids=lambda each: each.NAME)
def test_no_name_and_no_queue_declared_before_ends_the_connection(peer: Peer, method: m.Method):
    peer.send(method)
    peer.expect_connection_close(530, method.NAME, "name of the queue is empty")


@pytest.mark.rule("0-10t#121")
def test_no_name_means_the_queue_declared_last(peer: Peer, name: str):
    peer.queue(name)
    peer.consume("")
    peer.publish("", name, b"x")
    peer.expect_delivery(b"x")


@pytest.mark.rule("0-10t#123")
def test_a_tag_of_another_session_cancels_nothing(connect: Connect, name: str):
    peer = connect().open(channels=(1, 2))
    peer.queue(name)
    tag = peer.consume(name, channel=1)
    assert peer.consume(name, channel=2) != tag
    peer.ask(m.BasicCancel(tag), 2)
    assert peer.ask(m.QueueDeclare(name, passive=True)).consumer_count == 2


def test_deliveries_are_numbered_commands(peer: Peer, name: str):
    peer.queue(name)
    peer.consume(name)
    peer.publish("", name, b"x")
    peer.expect_delivery(b"x")
    assert peer.received() == 3
    peer.complete(3)
    peer.settle()


# --- publishing ---------------------------------------------------------------------------------


def test_an_exchange_that_there_is_not_closes_the_channel(peer: Peer, name: str):
    peer.publish(name, "k", b"x")
    peer.expect_channel_close(404, "basic.publish", name)


def test_a_mandatory_message_without_a_queue_is_rejected_by_its_number(peer: Peer, name: str):
    peer.queue(name)
    number = peer.publish("", f"{name}-none", b"x", mandatory=True)
    peer.expect(m.BasicReject, delivery_tag=number, requeue=False)
    assert peer.settle().cumulative_execution_mark == number


def test_an_immediate_message_without_a_consumer_is_rejected(peer: Peer, name: str):
    peer.queue(name)
    number = peer.publish("", name, b"x", immediate=True)
    peer.expect(m.BasicReject, delivery_tag=number)
    assert count(peer, name) == 0
    peer.consume(name, no_ack=True)
    peer.publish("", name, b"now", immediate=True)
    peer.expect_delivery(b"now")


def test_a_published_message_is_complete_when_it_is_on_disk(peer: Peer, name: str):
    peer.queue(name, durable=True)
    for _ in range(10):
        peer.publish("", name, b"x", BasicProperties(delivery_mode=2))
    assert peer.settle().cumulative_execution_mark == 11


# --- reject and recover -------------------------------------------------------------------------


@pytest.mark.rule("0-10t#134", "0-10t#135", "0-10t#136")
def test_a_rejected_message_is_dropped_or_dead_lettered(peer: Peer, name: str):
    dead = f"{name}-dead"
    peer.queue(dead)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    peer.queue(name, arguments=arguments)
    peer.publish("", name, b"bad")
    peer.run(m.BasicReject(peer.get(name).method.delivery_tag))
    assert peer.get(dead, no_ack=True).body == b"bad"
    assert count(peer, name) == 0


@pytest.mark.rule("0-10t#134", "0-10t#137")
def test_a_requeued_message_goes_to_another_session_that_is_ready(connect: Connect, name: str):
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    peer.consume(name)
    peer.publish("", name, b"x")
    tag = peer.expect_delivery(b"x").method.delivery_tag
    other.consume(name)
    peer.run(m.BasicReject(tag, requeue=True))
    other.expect_delivery(b"x", redelivered=True)
    peer.expect_silence()


@pytest.mark.rule("0-10t#137")
def test_a_requeued_message_waits_for_another_session(connect: Connect, name: str):
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    peer.consume(name)
    peer.publish("", name, b"x")
    tag = peer.expect_delivery(b"x").method.delivery_tag
    peer.run(m.BasicReject(tag, requeue=True))
    peer.send(m.BasicGet(name))
    peer.expect(m.BasicGetEmpty)
    other.consume(name)
    if isinstance(peer.site, MemorySite):
        peer.site.pass_time(1)
    other.expect_delivery(b"x", redelivered=True)


@pytest.mark.rule("0-10t#137")
def test_a_requeued_message_goes_back_when_its_session_ends(connect: Connect, name: str):
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    peer.publish("", name, b"x")
    peer.run(m.BasicReject(peer.get(name).method.delivery_tag, requeue=True))
    peer.ask(m.ChannelClose())
    assert other.get(name, no_ack=True).method.redelivered


@pytest.mark.rule("0-10t#137")
def test_without_another_consumer_a_requeued_message_is_dead_lettered(peer: Peer, name: str):
    dead = f"{name}-dead"
    peer.queue(dead)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    peer.queue(name, arguments=arguments)
    peer.publish("", name, b"x")
    peer.run(m.BasicReject(peer.get(name).method.delivery_tag, requeue=True))
    assert peer.get(dead, no_ack=True).body == b"x"


@pytest.mark.rule("0-10t#138")
def test_without_requeue_the_original_recipient_has_it_again(connect: Connect, name: str):
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    peer.consume(name)
    peer.publish("", name, b"mine")
    peer.expect_delivery(b"mine")
    other.consume(name)
    peer.send(m.BasicRecover(requeue=False))
    again = peer.expect_delivery(b"mine", redelivered=True)
    other.expect_silence()
    peer.run(m.BasicAck(again.method.delivery_tag))


@pytest.mark.rule("0-10t#130")
def test_deliveries_are_counted_and_a_limit_leads_to_dead_letters(peer: Peer, name: str):
    dead = f"{name}-dead"
    peer.queue(dead)
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead,
    }
    peer.queue(name, durable=True, arguments=arguments)
    peer.publish("", name, b"poison", BasicProperties(delivery_mode=2))
    peer.settle()
    peer.consume(name)
    seen = []
    for _ in range(3):
        found = peer.expect_delivery(b"poison")
        seen.append((found.properties.headers or {}).get("x-delivery-count"))
        peer.send(m.BasicRecover(requeue=True))
    assert seen == [None, 1, 2]
    peer.consume(dead)
    peer.expect_delivery(b"poison")


# --- header tables ------------------------------------------------------------------------------


def test_a_peer_that_writes_the_document_s_types_reads_them_too(peer: Peer, name: str):
    peer.queue(name)
    headers = {"flag": True, "n": 2**40, "text": "x", "list": [1, "a"], "ratio": 0.5}
    raw = b"\x20\x00" + encode_typed(headers, FieldDialect.TYPED)
    peer.publish("", name, b"x", raw)
    found = peer.get(name, no_ack=True)
    table, _ = decode_typed(found.raw, 2)
    assert (table, table.dialect) == (headers, FieldDialect.TYPED)


def test_a_peer_that_writes_texts_and_numbers_is_sent_nothing_else(connect: Connect, name: str):
    typed, plain = connect().open(), connect().open()
    typed.queue(name)
    raw = b"\x20\x00" + encode_typed({"flag": True, "n": 1}, FieldDialect.TYPED)
    typed.publish("", name, b"x", raw)
    typed.settle()
    table, _ = decode_typed(plain.get(name, no_ack=True).raw, 2)
    assert (table, table.dialect) == ({"flag": "true", "n": 1}, FieldDialect.PLAIN)


def test_a_queue_s_arguments_may_be_of_the_document_s_types(peer: Peer, name: str):
    arguments = encode_typed({"x-max-length": 1}, FieldDialect.TYPED)
    peer.ask(m.QueueDeclare(name, arguments=arguments))  # type: ignore[arg-type]
    peer.publish("", name, b"one")
    peer.publish("", name, b"two")
    assert peer.get(name, no_ack=True).body == b"two"
    peer.send(s.ExecutionFlush())
    peer.expect(s.ExecutionComplete)
