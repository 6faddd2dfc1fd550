"""The file class of 0-8: staging, publishing, delivering, acknowledging, rejecting."""

from __future__ import annotations

import random

import pytest

from harebell.front.limits import MESSAGE_MAX_BYTES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import (
    FileAck,
    FileCancel,
    FileConsume,
    FileOpen,
    FileOpenOk,
    FilePublish,
    FileQos,
    FileReject,
    FileStage,
    StreamConsume,
)
from harebell.wire.v09.property_list import FILE, FileProperties
from tests.conformance.file_stream.versions import rule
from tests.conformance.sites import MemorySite
from tests.conformance.v08.contents import Connect08, Peer08

BODY = random.Random(70).randbytes(300_000)
FULL = FileProperties(
    "application/pdf", "gzip", {"a": 1, "b": "text"}, 7, "back", "id-1", "report.pdf",
    1_186_000_000, "cluster",
)  # fmt: skip


# --- from the publisher to the consumer -------------------------------------------------------


def test_a_staged_file_is_published_and_delivered_staged(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue, consumer_tag="t")
    peer08.publish_file(queue, BODY, properties=FULL)
    found = peer08.take_file(consumer_tag="t", delivery_tag=1, redelivered=False,
                             exchange="", routing_key=queue)  # fmt: skip
    assert found.body == BODY
    assert FILE.encode(found.properties) == FILE.encode(FULL)


def test_a_waiting_file_is_delivered_when_a_consumer_comes(peer08: Peer08, other08: Peer08) -> None:
    queue = peer08.queue("files")
    for number in range(3):
        peer08.publish_file(queue, b"%d" % number, f"id-{number}")
    assert peer08.count(queue) == 3
    other08.files(queue)
    for number in range(3):
        assert other08.take_file(delivery_tag=number + 1).body == b"%d" % number


def test_a_client_that_has_a_part_of_a_file_gets_the_rest(peer08: Peer08, other08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.publish_file(queue, BODY)
    other08.files(queue)
    opened = other08.expect(FileOpen, content_size=len(BODY))
    other08.send(FileOpenOk(0))
    half = other08.expect_whole(FileStage).body[:100_000]
    other08.lose()
    peer08.wait_for_count(queue, 1)
    peer08.files(queue)
    again = peer08.expect(FileOpen, content_size=len(BODY), identifier=opened.identifier)
    assert again.identifier == opened.identifier
    peer08.send(FileOpenOk(len(half)))
    assert half + peer08.expect_whole(FileStage).body == BODY
    assert peer08.next_method()[1].redelivered


@pytest.mark.parametrize("staged", [300_001, 2**64 - 1])
def test_a_client_cannot_have_more_than_there_is(peer08: Peer08, staged: int) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.publish_file(queue, BODY)
    peer08.expect(FileOpen)
    peer08.send(FileOpenOk(staged))
    peer08.expect(m.ChannelClose)
    peer08.send(m.ChannelCloseOk())
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 1


def test_an_open_ok_that_answers_nothing_is_refused(peer08: Peer08) -> None:
    peer08.send(FileOpenOk(0))
    peer08.cut_off(503, "file.open-ok answers no file.open")


# --- staging at the broker --------------------------------------------------------------------


@rule("0-8#131")
def test_staging_resumes_where_the_connection_broke(connect08: Connect08) -> None:
    first = connect08().open()
    queue = first.queue("files")
    first.send(FileOpen("the file", len(BODY)))
    first.expect(FileOpenOk, staged_size=0)
    octets = FILE.encode(FULL)
    # The broker is told of everything, and gets a part of it.
    half = len(BODY) - 2 * (first.frame_max - 8)
    first.send_content(FileStage(), FILE, octets, BODY[:half], size=len(BODY))
    first.expect_silence()
    first.lose()
    second = connect08().open()
    second.files(queue)
    start = second.stage("the file", BODY, FULL)
    assert start == half
    second.send(FilePublish("", queue, identifier="the file"))
    assert second.take_file().body == BODY


@rule("0-8#130")
def test_the_broker_says_from_which_octet_it_wants_a_file(peer08: Peer08) -> None:
    peer08.stage("once more", BODY)
    assert peer08.stage("once more", BODY) == len(BODY)


@rule("0-8#129")
@pytest.mark.parametrize("size", [len(BODY) - 1, len(BODY) + 1, 0])
def test_a_content_of_another_size_than_announced_is_refused(peer08: Peer08, size: int) -> None:
    peer08.send(FileOpen(f"of {size}", len(BODY)))
    peer08.expect(FileOpenOk)
    body = BODY[:size]
    peer08.send_content(FileStage(), FILE, b"\0\0", body, size=size)
    close = peer08.expect(m.ChannelClose)
    assert f"file.stage has {size} octets" in close.reply_text
    peer08.send(m.ChannelCloseOk())


@rule("0-8#129")
def test_content_of_no_octets_is_permitted(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.publish_file(queue, b"")
    assert peer08.count(queue) == 1


def test_a_file_larger_than_a_message_may_be_is_refused_before_it_is_sent(peer08: Peer08) -> None:
    peer08.send(FileOpen("id", MESSAGE_MAX_BYTES + 1))
    peer08.refused(311, f"message size {MESSAGE_MAX_BYTES + 1} is larger")


def test_stage_needs_an_open(peer08: Peer08) -> None:
    peer08.send_content(FileStage(), FILE, b"\0\0", b"x")
    peer08.cut_off(503, "file.stage without file.open before it")


def test_a_publish_of_nothing_staged_is_refused(peer08: Peer08) -> None:
    peer08.send(FilePublish("", "q", identifier="missing"))
    peer08.refused(404, "no file 'missing' is staged")


def test_a_publish_may_overtake_the_staging_on_another_channel(connect08: Connect08) -> None:
    peer = connect08().open(channels=(1, 2))
    queue = peer.queue("files")
    peer.send(FileOpen("id", len(BODY)))
    peer.expect(FileOpenOk)
    peer.send(FilePublish("", queue, identifier="id"), channel=2)
    peer.expect_silence()
    assert peer.count(queue, 2) == 0
    peer.send_content(FileStage(), FILE, b"\0\0", BODY)
    assert peer.count(queue, 2) == 1


def test_a_publish_whose_staging_breaks_off_is_refused(connect08: Connect08) -> None:
    peer = connect08().open(channels=(1, 2))
    peer.send(FileOpen("broken", len(BODY)))
    peer.expect(FileOpenOk)
    peer.send(FilePublish("", "q", identifier="broken"), channel=2)
    peer.send(m.ChannelClose(reply_code=200))
    peer.refused(406, "file 'broken' is not whole: 0 of 300000 octets are staged", 2)
    peer.expect(m.ChannelCloseOk)


def test_a_file_is_published_once(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.publish_file(queue, b"x")
    peer08.send(FilePublish("", queue, identifier="id"))
    peer08.refused(404, "no file 'id' is staged")


def test_a_client_that_stages_the_same_file_takes_it_over(connect08: Connect08) -> None:
    first, second = connect08().open(), connect08().open()
    first.send(FileOpen("id", len(BODY)))
    first.expect(FileOpenOk)
    second.send(FileOpen("id", len(BODY)))
    second.expect(FileOpenOk, staged_size=0)
    first.send_content(FileStage(), FILE, b"\0\0", BODY)
    first.expect(m.ChannelClose, reply_code=405)
    first.send(m.ChannelCloseOk())
    second.send_content(FileStage(), FILE, b"\0\0", BODY)
    queue = second.queue("files")
    second.send(FilePublish("", queue, identifier="id"))
    assert second.count(queue) == 1


def test_a_file_staged_by_one_user_cannot_be_published_by_another(
    connect08: Connect08, site: object
) -> None:
    peer = connect08().open()
    peer.stage("id", b"secret")
    # Another vhost or user is another staging area; the unit tests of the area show both.
    peer.send(FilePublish("", "q", identifier="ID"))
    peer.refused(404, "no file 'ID' is staged")


# --- consumers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FileConsume, StreamConsume])
def test_a_channel_has_no_more_consumers_of_files_and_packets_than_may_be(
    kind: type[FileConsume | StreamConsume],
) -> None:
    site = MemorySite(consumer_max_per_channel=2)
    peer = Peer08(site, site.connect()).open()
    queue = peer.queue("files")
    peer.files(queue, consumer_tag="a")
    peer.ask(m.BasicConsume(queue, consumer_tag="b"))
    peer.send(kind(queue=queue, consumer_tag="c"))
    peer.cut_off(530, "reached maximum (2) of consumers per channel")


def test_a_cancelled_consumer_of_files_leaves_room_for_another() -> None:
    site = MemorySite(consumer_max_per_channel=1)
    peer = Peer08(site, site.connect()).open()
    queue = peer.queue("files")
    peer.files(queue, consumer_tag="a")
    peer.ask(FileCancel("a"))
    assert peer.files(queue, consumer_tag="b") == "b"


# --- windows ----------------------------------------------------------------------------------


@rule("0-8#123")
@pytest.mark.parametrize("whole", [False, True])
def test_no_more_files_come_than_the_window_allows(peer08: Peer08, whole: bool) -> None:
    queue = peer08.queue("files")
    peer08.ask(FileQos(prefetch_count=2, global_=whole))
    for number in range(4):
        peer08.publish_file(queue, b"%d" % number, f"id-{number}")
    peer08.files(queue)
    peer08.take_file(delivery_tag=1)
    peer08.take_file(delivery_tag=2)
    peer08.expect_silence()
    peer08.send(FileAck(1))
    assert peer08.take_file(delivery_tag=3).body == b"2"
    peer08.expect_silence()


@rule("0-8#123")
@pytest.mark.parametrize("whole", [False, True])
def test_no_more_octets_come_than_the_window_allows(peer08: Peer08, whole: bool) -> None:
    queue = peer08.queue("files")
    peer08.ask(FileQos(prefetch_size=100, global_=whole))
    for number in range(3):
        peer08.publish_file(queue, bytes(60), f"id-{number}")
    peer08.files(queue)
    peer08.take_file(delivery_tag=1)
    peer08.expect_silence()
    peer08.send(FileAck(1))
    peer08.take_file(delivery_tag=2)
    peer08.expect_silence()
    # A larger window holds for the consumers that are there.
    peer08.ask(FileQos(prefetch_size=120, global_=whole))
    peer08.take_file(delivery_tag=3)


def test_a_file_larger_than_the_window_comes_alone(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.ask(FileQos(prefetch_size=100))
    for number in range(2):
        peer08.publish_file(queue, bytes(150), f"id-{number}")
    peer08.files(queue)
    peer08.take_file(delivery_tag=1)
    peer08.expect_silence()
    peer08.send(FileAck(1))
    peer08.take_file(delivery_tag=2)


def test_the_window_of_a_connection_holds_for_all_its_channels(connect08: Connect08) -> None:
    peer = connect08().open(channels=(1, 2))
    queue = peer.queue("files")
    peer.ask(FileQos(prefetch_count=1, global_=True))
    for number in range(2):
        peer.publish_file(queue, b"%d" % number, f"id-{number}")
    peer.files(queue, 1)
    peer.take_file(channel=1)
    peer.files(queue, 2)
    peer.expect_silence()
    peer.send(FileAck(1))
    # Whichever of them is next.
    found = peer.next_method()
    assert isinstance(found[1], FileOpen)


def test_a_window_means_nothing_to_automatic_acknowledgement(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.ask(FileQos(prefetch_count=1, prefetch_size=1))
    for number in range(3):
        peer08.publish_file(queue, b"abc", f"id-{number}")
    peer08.files(queue, no_ack=True)
    for _ in range(3):
        peer08.take_file()


# --- acknowledgements -------------------------------------------------------------------------


@rule("0-8#122")
def test_files_are_acknowledged_by_hand_and_by_themselves(connect08: Connect08) -> None:
    peer = connect08().open()
    queue = peer.queue("files")
    peer.publish_file(queue, b"by hand", "one")
    peer.publish_file(queue, b"by itself", "two")
    tag = peer.files(queue)
    peer.take_file()
    second = peer.take_file()
    peer.send(FileAck(1))
    peer.ask(FileCancel(tag))
    # The second was never acknowledged, so it comes back and goes to somebody else.
    peer.ask(m.ChannelClose(reply_code=200))
    peer.ask(m.ChannelOpen())
    assert peer.count(queue) == 1
    peer.files(queue, no_ack=True)
    assert peer.take_file(redelivered=True).body == second.body
    peer.ask(m.ChannelClose(reply_code=200))
    peer.ask(m.ChannelOpen())
    assert peer.count(queue) == 0


def test_several_files_are_acknowledged_at_once(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    for number in range(4):
        peer08.publish_file(queue, b"x", f"id-{number}")
    peer08.files(queue)
    for _ in range(4):
        peer08.take_file()
    peer08.send(FileAck(2, multiple=True))
    peer08.send(FileAck(0, multiple=True))
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0


@rule("0-8#139")
@pytest.mark.parametrize("tag", [1, 2, 99])
def test_a_tag_that_was_not_delivered_closes_the_channel(peer08: Peer08, tag: int) -> None:
    queue = peer08.queue("files")
    if tag == 2:
        peer08.files(queue)
        peer08.publish_file(queue, b"x")
        peer08.take_file()
    peer08.send(FileAck(tag))
    close = peer08.refused(406, f"unknown delivery tag {tag}")
    assert (close.class_id, close.method_id) == (70, 90)


@rule("0-8#139")
def test_a_file_that_is_still_being_staged_cannot_be_acknowledged(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.publish_file(queue, b"x")
    peer08.expect(FileOpen)
    peer08.send(FileAck(1))
    peer08.refused(406, "unknown delivery tag 1")


# --- where a file cannot go -------------------------------------------------------------------


def test_an_unknown_exchange_closes_the_channel(peer08: Peer08) -> None:
    peer08.stage("id", b"x")
    peer08.send(FilePublish("missing", "k", identifier="id"))
    peer08.refused(404, "no exchange 'missing' in vhost '/'")


# --- rejecting --------------------------------------------------------------------------------


@rule("0-8#140", "0-8#142")
def test_a_rejected_file_goes_to_somebody_else(peer08: Peer08, other08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.publish_file(queue, b"x")
    peer08.take_file()
    peer08.send(FileReject(1, requeue=True))
    peer08.expect_silence()
    other08.files(queue)
    assert other08.take_file(redelivered=True).body == b"x"
    peer08.expect_silence()


@rule("0-8#142")
def test_a_rejected_file_never_comes_back_on_the_same_channel(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.publish_file(queue, b"first", "one")
    peer08.take_file()
    peer08.send(FileReject(1, requeue=True))
    peer08.publish_file(queue, b"second", "two")
    assert peer08.take_file().body == b"second"
    peer08.expect_silence()
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 2


@rule("0-8#141", "0-8#142")
def test_a_rejected_file_is_a_dead_letter_where_nobody_else_is(peer08: Peer08) -> None:
    dead = peer08.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = peer08.queue("files", arguments=arguments)
    peer08.files(queue)
    peer08.publish_file(queue, b"x")
    peer08.take_file()
    peer08.send(FileReject(1, requeue=True))
    assert peer08.count(dead) == 1
    assert peer08.count(queue) == 0


@rule("0-8#141")
def test_a_rejected_file_that_shall_not_come_back_is_gone(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.publish_file(queue, b"x")
    peer08.take_file()
    peer08.send(FileReject(1, requeue=False))
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0


@rule("0-8#138")
def test_a_file_that_five_deliveries_did_not_settle_is_a_dead_letter(peer08: Peer08) -> None:
    dead = peer08.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = peer08.queue("files", arguments=arguments)
    peer08.publish_file(queue, b"x")
    for turn in range(5):
        assert peer08.count(queue) == 1
        peer08.files(queue)
        peer08.take_file(redelivered=turn > 0)
        peer08.ask(m.ChannelClose(reply_code=200))
        peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0
    assert peer08.count(dead) == 1


@rule("0-8#138")
def test_without_a_place_for_dead_letters_a_file_stays(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.publish_file(queue, b"x")
    for _ in range(7):
        peer08.files(queue)
        peer08.take_file()
        peer08.ask(m.ChannelClose(reply_code=200))
        peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 1


# --- recovering, and flow ---------------------------------------------------------------------


@pytest.mark.parametrize("requeue", [False, True])
def test_files_are_delivered_again_when_the_client_asks(peer08: Peer08, requeue: bool) -> None:
    queue = peer08.queue("files")
    for number in range(3):
        peer08.publish_file(queue, b"%d" % number, f"id-{number}")
    peer08.files(queue)
    for _ in range(3):
        peer08.take_file(redelivered=False)
    peer08.send(m.BasicRecover(requeue=requeue))
    found = [peer08.take_file(redelivered=True).body for _ in range(3)]
    assert sorted(found) == [b"0", b"1", b"2"]
    peer08.send(FileAck(0, multiple=True))
    peer08.ask(m.ChannelClose(reply_code=200))
    peer08.ask(m.ChannelOpen())
    assert peer08.count(queue) == 0


def test_a_client_that_stopped_the_flow_gets_no_files_until_it_goes_on(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.files(queue)
    peer08.ask(m.ChannelFlow(active=False))
    peer08.publish_file(queue, b"x")
    peer08.expect_silence()
    peer08.send(m.ChannelFlow(active=True))
    peer08.expect(m.ChannelFlowOk, active=True)
    assert peer08.take_file().body == b"x"


def test_contents_not_yet_delivered_to_a_cancelled_consumer_go_back(peer08: Peer08) -> None:
    queue = peer08.queue("files")
    peer08.ask(FileQos(prefetch_count=1))
    for number in range(3):
        peer08.publish_file(queue, b"%d" % number, f"id-{number}")
    tag = peer08.files(queue)
    peer08.take_file()
    peer08.ask(FileCancel(tag))
    assert peer08.count(queue) == 2
    peer08.send(FileAck(1))
    peer08.files(queue)
    assert peer08.take_file(redelivered=False).body == b"1"


def test_a_file_that_is_being_staged_takes_no_memory(connect08_memory: Connect08) -> None:
    peer = connect08_memory().open()
    body = bytes(3_000_000)
    peer.send(FileOpen("large", len(body)))
    peer.expect(FileOpenOk)
    before = peer.site.gauge.used  # type: ignore[union-attr]
    peer.send_content(FileStage(), FILE, b"\0\0", body[:-1], size=len(body))
    assert peer.site.gauge.used == before  # type: ignore[union-attr]
    peer.lose()
    again = connect08_memory().open()
    assert again.stage("large", body) == len(body) - 1
