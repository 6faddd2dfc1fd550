"""The class stream of AMQP 0-10: packets, their rate, and which of them are discarded."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import FileProperties, StreamProperties
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.contents import Desk, begin_desks

HEADERS: dict[str, Any] = {"a": 1, "b": "text", "c": [1.5, None]}


@pytest.fixture
def desk(connect010: Connect010) -> Desk:
    """A session with the queue `q`, which is its own."""
    return _desk(connect010)


@pytest.fixture
def timed(memory010: Connect010) -> Desk:
    """The same, with a broker whose clock the test moves."""
    return _desk(memory010)


def _desk(connect: Connect010) -> Desk:
    desk = begin_desks(connect())[0]
    desk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    return desk


def bodies(desk: Desk) -> list[bytes]:
    """The packets that came, which are not kept any more."""
    desk.sync()
    found = [each for each in desk.got if isinstance(each.value, c.StreamDeliver)]
    for each in found:
        desk.got.remove(each)
    return [each.body for each in found]


def test_a_packet_is_delivered_as_it_was_published(desk: Desk) -> None:
    desk.packets("q")
    desk.packet(
        "q", b"tick", content_type="text/plain", content_encoding="utf-8", headers=HEADERS,
        priority=4, timestamp=1_186_000_000,
    )  # fmt: skip
    found = desk.await_one(c.StreamDeliver)
    assert (found.value.consumer_tag, found.value.delivery_tag) == ("t", 1)
    assert ((found.value.exchange or ""), found.value.queue, found.body) == ("", "q", b"tick")
    properties = found.header[0]
    assert isinstance(properties, StreamProperties)
    assert (properties.content_type, properties.content_encoding) == ("text/plain", "utf-8")
    assert (properties.headers, properties.priority) == (HEADERS, 4)


def test_a_packet_of_no_octets_is_a_packet(desk: Desk) -> None:
    desk.packets("q")
    desk.packet("q", b"")
    assert desk.await_one(c.StreamDeliver).body == b""


def test_a_packet_of_many_frames_comes_whole(desk: Desk) -> None:
    body = bytes(range(256)) * 1000
    desk.packets("q")
    desk.packet("q", body)
    assert desk.await_one(c.StreamDeliver).body == body


def test_a_delivered_packet_is_gone_from_its_queue(desk: Desk) -> None:
    desk.packet("q", b"x")
    assert desk.count("q") == 1
    desk.packets("q")
    assert desk.await_one(c.StreamDeliver).body == b"x"
    desk.do(c.StreamCancel("t"))
    assert desk.count("q") == 0
    desk.fails(c.FileAck(1), 406, "unknown delivery tag 1")


def test_packets_come_at_the_rate_that_was_asked_for(timed: Desk) -> None:
    timed.do(c.StreamQos(0, 0, 100))
    timed.await_one(c.StreamQosOk)
    timed.packets("q")
    for _ in range(5):
        timed.packet("q", bytes(100))
    assert len(bodies(timed)) == 1
    for _ in range(4):
        timed.pass_time()
        assert len(bodies(timed)) == 1


def test_the_rate_of_a_connection_holds_for_all_its_sessions(memory010: Connect010) -> None:
    first, second = begin_desks(memory010(), 2)
    for number, desk in enumerate((first, second)):
        desk.do(c.QueueDeclare(f"q{number}", exclusive=True, auto_delete=True))
        desk.packets(f"q{number}", f"t{number}")
    first.do(c.StreamQos(0, 0, 100, True))
    first.await_one(c.StreamQosOk)
    first.packet("q0", bytes(100))
    second.packet("q1", bytes(100))
    assert len(bodies(second)) == 1
    second.pass_time()
    assert len(bodies(second)) == 1


def test_the_least_urgent_packet_is_discarded_for_a_more_urgent_one(timed: Desk) -> None:
    timed.do(c.StreamQos(0, 2, 1))
    timed.await_one(c.StreamQosOk)
    timed.packets("q")
    for number, priority in enumerate([5, 1, 2, 7]):
        timed.packet("q", b"%d" % number, priority=priority)
    got = bodies(timed)
    for _ in range(4):
        timed.pass_time()
        got += bodies(timed)
    assert got == [b"0", b"3", b"2"]


def test_packets_that_wait_for_a_consumer_come_back_when_it_is_cancelled(timed: Desk) -> None:
    timed.do(c.StreamQos(0, 0, 1))
    timed.packets("q")
    for _ in range(3):
        timed.packet("q", b"octets")
    timed.do(c.StreamCancel("t"))
    assert timed.count("q") == 2


def test_a_mandatory_packet_that_goes_nowhere_comes_back(desk: Desk) -> None:
    header = [StreamProperties("text/plain")]
    desk.content(c.StreamPublish(routing_key="nowhere", mandatory=True), header, b"x")
    desk.wait_complete()
    found = desk.await_one(c.StreamReturn)
    assert (found.value.reply_code, found.value.reply_text) == (312, "no-route")
    assert (found.body, found.header[0].content_type) == (b"x", "text/plain")


def test_an_immediate_packet_comes_back_when_nobody_takes_it(desk: Desk) -> None:
    desk.content(c.StreamPublish(routing_key="q", immediate=True), [StreamProperties()], b"x")
    desk.wait_complete()
    assert desk.await_one(c.StreamReturn).value.reply_code == 313
    assert desk.count("q") == 0


def test_a_packet_is_published_when_its_transaction_is_committed(desk: Desk) -> None:
    desk.do(c.TxSelect())
    desk.packet("q", b"x")
    desk.do(c.TxRollback())
    desk.packet("q", b"y")
    assert desk.count("q") == 0
    desk.do(c.TxCommit())
    assert desk.count("q") == 1


def test_a_full_queue_that_refuses_ends_the_session(connect010: Connect010) -> None:
    desk = begin_desks(connect010())[0]
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    desk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True, arguments=full))
    desk.packet("q", b"x")
    desk.packet("q", b"y", wait=False)
    desk.ends(506, "queue 'q' in vhost '/' is full")


@pytest.mark.parametrize("header", [[], [FileProperties("text/plain")]])
def test_a_packet_has_the_properties_of_a_packet(desk: Desk, header: list[Any]) -> None:
    desk.content(c.StreamPublish(routing_key="q"), header, b"x")
    desk.ends(531, "the header holds no stream-properties")


def test_a_publish_to_an_unknown_exchange_is_refused(desk: Desk) -> None:
    desk.content(c.StreamPublish("nowhere", "q"), [StreamProperties()], b"x")
    desk.ends(404, "no exchange 'nowhere'")


def test_a_consumer_needs_a_tag(desk: Desk) -> None:
    desk.fails(c.StreamConsume("q"), 530, "the consumer tag is empty")


def test_a_tag_that_is_used_twice_ends_the_session(desk: Desk) -> None:
    desk.packets("q")
    desk.fails(c.StreamConsume("q", "t"), 530, "attempt to reuse consumer tag 't'")


def test_a_file_comes_as_a_packet_and_a_packet_as_a_file(desk: Desk) -> None:
    desk.packet("q", b"packet", content_type="text/plain")
    desk.files("q", no_ack=True)
    found = desk.take_file()
    assert (found.body, found.properties.content_type) == (b"packet", "text/plain")
    desk.do(c.FileCancel("t"))
    desk.publish_file("q", b"file", properties=FileProperties("a/b", filename="f"))
    desk.packets("q")
    packet = desk.await_one(c.StreamDeliver)
    assert (packet.body, packet.header[0].content_type) == (b"file", "a/b")
    assert packet.header[0].headers["x-amqp-filename"] == "f"
