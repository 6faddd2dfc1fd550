"""no-local: a consumer does not get what its own connection publishes, and others do."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer

QUORUM: dict[str, Any] = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
KINDS: list[dict[str, Any]] = [{}, {"arguments": {"x-max-priority": 3}}, QUORUM]


@pytest.fixture
def other(connect: Connect) -> Peer:
    """Another connection."""
    return connect().open()


def _consumer(peer: Peer, queue: str = "q", **options: Any) -> None:
    peer.consume(queue, **{"no_local": True, "no_ack": True, **options})


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_what_its_connection_publishes_is_not_delivered_and_the_rest_is(
    peer: Peer, other: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _consumer(peer)
    for number in range(3):
        peer.publish("", "q", b"own %d" % number)
        other.publish("", "q", b"other %d" % number)
        other.expect_silence()
        peer.expect_delivery(b"other %d" % number, redelivered=False)
    peer.expect_silence()
    assert peer.count("q") == 3


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_what_one_consumer_does_not_want_waits_for_another_in_its_order(
    peer: Peer, other: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _consumer(peer)
    for number in range(3):
        peer.publish("", "q", b"%d" % number)
    peer.expect_silence()
    other.consume("q", consumer_tag="theirs", no_ack=True)
    for number in range(3):
        found = other.expect_delivery(b"%d" % number, consumer_tag="theirs")
        assert found.method.redelivered is bool(options is QUORUM and found.method.redelivered)


def test_another_consumer_gets_it_at_once_and_within_its_prefetch(peer: Peer, other: Peer) -> None:
    peer.queue("q")
    other.ask(m.BasicQos(0, 1))
    other.consume("q", consumer_tag="theirs")
    _consumer(peer)
    for number in range(3):
        peer.publish("", "q", b"%d" % number)
    peer.expect_silence()
    for number in range(3):
        tag = other.expect_delivery(b"%d" % number, redelivered=False).method.delivery_tag
        other.expect_silence()
        other.send(m.BasicAck(tag))
    assert peer.count("q") == 0


def test_a_second_channel_of_the_same_connection_publishes_for_it_as_well(peer: Peer) -> None:
    peer.ask(m.ChannelOpen(), 2)
    peer.queue("q")
    _consumer(peer)
    peer.publish("", "q", b"own", channel=2)
    peer.expect_silence()
    peer.consume("q", consumer_tag="all", no_ack=True, channel=2)
    peer.expect_delivery(b"own", channel=2, consumer_tag="all")


def test_a_get_finds_it_where_it_came_in(peer: Peer, other: Peer) -> None:
    peer.queue("q")
    _consumer(peer, no_ack=False)
    peer.publish("", "q", b"1")
    peer.publish("", "q", b"2")
    peer.expect_silence()
    found = other.get("q")
    assert (found.body, found.method.redelivered, found.method.message_count) == (b"1", False, 1)
    assert peer.get("q").body == b"2"


def test_what_waited_is_delivered_to_nobody_less_when_the_consumer_goes(peer: Peer) -> None:
    peer.queue("q")
    peer.consume("q", consumer_tag="mine", no_local=True, no_ack=True)
    peer.publish("", "q", b"1")
    peer.expect_silence()
    peer.ask(m.BasicCancel("mine"))
    assert peer.count("q") == 1
    peer.consume("q", no_ack=True)
    peer.expect_delivery(b"1", redelivered=False)


def test_in_an_exclusive_queue_nobody_else_could_take_it_and_it_is_gone(
    peer: Peer, other: Peer
) -> None:
    peer.queue("q", exclusive=True)
    _consumer(peer)
    peer.ask(m.ConfirmSelect())
    peer.publish("", "q", b"own", mandatory=True)
    peer.expect(m.BasicAck, delivery_tag=1)
    assert peer.count("q") == 0
    other.publish("", "q", b"other")
    other.expect_silence()
    peer.expect_delivery(b"other")


def test_a_rejected_message_comes_back_to_others_only(peer: Peer, other: Peer) -> None:
    peer.queue("q")
    _consumer(peer)
    other.consume("q", consumer_tag="theirs")
    peer.publish("", "q", b"own")
    peer.expect_silence()
    tag = other.expect_delivery(b"own", redelivered=False).method.delivery_tag
    other.send(m.BasicReject(tag, requeue=True))
    other.expect_delivery(b"own", redelivered=True)
    peer.expect_silence()


def test_a_purge_and_a_delete_take_along_what_waits(peer: Peer) -> None:
    peer.queue("q")
    _consumer(peer)
    for number in range(2):
        peer.publish("", "q", b"%d" % number)
    assert peer.ask(m.QueuePurge("q")).message_count == 2
    assert peer.count("q") == 0
    peer.publish("", "q", b"2")
    assert peer.ask(m.QueueDelete("q")).message_count == 1


def test_with_the_flag_off_a_connection_gets_its_own_messages(peer: Peer) -> None:
    peer.queue("q")
    peer.consume("q", no_ack=True)
    peer.publish("", "q", b"own", BasicProperties(app_id="me"))
    peer.expect_delivery(b"own")
