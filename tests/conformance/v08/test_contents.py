"""Files and packets beside everything else: tickets, priorities, restarts, transactions, basic."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.content import BasicProperties, decode_properties
from harebell.wire.v09.methods_older import (
    FileAck,
    FileConsume,
    FileOpen,
    FileOpenOk,
    FilePublish,
    FileReject,
    StreamConsume,
    StreamPublish,
)
from harebell.wire.v09.property_list import STREAM, FileProperties, StreamProperties
from tests.conformance.conftest import StartSite
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v08.contents import Connect08, Peer08

rule = pytest.mark.rule
FULL = FileProperties("a/b", "gzip", {"h": 1}, 7, "back", "id-1", "x.pdf", 1_186_000_000, "k")


class Peer09(Peer08):
    """The same in 0-9, whose methods consume have a filter."""

    SPEC = AMQP_0_9
    GREETING = b"AMQP\x01\x01\x00\x09"


# --- tickets ----------------------------------------------------------------------------------


@rule("0-8#125", "0-8#149")
@pytest.mark.parametrize("kind", [FileConsume, StreamConsume])
def test_consuming_needs_a_ticket_for_reading(peer08: Peer08, kind: Any):
    queue = peer08.queue("contents")
    good = peer08.ticket("read")
    peer08.ask(kind(queue=queue, ticket=good))
    bad = peer08.ticket("write")
    peer08.send(kind(queue=queue, ticket=bad))
    peer08.refused(403, "does not give read access")


@rule("0-8#132")
def test_publishing_a_file_needs_a_ticket_for_writing(peer08: Peer08):
    queue = peer08.queue("contents")
    peer08.stage("ticketed", b"x")
    good = peer08.ticket("write")
    peer08.send(FilePublish("", queue, identifier="ticketed", ticket=good))
    assert peer08.count(queue) == 1
    peer08.stage("ticketed", b"x")
    bad = peer08.ticket("read")
    peer08.send(FilePublish("", queue, identifier="ticketed", ticket=bad))
    peer08.refused(403, "does not give write access")


@rule("0-8#153")
def test_publishing_a_packet_needs_a_ticket_for_writing(peer08: Peer08):
    queue = peer08.queue("contents")
    good = peer08.ticket("write")
    peer08.send_content(StreamPublish("", queue, ticket=good), STREAM, b"\0\0", b"x")
    assert peer08.count(queue) == 1
    bad = peer08.ticket("read")
    peer08.send(StreamPublish("", queue, ticket=bad))
    peer08.refused(403, "does not give write access")


# --- priorities -------------------------------------------------------------------------------


@pytest.mark.departs("0-8#121")
@pytest.mark.parametrize(
    ("arguments", "order"), [({}, [b"4", b"5"]), ({"x-max-priority": 9}, [b"5", b"4"])]
)
def test_files_have_levels_where_the_queue_was_declared_with_them(
    peer08: Peer08, arguments: dict[str, Any], order: list[bytes]
):
    queue = peer08.queue("contents", arguments=arguments)
    for priority in (4, 5):
        peer08.publish_file(queue, b"%d" % priority, properties=FileProperties(priority=priority))
    peer08.files(queue)
    assert [peer08.take_file().body for _ in range(2)] == order


# --- the disk ---------------------------------------------------------------------------------


@rule("0-8#119")
@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGKILL])
def test_a_file_that_was_published_survives_the_broker(start_site: StartSite, way: signal.Signals):
    body = bytes(range(256)) * 1_000
    site = start_site()
    peer = Peer08(site, site.connect())
    peer.open()
    peer.ask(m.QueueDeclare("kept", durable=True))
    peer.ask(m.TxSelect())
    peer.publish_file("kept", body, properties=FULL)
    peer.ask(m.TxCommit())
    peer.send(FileOpen("begun", len(body)))
    peer.expect(FileOpenOk, staged_size=0)
    peer.stage("whole", body)
    peer.expect_silence()
    site.process.send_signal(way)
    site.process.wait(60)
    peer.lose()

    site = start_site()
    peer = Peer08(site, site.connect())
    peer.open()
    assert peer.count("kept") == 1
    assert peer.stage("whole", body) == len(body)
    peer.send(FilePublish("", "kept", identifier="whole"))
    peer.files("kept", no_ack=True)
    assert peer.take_file().body == body
    found = peer.take_file()
    assert found.body == body
    peer.done()
    site.close()


# --- transactions -----------------------------------------------------------------------------


def test_files_and_their_acknowledgements_are_part_of_a_transaction(peer08: Peer08):
    queue = peer08.queue("contents")
    peer08.ask(m.TxSelect())
    peer08.publish_file(queue, b"rolled back", "one")
    assert peer08.count(queue) == 0
    peer08.ask(m.TxRollback())
    peer08.publish_file(queue, b"kept", "two")
    peer08.ask(m.TxCommit())
    assert peer08.count(queue) == 1
    peer08.files(queue)
    peer08.take_file()
    peer08.send(FileAck(1))
    peer08.ask(m.TxRollback())
    peer08.send(FileAck(1))
    peer08.ask(m.TxCommit())
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0


# --- other classes and versions ---------------------------------------------------------------


def test_a_peer_of_0_9_1_reads_a_file_and_a_packet(peer08: Peer08, site: Site):
    queue = peer08.queue("contents")
    peer08.publish_file(queue, b"file", properties=FULL)
    peer08.packet(queue, b"packet", content_type="a/b", priority=3)
    peer = Peer(site, site.connect()).open()
    found = peer.get(queue)
    assert found.body == b"file"
    properties = found.properties
    assert properties.headers == {"h": 1, "x-amqp-filename": "x.pdf"}
    assert (properties.delivery_mode, properties.message_id) == (2, "id-1")
    found = peer.get(queue)
    assert found.body == b"packet"
    assert (found.properties.content_type, found.properties.priority) == ("a/b", 3)
    peer.done()


def test_a_message_of_0_9_1_is_consumed_as_a_file_and_as_a_packet(peer08: Peer08, site: Site):
    queue = peer08.queue("contents")
    peer = Peer(site, site.connect()).open()
    sent = BasicProperties(
        content_type="a/b", delivery_mode=1, correlation_id="c", type="t", app_id="a"
    )
    for body in (b"one", b"two"):
        peer.publish("", queue, body, sent)
    peer.expect_silence()
    peer.done()
    tag = peer08.files(queue, no_ack=True)
    found = peer08.take_file()
    assert found.body == b"one"
    assert found.properties.headers == {
        "x-amqp-delivery-mode": 1, "x-amqp-correlation-id": "c", "x-amqp-type": "t",
        "x-amqp-app-id": "a",
    }  # fmt: skip
    assert tag
    assert peer08.take_file().body == b"two"


def test_a_header_that_0_8_cannot_read_is_made_readable(peer08: Peer08, site: Site):
    queue = peer08.queue("contents")
    peer = Peer(site, site.connect()).open()
    peer.publish("", queue, b"x", BasicProperties(headers={"yes": True, "list": [1]}))
    peer.expect_silence()
    peer.done()
    peer08.files(queue, no_ack=True)
    headers = peer08.take_file().properties.headers
    assert headers == {"yes": 1, "list": {"0": 1}, "x-amqp-delivery-mode": 0}


def test_a_file_comes_back_unchanged_from_a_dead_letter_queue(peer08: Peer08):
    dead = peer08.queue("dead")
    arguments = {
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, "x-message-ttl": 0,
    }  # fmt: skip
    queue = peer08.queue("contents", arguments=arguments)
    peer08.publish_file(queue, b"x", properties=FULL)
    peer08.wait_for_count(dead, 1)
    peer08.files(dead)
    found = peer08.take_file()
    assert found.properties.filename == "x.pdf"
    assert found.properties.headers["x-first-death-reason"] == "expired"


def test_copies_go_to_the_keys_in_the_headers(peer08: Peer08):
    queues = [peer08.queue(name) for name in ("one", "two", "three")]
    headers = {"CC": ["two"], "BCC": ["three"]}
    peer08.send_content(StreamPublish("", "one"), STREAM, StreamProperties(headers=headers), b"x")
    assert [peer08.count(queue) for queue in queues] == [1, 1, 1]
    # 0-8 knows no arrays.
    raw = peer08.get("three").raw
    assert decode_properties(raw).headers == {"CC": {"0": "two"}}


def test_a_header_with_another_user_is_refused(peer08: Peer08):
    headers = {"x-amqp-user-id": "somebody"}
    peer08.send_content(StreamPublish("", "q"), STREAM, StreamProperties(headers=headers), b"x")
    peer08.refused(406, "user_id property set to 'somebody' but authenticated user was 'guest'")


def test_0_9_has_the_same_classes_with_filters(site: Site):
    peer = Peer09(site, site.connect())
    peer.open()
    queue = peer.queue("contents-0-9")
    peer.ask(FileConsume(queue=queue, consumer_tag="f", filter={"a": 1}))
    peer.publish_file(queue, b"file", properties=FULL)
    assert peer.take_file(consumer_tag="f").body == b"file"
    peer.ask(m.QueueDelete(queue=queue))
    queue = peer.queue("contents-0-9")
    peer.ask(StreamConsume(queue=queue, consumer_tag="s", filter={}))
    peer.packet(queue, b"packet")
    peer.take_packet(b"packet", consumer_tag="s")
    peer.ask(m.QueueDelete(queue=queue))
    peer.done()


def test_small_frames_carry_large_files(connect08: Connect08):
    body = bytes(range(256)) * 400
    peer = connect08().open(frame_max=4_096)
    queue = peer.queue("contents")
    peer.publish_file(queue, body)
    peer.files(queue)
    assert peer.take_file().body == body


@pytest.mark.departs("0-8#057")
def test_any_consumer_gets_what_is_next_in_the_words_of_its_class(connect08: Connect08):
    peer = connect08().open(channels=(1, 2, 3))
    queue = peer.queue("contents")
    peer.publish_file(queue, b"file")
    peer.packet(queue, b"packet")
    peer.publish("", queue, b"message")
    peer.ask(StreamConsume(queue=queue), 1)
    bodies = [peer.take_packet().body for _ in range(3)]
    assert bodies == [b"file", b"packet", b"message"]


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_every_kind_of_queue_holds_files_and_packets(peer08: Peer08, kind: str):
    arguments = {"x-queue-type": kind}
    name = f"contents-{kind}"
    queue = peer08.queue(name, durable=True, arguments=arguments)
    peer08.publish_file(queue, b"file", properties=FULL)
    peer08.packet(queue, b"packet", priority=3)
    peer08.wait_for_count(queue, 2)
    offset = {"x-stream-offset": "first"} if kind == "stream" else {}
    if offset:
        # 0-8 has no filter to say where a consumer of a stream begins: 0-9 has.
        peer09 = Peer09(peer08.site, peer08.site.connect())
        peer09.open()
        peer09.ask(FileConsume(queue=queue, filter=offset))
        assert peer09.take_file().body == b"file"
        assert peer09.take_file().body == b"packet"
        peer09.done()
        return
    peer08.ask(FileConsume(queue=queue))
    found = peer08.take_file()
    assert (found.body, found.properties.filename) == (b"file", "x.pdf")
    assert peer08.take_file().body == b"packet"
    peer08.send(FileAck(0, multiple=True))
    peer08.wait_for_count(queue, 0)


def test_a_rejected_file_of_a_quorum_queue_goes_to_somebody_else(peer08: Peer08, other08: Peer08):
    queue = peer08.queue("contents-q", durable=True, arguments={"x-queue-type": "quorum"})
    peer08.files(queue)
    peer08.publish_file(queue, b"x")
    peer08.take_file()
    peer08.send(FileReject(1, requeue=True))
    peer08.expect_silence()
    other08.files(queue)
    assert other08.take_file(redelivered=True).body == b"x"
    other08.send(FileAck(1))
    other08.expect_silence()


def test_the_firehose_shows_files_and_packets(connect08_memory: Connect08, memory: Any):
    vhost = memory.broker.vhosts["/"]
    vhost.set_metadata(replace(vhost.metadata, tracing=True))
    peer = connect08_memory().open()
    queue = peer.queue("contents")
    trace = peer.queue("trace")
    # In 0-8 nobody binds to an internal exchange.
    watcher = Peer(memory, memory.connect()).open()
    watcher.ask(m.QueueBind(trace, "amq.rabbitmq.trace", "#"))
    peer.publish_file(queue, b"file", properties=FULL)
    peer.packet(queue, b"packet")
    peer.files(queue)
    for _ in range(2):
        peer.take_file()
    found = [peer.get(trace) for _ in range(4)]
    assert [each.body for each in found] == [b"file", b"packet", b"file", b"packet"]
    assert [each.method.routing_key for each in found] == [
        "publish.", "publish.", f"deliver.{queue}", f"deliver.{queue}",
    ]  # fmt: skip


def test_interceptors_stamp_files_and_packets():
    site = MemorySite(stamp_time=True, stamp_node=True)
    peer = Peer08(site, site.connect())
    peer.open()
    queue = peer.queue("contents")
    peer.publish_file(queue, b"file", properties=FULL)
    peer.packet(queue, b"packet")
    peer.files(queue)
    for _ in range(2):
        properties = peer.take_file().properties
        assert set(properties.headers) >= {"timestamp_in_ms", "x-routed-by"}
        assert properties.timestamp is not None
        assert properties.timestamp != FULL.timestamp
    peer.done()
