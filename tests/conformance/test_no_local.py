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
def test_messages_of_its_own_connection_are_not_delivered_and_the_rest_is(
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
def test_a_message_that_one_consumer_does_not_want_waits_for_another_in_its_order(
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


def test_messages_that_waited_for_a_consumer_stay_undelivered_when_it_goes(peer: Peer) -> None:
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


# --- queues that keep the order of keys -----------------------------------------------------------

KEYED: list[dict[str, Any]] = [
    {"arguments": {"x-group-key": "correlation_id"}},
    {"durable": True, "arguments": {"x-queue-type": "quorum", "x-group-key": "correlation_id"}},
]


def _keyed(peer: Peer, key: str, body: bytes) -> None:
    peer.publish("", "q", body, BasicProperties(correlation_id=key))


@pytest.mark.parametrize("options", KEYED, ids=str)
def test_with_ordering_keys_what_a_connection_publishes_holds_up_its_own_key_alone(
    peer: Peer, other: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _consumer(peer, no_ack=False)
    _keyed(peer, "a", b"own a")
    peer.publish("", "q", b"own")
    peer.expect_silence()
    _keyed(other, "b", b"b")
    peer.expect_delivery(b"b", redelivered=False)
    _keyed(other, "a", b"a behind it")
    other.publish("", "q", b"without a key")
    other.expect_silence()
    peer.expect_delivery(b"without a key", redelivered=False)
    peer.expect_silence()
    other.consume("q", consumer_tag="theirs")
    found = [other.expect_delivery(redelivered=False).body for _ in range(3)]
    assert sorted(found) == [b"a behind it", b"own", b"own a"]
    assert found.index(b"own a") < found.index(b"a behind it")
    for each in (peer, other):
        each.send(m.BasicAck(0, True))
        assert each.count("q") == 0


@pytest.mark.parametrize("options", KEYED, ids=str)
def test_a_key_that_a_consumer_holds_goes_on_with_another_when_its_own_message_is_next(
    peer: Peer, other: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _consumer(peer, no_ack=False)
    _keyed(other, "a", b"1")
    first = peer.expect_delivery(b"1").method.delivery_tag
    other.consume("q", consumer_tag="theirs")
    _keyed(peer, "a", b"2")
    peer.expect_silence()
    _keyed(other, "a", b"3")
    other.expect_silence()
    peer.expect_silence()
    peer.send(m.BasicAck(first))
    for body in (b"2", b"3"):
        other.expect_delivery(body, redelivered=False)
    other.send(m.BasicAck(0, True))
    other.expect_silence()
    peer.expect_silence()


@pytest.mark.parametrize("options", KEYED, ids=str)
def test_with_ordering_keys_a_get_and_a_purge_find_what_waits(
    peer: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _consumer(peer, no_ack=False)
    for body in (b"1", b"2"):
        _keyed(peer, "a", body)
    peer.publish("", "q", b"3")
    peer.expect_silence()
    assert peer.count("q") == 3
    found = peer.get("q")
    assert (found.body, found.method.redelivered) == (b"1", False)
    assert peer.ask(m.QueuePurge("q")).message_count == 2
    peer.expect_silence()
    assert peer.count("q") == 0


# --- a single active consumer ---------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{}, {"x-group-key": "correlation_id"}], ids=str)
def test_one_of_higher_priority_that_is_not_active_gets_nothing_and_the_broker_goes_on(
    peer: Peer, other: Peer, keys: dict[str, Any]
) -> None:
    peer.queue("q", arguments={"x-single-active-consumer": True, **keys})
    _consumer(peer, consumer_tag="mine", no_ack=False)
    other.consume("q", arguments={"x-priority": 10})
    _keyed(peer, "a", b"own")
    peer.expect_silence()
    other.expect_silence()
    peer.ask(m.BasicCancel("mine"))
    other.expect_delivery(b"own", redelivered=False)


# --- streams --------------------------------------------------------------------------------------

STREAM: dict[str, Any] = {"durable": True, "arguments": {"x-queue-type": "stream"}}


def test_a_stream_does_not_show_a_consumer_what_its_own_connection_publishes(
    peer: Peer, other: Peer
) -> None:
    peer.queue("q", **STREAM)
    for each in (peer, other):
        each.ask(m.BasicQos(0, 100))
    peer.publish("", "q", b"before")
    other.consume("q", consumer_tag="all", arguments={"x-stream-offset": "first"})
    other.expect_delivery(b"before")
    _consumer(peer, no_ack=False, arguments={"x-stream-offset": "first"})
    # What was there before its consumer was is nobody's own any more.
    peer.expect_delivery(b"before")
    for number in range(3):
        peer.publish("", "q", b"own %d" % number)
        other.expect_delivery(b"own %d" % number)
        other.publish("", "q", b"other %d" % number)
        other.expect_delivery(b"other %d" % number)
        peer.expect_delivery(b"other %d" % number)
    peer.expect_silence()


def test_a_stream_shows_it_to_another_consumer_of_the_same_connection(peer: Peer) -> None:
    peer.queue("q", **STREAM)
    peer.ask(m.BasicQos(0, 1))
    _consumer(peer, no_ack=False, consumer_tag="picky")
    peer.consume("q", consumer_tag="all")
    for body in (b"1", b"2"):
        peer.publish("", "q", body)
        tag = peer.expect_delivery(body, consumer_tag="all").method.delivery_tag
        peer.send(m.BasicAck(tag))
    peer.ask(m.BasicCancel("picky"))
    peer.publish("", "q", b"3")
    peer.expect_delivery(b"3", consumer_tag="all")
