"""The class file of AMQP 0-10: staging, publishing, delivering, acknowledging, rejecting."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harebell.front.limits import MESSAGE_MAX_BYTES
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.structs import DeliveryProperties, FileProperties, StreamProperties
from tests.conformance.arriving import unique
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.contents import Desk, begin_desks
from tests.conformance.v010.raw import Peer010

BODY = random.Random(9).randbytes(300_000)
HEADERS: dict[str, Any] = {"a": 1, "b": "text", "c": {"d": [True, None, 2.5]}}
FULL = FileProperties(
    "application/pdf", "gzip", HEADERS, 7, "back", "id-1", "report.pdf", 1_186_000_000, "cluster"
)


@pytest.fixture
def desk(connect010: Connect010) -> Desk:
    """A session with the queue `q`, which is its own."""
    desk = begin_desks(connect010())[0]
    desk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    return desk


@pytest.fixture
def shared(connect010: Connect010) -> str:
    """A queue that other sessions may use; it goes when it was not used for a while."""
    name = unique("files-010")
    owner = begin_desks(connect010())[0]
    owner.do(c.QueueDeclare(name, arguments={"x-expires": 600_000}))
    return name


# --- from the publisher to the consumer ---------------------------------------------------------


def test_a_staged_file_is_published_and_delivered_staged(desk: Desk) -> None:
    desk.files("q")
    desk.publish_file("q", BODY, properties=FULL)
    found = desk.take_file()
    assert found.body == BODY
    assert values_of(found.properties) == values_of(FULL)
    deliver = found.deliver
    assert (deliver.consumer_tag, deliver.delivery_tag, deliver.redelivered) == ("t", 1, False)
    assert ((deliver.exchange or ""), deliver.routing_key) == ("", "q")
    desk.do(c.FileAck(1))


def values_of(properties: FileProperties) -> Any:
    """The properties with the moment as seconds, however it was read."""
    moment = properties.timestamp
    seconds = moment if isinstance(moment, int) or moment is None else int(moment.timestamp())
    values = {name: getattr(properties, name) for name in properties.__struct_fields__}
    return {**values, "timestamp": seconds}


def test_a_file_of_no_octets_is_a_file(desk: Desk) -> None:
    desk.files("q")
    desk.publish_file("q", b"")
    assert desk.take_file().body == b""


def test_files_that_wait_come_one_after_the_other(desk: Desk) -> None:
    for number in range(3):
        desk.publish_file("q", b"%d" % number, f"id-{number}")
    assert desk.count("q") == 3
    desk.files("q", no_ack=True)
    for number in range(3):
        found = desk.take_file()
        assert (found.body, found.deliver.delivery_tag) == (b"%d" % number, number + 1)
    assert desk.count("q") == 0


def test_a_client_that_has_a_part_of_a_file_gets_the_rest(
    connect010: Connect010, shared: str
) -> None:
    first = begin_desks(connect010())[0]
    first.publish_file(shared, BODY)
    first.files(shared)
    opened = first.await_one(c.FileOpen).value
    first.peer.wire.drop()
    first.peer.ended = True
    second = begin_desks(connect010())[0]
    second.wait_for_count(shared, 1)
    second.files(shared)
    found = second.take_file(BODY[:100_000])
    assert found.deliver.identifier == opened.identifier
    assert found.deliver.redelivered
    assert (found.body, found.sent) == (BODY, BODY[100_000:])
    second.do(c.FileAck(1))


def test_a_client_cannot_have_more_than_there_is(desk: Desk) -> None:
    desk.files("q")
    desk.publish_file("q", b"short")
    desk.await_one(c.FileOpen)
    desk.fails(c.FileOpenOk(6), 406, "staged-size 6 is more than the 5 octets")


def test_an_open_ok_that_answers_nothing_ends_the_session(desk: Desk) -> None:
    desk.fails(c.FileOpenOk(0), 503, "file.open-ok answers no file.open")


# --- staging at the broker ----------------------------------------------------------------------


def test_staging_resumes_where_the_connection_broke(connect010: Connect010) -> None:
    name = unique("broken")
    first = begin_desks(connect010())[0]
    first.do(c.FileOpen(name, len(BODY)))
    assert first.await_one(c.FileOpenOk).value.staged_size == 0
    half = 2 * (first.peer.frame_max - 12)
    first.begin_stage([FULL], BODY[:half])
    first.peer.quiet(first.channel)
    first.peer.wire.drop()
    first.peer.ended = True
    second = begin_desks(connect010())[0]
    second.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    second.do(c.FileOpen(name, len(BODY)))
    assert second.await_one(c.FileOpenOk).value.staged_size == half
    second.content(c.FileStage(), [FULL], BODY[half:])
    second.wait_complete()
    second.files("q", no_ack=True)
    second.do(c.FilePublish(routing_key="q", identifier=name))
    assert second.take_file().body == BODY


def test_a_session_that_comes_back_sends_its_stage_again(connect010: Connect010) -> None:
    name = unique("again")
    peer = connect010().open()
    peer.attach(name, timeout=60)
    first = Desk(peer)
    first.do(c.FileOpen(name, len(BODY)))
    first.await_one(c.FileOpenOk)
    first.begin_stage([FULL], BODY[: peer.frame_max - 12])
    peer.quiet()
    peer.wire.drop()
    peer.ended = True
    peer = connect010().open()
    peer.send(k.SessionAttach(name.encode(), force=True))
    peer.expect(k.SessionAttached)
    peer.names[1] = name.encode()
    peer.expect(k.SessionFlush, expected=True)
    peer.send(k.SessionExpected(((1, 1),)), k.SessionCommandPoint(1, 0))
    peer.expect_later(k.SessionCommandPoint)
    second = Desk(peer)
    second.sent = 1
    second.content(c.FileStage(), [FULL], BODY)
    second.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    second.files("q", no_ack=True)
    second.do(c.FilePublish(routing_key="q", identifier=name))
    second.got = [found for found in second.got if found.value.NAME.startswith("file.")]
    assert second.take_file().body == BODY
    # It goes with its connection now, and its queue with it.
    peer.send(k.SessionRequestTimeout(0))
    peer.expect_later(k.SessionTimeout, timeout=0)


def test_the_broker_says_from_which_octet_it_wants_a_file(desk: Desk) -> None:
    name = unique("once more")
    desk.stage(name, BODY)
    assert desk.stage(name, BODY) == len(BODY)


def test_more_than_was_announced_ends_the_session(desk: Desk) -> None:
    desk.do(c.FileOpen(unique("more"), 3))
    desk.await_one(c.FileOpenOk)
    desk.content(c.FileStage(), [FULL], b"four")
    desk.ends(406, "file.stage has more than the 3 octets")


def test_less_than_was_announced_ends_the_session_and_stays(connect010: Connect010) -> None:
    name = unique("less")
    first, second = begin_desks(connect010(), 2)
    first.do(c.FileOpen(name, 3))
    first.await_one(c.FileOpenOk)
    first.content(c.FileStage(), [FULL], b"ab")
    first.ends(406, "file.stage ends early: 2 of the 3 octets")
    assert second.stage(name, b"abc") == 2


def test_a_file_larger_than_a_message_may_be_is_refused_before_it_is_sent(desk: Desk) -> None:
    desk.fails(c.FileOpen("id", MESSAGE_MAX_BYTES + 1), 506, "is larger than configured max size")


def test_stage_needs_an_open(desk: Desk) -> None:
    desk.content(c.FileStage(), [FULL], b"x")
    desk.ends(503, "file.stage without file.open before it")


@pytest.mark.parametrize("command", [c.FileOpen(None, 1), c.FilePublish("", "q")])
def test_a_file_without_an_identifier_ends_the_session(desk: Desk, command: c.Command) -> None:
    desk.fails(command, 531, f"{command.NAME} has no identifier")


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ([], "the header holds no file-properties"),
        ([StreamProperties("text/plain")], "the header holds no file-properties"),
        ([FULL, DeliveryProperties(ttl=5)], "the header holds more than file-properties"),
    ],
)
def test_a_stage_has_the_properties_of_a_file_and_nothing_else(
    desk: Desk, header: list[Any], text: str
) -> None:
    desk.do(c.FileOpen(unique("header"), 1))
    desk.await_one(c.FileOpenOk)
    desk.content(c.FileStage(), header, b"x")
    desk.ends(531, text)


def test_a_client_that_stages_the_same_file_takes_it_over(connect010: Connect010) -> None:
    name = unique("taken")
    first, second = begin_desks(connect010(), 2)
    first.do(c.FileOpen(name, 3))
    first.await_one(c.FileOpenOk)
    second.do(c.FileOpen(name, 3))
    second.await_one(c.FileOpenOk)
    first.content(c.FileStage(), [FULL], b"abc")
    first.ends(405, "is staged by another channel now")


# --- publishing ---------------------------------------------------------------------------------


def test_a_publish_of_nothing_staged_ends_the_session(desk: Desk) -> None:
    desk.fails(c.FilePublish("", "q", identifier="none"), 404, "no file 'none' is staged")


def test_a_publish_of_half_a_file_ends_the_session(connect010: Connect010) -> None:
    name = unique("half")
    first, second = begin_desks(connect010(), 2)
    first.do(c.FileOpen(name, 3))
    first.await_one(c.FileOpenOk)
    first.content(c.FileStage(), [FULL], b"ab")
    first.ends(406, "file.stage ends early")
    second.fails(c.FilePublish("", "q", identifier=name), 406, "is not whole: 2 of 3 octets")


def test_a_publish_that_overtakes_its_staging_is_complete_after_it(connect010: Connect010) -> None:
    name = unique("overtaken")
    first, second = begin_desks(connect010(), 2)
    second.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    first.do(c.FileOpen(name, 3))
    first.await_one(c.FileOpenOk)
    second.peer.send(c.FilePublish("", "q", identifier=name), channel=2, sync=True)
    second.sent += 1
    second.peer.send(k.SessionFlush(expected=True), channel=2)
    second.peer.expect_later(k.SessionExpected, 2)
    first.content(c.FileStage(), [FULL], b"abc")
    second.wait_complete()
    assert second.count("q") == 1


def test_a_publish_whose_staging_breaks_off_ends_its_session(connect010: Connect010) -> None:
    name = unique("broken off")
    first, second = begin_desks(connect010(), 2)
    first.do(c.FileOpen(name, 3))
    first.await_one(c.FileOpenOk)
    second.sync()
    second.peer.send(c.FilePublish("", "q", identifier=name), c.ExecutionSync(), channel=2)
    first.content(c.FileStage(), [FULL], b"ab")
    second.peer.expect_exception(406, "is not whole: 2 of 3 octets", second.sent, 2)
    first.ends(406, "file.stage ends early")


def test_a_full_queue_lets_a_file_wait_and_never_loses_one(connect010: Connect010) -> None:
    name = unique("full")
    desk = begin_desks(connect010())[0]
    desk.do(c.QueueDeclare("full", exclusive=True, auto_delete=True, arguments={"x-max-length": 1}))
    desk.publish_file("full", b"one", f"{name}-1")
    desk.stage(f"{name}-2", b"two")
    desk.peer.send(c.FilePublish("", "full", identifier=f"{name}-2"), sync=True)
    desk.sent += 1
    # What follows is carried out, and complete only after the file.
    desk.peer.send(c.FileConsume("full", "t"))
    desk.sent += 1
    assert desk.await_one(c.FileConsumeOk).value.consumer_tag == "t"
    desk.await_one(c.FileOpen)
    desk.peer.send(c.FileOpenOk(0))
    desk.sent += 1
    assert desk.await_one(c.FileStage).body == b"one"
    desk.await_one(c.FileDeliver)
    desk.peer.send(c.FileAck(1))
    desk.sent += 1
    desk.pass_time()
    desk.wait_complete()
    assert desk.take_file().body == b"two"


def test_a_mandatory_file_that_goes_nowhere_comes_back(desk: Desk) -> None:
    desk.publish_file("nowhere", b"abc", properties=FULL, mandatory=True)
    found = desk.await_one(c.FileReturn)
    assert (found.value.reply_code, found.value.reply_text) == (312, "no-route")
    assert (found.body, found.header[0].filename) == (b"abc", "report.pdf")


def test_an_immediate_file_comes_back_when_nobody_takes_it(desk: Desk) -> None:
    desk.publish_file("q", b"abc", immediate=True)
    found = desk.await_one(c.FileReturn)
    assert (found.value.reply_code, found.value.reply_text) == (313, "no-consumers")
    assert desk.count("q") == 0


def test_an_immediate_file_goes_to_who_is_there(desk: Desk) -> None:
    desk.files("q", no_ack=True)
    desk.publish_file("q", b"abc", immediate=True)
    assert desk.take_file().body == b"abc"


def test_an_unknown_exchange_ends_the_session(desk: Desk) -> None:
    desk.stage("id", b"x")
    desk.fails(c.FilePublish("nowhere", "q", identifier="id"), 404, "no exchange 'nowhere'")


# --- consumers ----------------------------------------------------------------------------------


def test_a_consumer_needs_a_tag(desk: Desk) -> None:
    desk.fails(c.FileConsume("q"), 530, "the consumer tag is empty")


def test_a_tag_that_is_used_twice_ends_the_session(desk: Desk) -> None:
    desk.files("q")
    desk.fails(c.FileConsume("q", "t"), 530, "attempt to reuse consumer tag 't'")


def test_an_empty_name_is_the_queue_declared_last(desk: Desk) -> None:
    desk.files("", no_ack=True)
    desk.publish_file("q", b"x")
    assert desk.take_file().body == b"x"


def test_an_empty_name_without_a_queue_before_ends_the_session(connect010: Connect010) -> None:
    desk = begin_desks(connect010())[0]
    desk.fails(c.FileConsume("", "t"), 530, "no previously declared queue")


def test_a_queue_that_has_consumers_cannot_be_had_alone(
    connect010: Connect010, shared: str
) -> None:
    first, second = begin_desks(connect010(), 2)
    first.files(shared)
    second.fails(c.FileConsume(shared, "t", exclusive=True), 405, "in exclusive use")


def test_a_consumer_that_wants_no_answer_gets_none(desk: Desk) -> None:
    desk.do(c.FileConsume("q", "t", nowait=True))
    assert desk.others() == []


def test_a_cancelled_consumer_gets_nothing_more(desk: Desk) -> None:
    desk.files("q")
    desk.do(c.FileCancel("t"), c.FileCancel("unknown"))
    desk.publish_file("q", b"x")
    assert desk.others() == []
    assert desk.count("q") == 1


def test_a_consumer_of_files_is_no_subscription(desk: Desk) -> None:
    desk.files("q")
    desk.fails(c.MessageCancel("t"), 404, "there is no subscription 't'")


def test_a_deleted_queue_ends_the_session_of_its_consumer(
    connect010: Connect010, shared: str
) -> None:
    first, second = begin_desks(connect010(), 2)
    first.files(shared)
    second.peer.send(c.QueueDelete(shared), channel=2)
    first.peer.expect_exception(408, "was deleted", channel=1)
    second.peer.expect_completed(0, 2)


# --- windows ------------------------------------------------------------------------------------


def test_no_more_files_come_than_the_window_allows(desk: Desk) -> None:
    desk.do(c.FileQos(0, 1))
    desk.await_one(c.FileQosOk)
    desk.files("q")
    for number in range(2):
        desk.publish_file("q", b"%d" % number, f"id-{number}")
    assert desk.take_file().body == b"0"
    desk.sync()
    assert [found.value.NAME for found in desk.got] == []
    desk.do(c.FileAck(1))
    assert desk.take_file().body == b"1"


def test_a_file_larger_than_the_window_comes_alone(desk: Desk) -> None:
    desk.do(c.FileQos(2, 0))
    desk.files("q")
    for number in range(2):
        desk.publish_file("q", b"large-%d" % number, f"id-{number}")
    assert desk.take_file().body == b"large-0"
    desk.sync()
    assert not [found for found in desk.got if isinstance(found.value, c.FileOpen)]
    desk.do(c.FileAck(1))
    assert desk.take_file().body == b"large-1"


def test_the_window_of_a_connection_holds_for_all_its_sessions(
    connect010: Connect010, shared: str
) -> None:
    first, second = begin_desks(connect010(), 2)
    first.do(c.FileQos(0, 1, True))
    first.files(shared)
    first.publish_file(shared, b"0")
    assert first.take_file().body == b"0"
    first.do(c.FileCancel("t"))
    second.files(shared)
    first.publish_file(shared, b"1")
    second.sync()
    assert not [found for found in second.got if isinstance(found.value, c.FileOpen)]
    first.do(c.FileAck(1))
    assert second.take_file().body == b"1"
    second.do(c.FileAck(1))


# --- acknowledging ------------------------------------------------------------------------------


def test_a_file_that_is_not_acknowledged_goes_back(connect010: Connect010, shared: str) -> None:
    first = begin_desks(connect010())[0]
    first.publish_file(shared, b"x")
    first.files(shared)
    first.take_file()
    first.leave()
    second = begin_desks(connect010())[0]
    second.wait_for_count(shared, 1)
    second.files(shared)
    assert second.take_file().deliver.redelivered
    second.do(c.FileAck(1))
    assert second.count(shared) == 0


def test_several_files_are_acknowledged_at_once(desk: Desk) -> None:
    desk.files("q")
    for number in range(3):
        desk.publish_file("q", b"%d" % number, f"id-{number}")
        desk.take_file()
    desk.do(c.FileAck(2, True))
    desk.do(c.FileAck(0, True))
    desk.fails(c.FileAck(3), 406, "unknown delivery tag 3")


def test_a_tag_that_was_not_delivered_ends_the_session(desk: Desk) -> None:
    desk.fails(c.FileAck(1), 406, "unknown delivery tag 1")


def test_a_rejected_file_that_shall_not_come_back_is_gone(desk: Desk) -> None:
    desk.files("q")
    desk.publish_file("q", b"x")
    desk.take_file()
    desk.do(c.FileReject(1))
    assert desk.count("q") == 0


def test_a_rejected_file_goes_to_somebody_else(connect010: Connect010, shared: str) -> None:
    first, second = begin_desks(connect010(), 2)
    first.files(shared)
    first.publish_file(shared, b"x")
    first.take_file()
    second.files(shared)
    first.do(c.FileReject(1, True))
    second.pass_time()
    found = second.take_file()
    assert (found.body, found.deliver.redelivered) == (b"x", True)
    second.do(c.FileAck(1))


def test_files_are_part_of_a_transaction(desk: Desk) -> None:
    desk.do(c.TxSelect())
    desk.publish_file("q", b"x")
    assert desk.count("q") == 0
    desk.do(c.TxCommit())
    desk.files("q")
    desk.take_file()
    desk.do(c.FileAck(1), c.TxRollback())
    desk.do(c.FileAck(1), c.TxCommit())
    desk.fails(c.FileAck(1), 406, "unknown delivery tag 1")


# --- with other classes and versions ------------------------------------------------------------


def test_a_transfer_comes_as_a_file_and_a_file_as_a_transfer(desk: Desk) -> None:
    desk.publish("", b"message", routing_key="q", priority=3)
    desk.files("q")
    found = desk.take_file()
    assert (found.body, found.properties.priority) == (b"message", 3)
    desk.do(c.FileAck(1), c.FileCancel("t"))
    desk.publish_file("q", b"file", properties=FULL)
    desk.subscribe("q", "s")
    desk.sync()
    transfer = desk.deliveries()[0]
    headers = transfer.header[1].application_headers
    assert transfer.body == b"file"
    assert headers["x-amqp-filename"] == "report.pdf"
    assert transfer.header[1].content_type == "application/pdf"


@pytest.mark.parametrize("kind", [c.FileConsume, c.StreamConsume])
def test_a_session_has_no_more_consumers_of_files_and_packets_than_may_be(
    kind: type[c.FileConsume | c.StreamConsume],
) -> None:
    site = MemorySite(consumer_max_per_channel=1)
    (desk,) = begin_desks(Peer010(site, site.connect()))
    desk.do(c.QueueDeclare("files", exclusive=True, auto_delete=True))
    desk.files("files", "a")
    desk.fails(kind("files", "b"), 530, "reached maximum (1) of consumers per channel")
