"""message.qos: how much goes out ahead of acknowledgements, in messages and in octets."""

from __future__ import annotations

import pytest

from harebell.wire.v09.methods_transitional import MessageQos
from tests.conformance.v010t.branches import OK, end, new_xid, selected, start
from tests.conformance.v010t.conftest import Connect
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import consume, expect_transfer, transfer


def numbered(peer: Peer, queue: str, *numbers: int) -> None:
    """Messages of nine octets, ten from the tenth on."""
    for number in numbers:
        transfer(peer, queue, b"Message %d" % number)


def test_as_many_messages_go_out_as_the_prefetch_count_says(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    peer.send(MessageQos(prefetch_count=5))
    numbered(peer, name, *range(1, 11))
    for first in (1, 6):
        for number in range(first, first + 5):
            expect_transfer(peer, b"Message %d" % number)
        peer.expect_silence()
        peer.complete(peer.received())
    peer.expect_silence()


def test_as_many_octets_go_out_as_the_prefetch_size_says(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    peer.send(MessageQos(prefetch_size=50))
    numbered(peer, name, *range(1, 11))
    for number in range(1, 6):
        expect_transfer(peer, b"Message %d" % number)
    peer.expect_silence()
    peer.complete(peer.received())
    for number in range(6, 11):
        expect_transfer(peer, b"Message %d" % number)
    peer.complete(peer.received())
    large = b"x" * 53
    transfer(peer, name, large)
    expect_transfer(peer, large)


@pytest.mark.rule("0-10t#270")
def test_a_single_message_over_the_prefetch_size_arrives(peer: Peer, name: str) -> None:
    """Scenario: a prefetch-size, and a single message that exceeds it, which arrives."""
    peer.queue(name)
    peer.send(MessageQos(prefetch_size=10))
    consume(peer, name)
    transfer(peer, name, b"x" * 100)
    expect_transfer(peer, b"x" * 100)


@pytest.mark.rule("0-10t#271")
def test_of_messages_over_the_prefetch_size_one_arrives_at_once(peer: Peer, name: str) -> None:
    """Scenario: a prefetch-size, a prefetch-count above one, and messages that exceed the size."""
    peer.queue(name)
    peer.send(MessageQos(prefetch_size=10, prefetch_count=5))
    consume(peer, name)
    for body in (b"a" * 100, b"b" * 100, b"c" * 100):
        transfer(peer, name, body)
    for body in (b"a" * 100, b"b" * 100, b"c" * 100):
        expect_transfer(peer, body)
        peer.expect_silence()
        peer.complete(peer.received())


def test_the_window_is_the_sessions_and_not_each_consumers(peer: Peer, name: str) -> None:
    peer.send(MessageQos(prefetch_count=2))
    for queue in (name, f"{name}-2"):
        peer.queue(queue)
        consume(peer, queue, queue)
    for queue in (name, f"{name}-2"):
        numbered(peer, queue, 1, 2)
    for number in (1, 2):
        expect_transfer(peer, b"Message %d" % number, destination=name)
    peer.expect_silence()
    peer.complete(peer.received())
    for number in (1, 2):
        expect_transfer(peer, b"Message %d" % number, destination=f"{name}-2")


def test_other_sessions_have_windows_of_their_own(connect: Connect, name: str) -> None:
    peer = connect().open(channels=(1, 2))
    peer.queue(name)
    peer.send(MessageQos(prefetch_count=1))
    consume(peer, name, "one")
    consume(peer, name, "two", channel=2)
    numbered(peer, name, 1, 2, 3)
    seen = {expect_transfer(peer, b"Message 1").body}
    for number in (2, 3):
        seen.add(expect_transfer(peer, b"Message %d" % number, 2).body)
    assert len(seen) == 3


def test_a_global_window_is_shared_by_all_sessions_of_the_connection(
    connect: Connect, name: str
) -> None:
    peer = connect().open(channels=(1, 2))
    peer.queue(name)
    peer.queue(f"{name}-2", 2)
    peer.send(MessageQos(prefetch_count=1, global_=True))
    consume(peer, name, "one")
    consume(peer, f"{name}-2", "two", channel=2)
    numbered(peer, name, 1)
    expect_transfer(peer, b"Message 1", 1)
    numbered(peer, f"{name}-2", 2)
    peer.settle()
    peer.expect_silence()
    peer.complete(peer.received(1))
    expect_transfer(peer, b"Message 2", 2)


def test_consumers_without_acknowledgements_have_no_window(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.send(MessageQos(prefetch_count=1, prefetch_size=1))
    consume(peer, name, no_ack=True)
    numbered(peer, name, 1, 2, 3)
    for number in (1, 2, 3):
        expect_transfer(peer, b"Message %d" % number)


def test_lifting_the_limit_lets_what_waited_go(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.send(MessageQos(prefetch_count=1))
    consume(peer, name)
    numbered(peer, name, 1, 2, 3)
    expect_transfer(peer, b"Message 1")
    peer.expect_silence()
    peer.send(MessageQos())
    for number in (2, 3):
        expect_transfer(peer, b"Message %d" % number)


def test_an_acknowledgement_in_a_branch_frees_the_window(peer: Peer, name: str) -> None:
    peer.queue(name)
    selected(peer)
    xid = new_xid()
    assert start(peer, xid) == OK
    peer.send(MessageQos(prefetch_count=1, prefetch_size=9))
    consume(peer, name)
    assert end(peer, xid) == OK
    numbered(peer, name, 1, 2)
    expect_transfer(peer, b"Message 1")
    peer.expect_silence()
    assert start(peer, xid, join=True) == OK
    peer.complete(peer.received())
    expect_transfer(peer, b"Message 2")
