"""The scenarios that the document spells out for the class message, executed as they are written.

Each test says in its first line what the document tells to do.
"""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_transitional import (
    MessageCancel,
    MessageConsume,
    MessageEmpty,
    MessageGet,
)
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.conftest import Connect
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import consume, expect_transfer, transfer, transferred

TEN_LEVELS = {"x-max-priority": 9}


@pytest.mark.rule("0-10t#238")
def test_persistent_messages_are_not_lost_in_an_overflow() -> None:
    """Create a queue overflow with persistent messages; they do not get lost."""
    site = MemorySite(memory_high=50_000)
    publisher = Peer(site, site.connect()).open()
    consumer = Peer(site, site.connect()).open()
    consumer.queue("q", durable=True)
    for number in range(100):
        transfer(publisher, "q", b"%03d" % number + bytes(1_000), delivery_mode=2)
    assert site.gauge.over
    for number in range(100):
        consumer.send(MessageGet(queue="q", no_ack=True))
        expect_transfer(consumer, b"%03d" % number + bytes(1_000))
    publisher.settle()
    consumer.send(MessageGet(queue="q"))
    consumer.expect(MessageEmpty)


@pytest.mark.rule("0-10t#239", "0-10t#240", "0-10t#241")
@pytest.mark.parametrize("mode", [1, 2], ids=["transient", "persistent"])
def test_a_publisher_is_held_back_in_an_overflow_and_told_nothing(mode: int) -> None:
    """Create an overflow with non-persistent messages, then with persistent ones; see what comes.

    The server takes the other branch of this MAY: it stops reading instead of sending flow.
    """
    site = MemorySite(memory_high=20_000)
    publisher = Peer(site, site.connect()).open()
    consumer = Peer(site, site.connect()).open()
    consumer.queue("q", durable=True)
    sent = 0
    while not publisher.wire.connection.paused:  # type: ignore[attr-defined]
        transfer(publisher, "q", b"%02d" % sent + bytes(1_000), delivery_mode=mode)
        sent += 1
        assert sent < 40, "the publisher is not held back"
    assert publisher._frame(0) is None, "a frame that nobody asked for"
    for number in range(sent):
        consumer.send(MessageGet(queue="q", no_ack=True))
        expect_transfer(consumer, b"%02d" % number + bytes(1_000))
    site.turn()
    assert not publisher.wire.connection.paused  # type: ignore[attr-defined]
    publisher.settle()


@pytest.mark.departs("0-10t#242")
@pytest.mark.parametrize("arguments", [{}, TEN_LEVELS], ids=["classic", "priorities"])
def test_priority_9_is_received_before_priority_0_where_the_queue_was_declared_with_levels(
    peer: Peer, name: str, arguments: dict[str, int]
) -> None:
    """Send a number of priority 0 messages, then one of priority 9; it is received first."""
    peer.queue(name, arguments=arguments)
    for number in range(5):
        transfer(peer, name, b"%d" % number, priority=0)
    transferred(peer, name, b"urgent", priority=9)
    consume(peer, name)
    if arguments:
        expect_transfer(peer, b"urgent", priority=9)
    for number in range(5):
        expect_transfer(peer, b"%d" % number, priority=0)
    if not arguments:
        expect_transfer(peer, b"urgent", priority=9)


@pytest.mark.rule("0-10t#243")
def test_ten_priority_levels_emerge(peer: Peer, name: str) -> None:
    """Send ten messages in low-to-high priority, 0 to 9; consume and see how many levels emerge."""
    peer.queue(name, arguments=TEN_LEVELS)
    for priority in range(10):
        transfer(peer, name, b"%d" % priority, priority=priority)
    peer.settle()
    consume(peer, name)
    for priority in range(9, -1, -1):
        expect_transfer(peer, b"%d" % priority, priority=priority)


@pytest.mark.rule("0-10t#244")
@pytest.mark.parametrize("arguments", [{}, TEN_LEVELS], ids=["classic", "priorities"])
def test_messages_of_one_priority_keep_their_order_whether_persistent_or_not(
    peer: Peer, name: str, arguments: dict[str, int]
) -> None:
    """Send messages of one priority with different persistence; they arrive as published."""
    peer.queue(name, durable=True, arguments=arguments)
    modes = (1, 2, 2, 1, 0, 2, 1, 1)
    for number, mode in enumerate(modes):
        transfer(peer, name, b"%d" % number, priority=4, delivery_mode=mode)
    peer.settle()
    consume(peer, name)
    for number, mode in enumerate(modes):
        expect_transfer(peer, b"%d" % number, delivery_mode=mode)


@pytest.mark.rule("0-10t#245")
def test_a_consumer_without_acknowledgements_gets_every_message(peer: Peer, name: str) -> None:
    """Create a queue and a consumer with automatic acknowledgements, publish, receive all."""
    peer.queue(name)
    consume(peer, name, no_ack=True)
    for number in range(20):
        transfer(peer, name, b"%d" % number)
    for number in range(20):
        expect_transfer(peer, b"%d" % number)
    peer.run(MessageCancel(destination="d"))
    peer.send(MessageGet(queue=name))
    peer.expect(MessageEmpty)


@pytest.mark.rule("0-10t#246")
def test_an_unacknowledged_message_comes_to_the_next_consumer(connect: Connect, name: str) -> None:
    """Acknowledge only half of the messages, disconnect, reconnect: the others are received."""
    peer = connect().open()
    peer.queue(name)
    for number in range(10):
        transfer(peer, name, b"%d" % number)
    consume(peer, name)
    arrived = [expect_transfer(peer, b"%d" % number) for number in range(10)]
    peer.complete(arrived[4].number)
    peer.close()
    again = connect().open()
    consume(again, name)
    for number in range(5, 10):
        expect_transfer(again, b"%d" % number, redelivered=True)
    again.expect_silence()


@pytest.mark.rule("0-10t#005")
def test_a_message_that_was_not_acknowledged_comes_redelivered(connect: Connect, name: str) -> None:
    """Consume without acknowledging, close the connection, reconnect: it has the flag."""
    peer = connect().open()
    peer.queue(name)
    transfer(peer, name, b"body")
    consume(peer, name)
    expect_transfer(peer, b"body", redelivered=False)
    peer.close()
    again = connect().open()
    consume(again, name)
    expect_transfer(again, b"body", redelivered=True)


@pytest.mark.rule("0-10t#253")
def test_a_queue_has_many_consumers(peer: Peer, name: str) -> None:
    """Create consumers on a queue until the server closes: at least sixteen. Here 500, no limit."""
    peer.queue(name)
    for number in range(500):
        consume(peer, name, f"consumer {number}", no_ack=True)
    declared = peer.ask(m.QueueDeclare(queue=name, passive=True))
    assert declared.consumer_count == 500
    seen = set()
    for number in range(16):
        transfer(peer, name, b"%d" % number)
        seen.add(expect_transfer(peer, b"%d" % number).transfer.destination)
    assert len(seen) == 16


@pytest.mark.rule("0-10t#254")
def test_a_ticket_that_nobody_granted_starts_no_consumer(peer: Peer, name: str) -> None:
    """Attempt to create a consumer with an invalid (non-zero) access ticket."""
    peer.queue(name)
    peer.send(MessageConsume(queue=name, destination="d", ticket=4711))
    peer.expect_channel_close(403, "message.consume", "4711")


@pytest.mark.rule("0-10t#255")
def test_a_consumer_needs_a_queue(peer: Peer) -> None:
    """Attempt to create a consumer with an empty queue name and none declared on the session."""
    peer.send(MessageConsume(destination="d"))
    peer.expect_connection_close(530, "message.consume", "empty")


@pytest.mark.rule("0-10t#256")
def test_a_destination_has_one_consumer(peer: Peer, name: str) -> None:
    """Attempt to create two consumers with the same non-empty destination."""
    peer.queue(name)
    consume(peer, name, "d")
    peer.send(MessageConsume(queue=name, destination="d"))
    peer.expect_connection_close(530, "message.consume", "'d'")


@pytest.mark.rule("0-10t#257", "0-10t#001")
def test_a_destination_is_valid_in_its_own_session_only(connect: Connect, name: str) -> None:
    """Create a consumer in one session, use it in another that has consumers, too."""
    peer = connect().open(channels=(1, 2))
    for channel in (1, 2):
        peer.queue(f"{name}-{channel}", channel)
        consume(peer, f"{name}-{channel}", f"d{channel}", channel=channel)
    peer.run(MessageCancel(destination="d1"), 2)
    transfer(peer, f"{name}-1", b"one")
    mine = expect_transfer(peer, b"one", destination="d1")
    transfer(peer, f"{name}-2", b"two", channel=2)
    expect_transfer(peer, b"two", 2, destination="d2")
    # The number of the other session's delivery means another command here.
    peer.complete(mine.number, channel=2)
    peer.ask(m.ChannelClose(reply_code=200), 1)
    peer.ask(m.ChannelClose(reply_code=200), 2)
    peer.ask(m.ChannelOpen(), 3)
    peer.send(MessageGet(queue=f"{name}-1", no_ack=True), 3)
    expect_transfer(peer, b"one", 3, redelivered=True)
    peer.send(MessageGet(queue=f"{name}-2"), 3)
    peer.expect(MessageEmpty, 3)


@pytest.mark.rule("0-10t#258")
def test_exclusive_access_to_a_queue_with_consumers_is_refused(connect: Connect, name: str) -> None:
    """Consume a shared queue in one connection; ask for it exclusively in a second."""
    first, second = connect().open(), connect().open()
    first.queue(name)
    consume(first, name)
    first.settle()
    second.send(MessageConsume(queue=name, destination="d", exclusive=True))
    second.expect_channel_close(403, "message.consume", name)


def test_a_queue_consumed_exclusively_has_no_other_consumer(connect: Connect, name: str) -> None:
    first, second = connect().open(), connect().open()
    first.queue(name)
    consume(first, name, exclusive=True)
    first.settle()
    second.send(MessageConsume(queue=name, destination="d"))
    second.expect_channel_close(403, "message.consume", name)
