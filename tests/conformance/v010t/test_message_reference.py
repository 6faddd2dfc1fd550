"""References: bodies in pieces, in both directions, and checkpoints that outlive a session."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_transitional import (
    ExecutionComplete,
    ExecutionFlush,
    MessageAppend,
    MessageCheckpoint,
    MessageClose,
    MessageEmpty,
    MessageGet,
    MessageOffset,
    MessageOpen,
    MessageResume,
)
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.conftest import Connect
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import consume, expect_reject, expect_transfer, transfer

REF = b"my-ref"


def append(peer: Peer, *pieces: bytes, reference: bytes = REF, channel: int = 1) -> None:
    """message.append, once for each piece."""
    for piece in pieces:
        peer.send(MessageAppend(reference=reference, octets=piece), channel)


def nothing_is_there(peer: Peer, queue: str, channel: int = 1) -> None:
    """A queue is empty."""
    peer.send(MessageGet(queue=queue), channel)
    peer.expect(MessageEmpty, channel)


def test_a_message_is_transferred_by_reference(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.send(MessageOpen(reference=REF))
    append(peer, b"abcd")
    transfer(peer, name, reference=REF, message_id="m")
    append(peer, b"efgh", b"ijkl")
    peer.run(MessageClose(reference=REF))
    consume(peer, name)
    expect_transfer(peer, b"abcdefghijkl", message_id="m")


@pytest.mark.rule("0-10t#265")
def test_a_transfer_is_neither_routed_nor_complete_before_its_reference_is_closed(
    peer: Peer, name: str
) -> None:
    peer.queue(name)
    opened = peer.send(MessageOpen(reference=REF))
    append(peer, b"abcd")
    number = transfer(peer, name, reference=REF)
    append(peer, b"efgh")
    nothing_is_there(peer, name)
    peer.send(ExecutionFlush())
    said = peer.expect(ExecutionComplete)
    assert said.cumulative_execution_mark == number - 1 > opened
    assert said.ranged_execution_set == ((number + 1, number + 2),)
    peer.send(MessageClose(reference=REF))
    said = peer.expect(ExecutionComplete)
    assert said.cumulative_execution_mark == peer.sent()
    peer.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(peer, b"abcdefgh")


def test_a_reference_without_octets_is_an_empty_message(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.send(MessageOpen(reference=REF))
    transfer(peer, name, reference=REF, message_id="empty")
    peer.run(MessageClose(reference=REF))
    peer.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(peer, b"", message_id="empty")


def test_one_reference_serves_several_transfers(peer: Peer, name: str) -> None:
    for queue in (name, f"{name}-2"):
        peer.queue(queue)
    peer.send(MessageOpen(reference=REF))
    transfer(peer, name, reference=REF, message_id="abc")
    append(peer, b"my data")
    transfer(peer, f"{name}-2", reference=REF, message_id="xyz")
    transfer(peer, name, reference=REF, message_id="def")
    peer.run(MessageClose(reference=REF))
    for queue, message_id in ((name, "abc"), (name, "def"), (f"{name}-2", "xyz")):
        peer.send(MessageGet(queue=queue, no_ack=True))
        expect_transfer(peer, b"my data", message_id=message_id)


def test_a_name_may_be_used_again_after_close(peer: Peer, name: str) -> None:
    peer.queue(name)
    for body in (b"first", b"second"):
        peer.send(MessageOpen(reference=REF))
        append(peer, body)
        transfer(peer, name, reference=REF)
        peer.run(MessageClose(reference=REF))
        peer.send(MessageGet(queue=name, no_ack=True))
        expect_transfer(peer, body)


def test_sessions_have_references_of_their_own(connect: Connect, name: str) -> None:
    peer = connect().open(channels=(1, 2))
    for channel in (1, 2):
        peer.queue(f"{name}-{channel}", channel)
        peer.send(MessageOpen(reference=REF), channel)
        append(peer, b"of %d" % channel, channel=channel)
    for channel in (1, 2):
        transfer(peer, f"{name}-{channel}", reference=REF, channel=channel)
        peer.run(MessageClose(reference=REF), channel)
        peer.send(MessageGet(queue=f"{name}-{channel}", no_ack=True), channel)
        expect_transfer(peer, b"of %d" % channel, channel)


@pytest.mark.rule("0-10t#264")
def test_a_reference_that_is_open_cannot_be_opened(peer: Peer) -> None:
    peer.run(MessageOpen(reference=REF))
    peer.send(MessageOpen(reference=REF))
    peer.expect_connection_close(503, "message.open", "already open")


@pytest.mark.rule("0-10t#266")
def test_a_reference_that_is_not_open_cannot_be_closed(peer: Peer) -> None:
    peer.send(MessageClose(reference=REF))
    peer.expect_connection_close(503, "message.close", "not open")


@pytest.mark.rule("0-10t#267")
def test_a_reference_that_is_not_open_takes_no_octets(peer: Peer) -> None:
    append(peer, b"abc")
    peer.expect_connection_close(503, "message.append", "not open")


@pytest.mark.rule("0-10t#268")
def test_a_reference_that_is_not_open_cannot_be_marked(peer: Peer) -> None:
    peer.send(MessageCheckpoint(reference=REF, identifier="mark"))
    peer.expect_connection_close(503, "message.checkpoint", "not open")


@pytest.mark.rule("0-10t#269")
def test_a_reference_that_is_open_cannot_be_resumed(peer: Peer) -> None:
    peer.run(MessageOpen(reference=REF))
    peer.send(MessageResume(reference=REF, identifier="mark"))
    peer.expect_connection_close(503, "message.resume", "already open")


def test_a_reference_that_is_not_open_cannot_be_transferred(peer: Peer, name: str) -> None:
    transfer(peer, name, reference=REF)
    peer.expect_connection_close(503, "message.transfer", "not open")


@pytest.mark.parametrize("cut", ["close", "drop"])
def test_a_transfer_goes_on_from_its_last_checkpoint(connect: Connect, name: str, cut: str) -> None:
    peer = connect().open()
    peer.queue(name)
    peer.send(MessageOpen(reference=REF))
    append(peer, b"abcdefgh", b"ijklmnop")
    peer.send(MessageCheckpoint(reference=REF, identifier=name))
    append(peer, b"lost")
    peer.settle()
    getattr(peer, cut)()
    peer = connect().open()
    offset: MessageOffset = peer.ask(MessageResume(reference=b"other", identifier=name))
    assert offset.value == 16
    append(peer, b"qrstuvwxyz", reference=b"other")
    transfer(peer, name, reference=b"other")
    peer.run(MessageClose(reference=b"other"))
    peer.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(peer, b"abcdefghijklmnopqrstuvwxyz")


def test_a_reference_without_a_mark_begins_at_zero(peer: Peer, name: str) -> None:
    peer.queue(name)
    assert peer.ask(MessageResume(reference=REF, identifier=name)).value == 0
    append(peer, b"all of it")
    transfer(peer, name, reference=REF)
    peer.run(MessageClose(reference=REF))
    peer.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(peer, b"all of it")


def test_a_checkpoint_belongs_to_its_user(memory: MemorySite, connect_memory: Connect) -> None:
    memory.users.add("other", "other", vhosts=("/",))
    peer, stranger = connect_memory().open(), connect_memory()
    peer.send(MessageOpen(reference=REF))
    append(peer, b"secret")
    peer.run(MessageCheckpoint(reference=REF, identifier="mark"))
    peer.close()
    stranger.open(user="other", password="other")
    assert stranger.ask(MessageResume(reference=REF, identifier="mark")).value == 0
    again = connect_memory().open()
    assert again.ask(MessageResume(reference=REF, identifier="mark")).value == 6


def test_a_checkpoint_is_forgotten_when_its_body_is_whole(connect: Connect, name: str) -> None:
    peer = connect().open()
    peer.send(MessageOpen(reference=REF))
    append(peer, b"abc")
    peer.send(MessageCheckpoint(reference=REF, identifier=name))
    peer.run(MessageClose(reference=REF))
    assert peer.ask(MessageResume(reference=REF, identifier=name)).value == 0


def test_open_references_count_as_memory_until_their_session_ends(
    memory: MemorySite, connect_memory: Connect
) -> None:
    peer = connect_memory().open()
    peer.send(MessageOpen(reference=REF))
    append(peer, bytes(5_000), b"x")
    peer.settle()
    assert (memory.gauge.used, memory.gauge.unread) == (5_001, 5_001)
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    assert (memory.gauge.used, memory.gauge.unread) == (0, 0)


def test_a_body_over_the_limit_closes_the_channel() -> None:
    site = MemorySite(message_max=100)
    peer = Peer(site, site.connect()).open()
    peer.send(MessageOpen(reference=REF))
    append(peer, bytes(100), b"x")
    peer.expect_channel_close(311, "message.append", "101", "100")
    assert site.gauge.used == 0


def test_a_reference_to_an_exchange_that_is_gone_closes_the_channel(peer: Peer, name: str) -> None:
    peer.run(m.ExchangeDeclare(exchange=name, type="direct"))
    peer.send(MessageOpen(reference=REF))
    transfer(peer, "k", reference=REF, destination=name)
    peer.send(m.ExchangeDelete(exchange=name))
    peer.send(MessageClose(reference=REF))
    peer.expect_channel_close(404, "message.close", name)


def test_an_unroutable_transfer_by_reference_is_rejected_when_it_is_whole(
    peer: Peer, name: str
) -> None:
    peer.send(MessageOpen(reference=REF))
    number = transfer(peer, name, reference=REF, reject_unroutable=True)
    peer.send(MessageClose(reference=REF))
    expect_reject(peer, 0, f"transfer {number}")
    peer.settle()


def test_a_transaction_takes_transfers_by_reference(connect: Connect, name: str) -> None:
    peer = connect().open()
    peer.queue(name)
    peer.run(m.TxSelect())
    peer.send(MessageOpen(reference=REF))
    transfer(peer, name, reference=REF)
    append(peer, b"body")
    peer.run(MessageClose(reference=REF))
    nothing_is_there(peer, name)
    peer.run(m.TxCommit())
    peer.send(MessageGet(queue=name))
    expect_transfer(peer, b"body")


@pytest.mark.parametrize("size", [0, 4_000, 4_096, 5_000, 100_000, 1_000_000])
def test_a_body_longer_than_a_frame_is_delivered_by_reference(
    connect: Connect, name: str, size: int
) -> None:
    body = bytes(at % 251 for at in range(size))
    peer, small = connect().open(), connect().open(frame_max=4_096)
    peer.queue(name)
    peer.send(MessageOpen(reference=REF))
    append(peer, *(body[at : at + 100_000] for at in range(0, size, 100_000)))
    transfer(peer, name, reference=REF, app_id="a")
    peer.run(MessageClose(reference=REF))
    consume(small, name)
    arrived = expect_transfer(small, body, app_id="a", destination="d")
    assert bool(arrived.pieces) == (size >= 4_000)
    small.complete(small.received())
    small.send(m.ChannelClose(reply_code=200))
    small.expect(m.ChannelCloseOk)
    nothing_is_there(peer, name)


def test_a_publisher_with_an_open_reference_may_bring_it_to_an_end_when_memory_is_short() -> None:
    site = MemorySite(memory_high=10_000)
    peer = Peer(site, site.connect()).open()
    peer.queue("q", arguments={"x-max-length": 0})
    peer.send(MessageOpen(reference=REF))
    for _ in range(20):
        append(peer, bytes(1_000))
    transfer(peer, "q", reference=REF)
    peer.send(MessageClose(reference=REF))
    peer.settle()
    assert site.gauge.unread == 0
