"""The class dtx of 0-8 and 0-9: what a channel does in the name of a coordinator elsewhere."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from harebell.base.slices import at_once
from harebell.model.xa.branch import OPERATOR
from harebell.model.xa.states import State
from harebell.model.xa.xid import FORMAT_0_8, Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as own
from harebell.wire.v09.methods_older import FileAck, FileQos, FileReject
from tests.conformance.sites import MemorySite
from tests.conformance.v08.contents import Peer08
from tests.conformance.v08.peer import Peer8

Connect = Callable[[], Peer8]
START = "dtx.start"


def _xid(identifier: str) -> Xid:
    return Xid(FORMAT_0_8, identifier.encode(), b"")


def _started(peer: Peer8, identifier: str, channel: int = 1) -> None:
    peer.ask(own.DtxSelect(), channel)
    peer.ask(own.DtxStart(identifier), channel)


def _count(peer: Peer8, queue: str, channel: int = 1) -> int:
    declared: m.QueueDeclareOk = peer.ask(m.QueueDeclare(queue=queue, passive=True), channel)
    return declared.message_count


def test_work_of_a_channel_waits_for_the_coordinator(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.queue("q")
    peer.ask(m.ChannelOpen(), 2)
    _started(peer, "order 7")
    peer.publish("", "q", b"1")
    assert _count(peer, "q") == 0
    peer.ask(m.ChannelClose(reply_code=200))
    assert _count(peer, "q", 2) == 0
    branches = memory.broker.branches
    at_once(branches.prepare("/", _xid("order 7"), OPERATOR))
    assert _count(peer, "q", 2) == 0
    at_once(branches.commit("/", _xid("order 7"), OPERATOR, one_phase=False))
    assert _count(peer, "q", 2) == 1


def test_a_rollback_gives_back_what_was_acknowledged(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.queue("q")
    peer.publish("", "q", b"1")
    _started(peer, "t")
    got = peer.get("q", no_ack=False)
    peer.send(m.BasicAck(got.method.delivery_tag))
    peer.ask(own.DtxStart("the next"))
    branches = memory.broker.branches
    assert _count(peer, "q") == 0
    at_once(branches.rollback("/", _xid("t"), OPERATOR))
    assert _count(peer, "q") == 1


def test_a_further_start_ends_the_work_before(connect_memory: Connect, memory: MemorySite) -> None:
    peer = connect_memory().open()
    _started(peer, "one")
    peer.ask(own.DtxStart("two"))
    states = {str(each.xid.global_id, "ascii"): each.state for each in memory.broker.branches.of()}
    assert states == {"one": State.IDLE, "two": State.ACTIVE}


@pytest.mark.parametrize("how", ["loss", "error"])
def test_a_channel_that_ends_otherwise_fails(
    connect_memory: Connect, memory: MemorySite, how: str
) -> None:
    peer = connect_memory().open()
    _started(peer, "t")
    if how == "loss":
        peer.opened = False
        peer.wire.drop()
        peer.expect_closed()
    else:
        peer.send(m.QueuePurge(queue="none"))
        peer.expect_channel_close(404, "NOT_FOUND - no queue 'none' in vhost '/'", "queue.purge")
    (branch,) = memory.broker.branches.of()
    assert branch.state is State.FAILED


def test_start_needs_select(older: Peer8) -> None:
    older.send(own.DtxStart("t"))
    text = "the channel has not selected distributed transactions alone: dtx.select first"
    older.expect_channel_close(503, f"COMMAND_INVALID - {text}", START)


def test_an_identifier_is_used_once(older: Peer8) -> None:
    older.ask(m.ChannelOpen(), 2)
    identifier = uuid.uuid4().hex
    _started(older, identifier)
    older.ask(own.DtxSelect(), 2)
    older.send(own.DtxStart(identifier), channel=2)
    text = f"NOT_ALLOWED - xid {_xid(identifier)} is known already"
    older.expect_channel_close(530, text, START, channel=2)


def test_an_identifier_has_64_octets_at_most(older: Peer8) -> None:
    _started(older, uuid.uuid4().hex * 2)
    older.send(own.DtxStart("x" * 65))
    text = "NOT_ALLOWED - the transaction id of an xid has 65 octets, and 64 is the most"
    older.expect_channel_close(530, text, START)


def test_select_twice_is_fine_and_beside_tx_is_not(older: Peer8) -> None:
    for channel in (2, 3):
        older.ask(m.ChannelOpen(), channel)
    older.ask(own.DtxSelect())
    older.ask(own.DtxSelect())
    older.ask(m.TxSelect(), 2)
    older.send(own.DtxSelect(), channel=2)
    text = "COMMAND_INVALID - the channel has transactions of its own, or confirms"
    older.expect_channel_close(503, text, "dtx.select", channel=2)
    _started(older, uuid.uuid4().hex, 3)
    older.send(m.TxSelect(), channel=3)
    text = "COMMAND_INVALID - the channel works on a distributed transaction"
    older.expect_channel_close(503, text, "tx.select", channel=3)


@pytest.mark.parametrize("how", ["ack", "reject"])
def test_a_file_that_a_branch_settles_leaves_room_for_the_next(
    memory: MemorySite, how: str
) -> None:
    peer = Peer08(memory, memory.connect())
    peer.open()
    queue = peer.queue("files")
    peer.ask(FileQos(prefetch_count=1))
    for body in (b"1", b"2", b"3"):
        peer.publish_file(queue, body, f"f-{body!r}")
    _started(peer, "files")
    peer.files(queue)
    for body in (b"1", b"2"):
        found = peer.take_file()
        assert found.body == body
        tag = found.method.delivery_tag
        peer.send(FileAck(tag) if how == "ack" else FileReject(tag))
    assert peer.take_file().body == b"3"
    branches = memory.broker.branches
    peer.ask(own.DtxStart("the next"))
    at_once(branches.rollback("/", _xid("files"), OPERATOR))
    # They come again one by one: the third still takes up the window.
    peer.expect_silence()
    peer.send(FileAck(3))
    assert peer.take_file().body == b"1"
