"""What time does to messages and queues, on the wire: expiration, x-message-ttl, x-expires."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def passes(peer: Peer, seconds: float) -> None:
    """Time passes: by itself on a socket, by our hand in memory."""
    if isinstance(peer.site, MemorySite):
        peer.site.pass_time(seconds, step=0.05)
    else:
        time.sleep(seconds)


def dead_letter(peer: Peer) -> Any:
    """The message that has to appear in the queue `dead`, sooner or later."""
    peer.send(m.BasicConsume(queue="dead", consumer_tag="c", no_ack=True))
    peer.expect(m.BasicConsumeOk)
    if isinstance(peer.site, MemorySite):
        peer.site.pass_time(1.0, step=0.05)
    return peer.expect_delivery()


@pytest.mark.parametrize("expiration", ["0", "1", "40"])
def test_a_message_expires_by_its_own_property(peer: Peer, expiration: str) -> None:
    peer.queue("dead")
    peer.queue("q", arguments=DEAD)
    properties = BasicProperties(expiration=expiration, headers={"mine": 1}, content_type="t")
    peer.publish("", "q", b"m", properties)
    letter = dead_letter(peer)
    assert letter.body == b"m"
    assert letter.properties.expiration is None
    assert letter.properties.content_type == "t"
    headers = letter.properties.headers
    (event,) = headers["x-death"]
    assert event["reason"] == "expired"
    assert event["original-expiration"] == expiration
    assert headers["x-first-death-reason"] == headers["x-last-death-reason"] == "expired"
    assert headers["mine"] == 1


def test_a_message_expires_by_its_queues_argument(peer: Peer) -> None:
    peer.queue("dead")
    peer.queue("q", arguments={**DEAD, "x-message-ttl": 20})
    peer.publish("", "q", b"m", BasicProperties(expiration="60000"))
    (event,) = dead_letter(peer).properties.headers["x-death"]
    assert (event["reason"], event["original-expiration"]) == ("expired", "60000")


def test_a_queues_ttl_alone_leaves_no_original_expiration(peer: Peer) -> None:
    peer.queue("dead")
    peer.queue("q", arguments={**DEAD, "x-message-ttl": 20})
    peer.publish("", "q", b"m")
    (event,) = dead_letter(peer).properties.headers["x-death"]
    assert "original-expiration" not in event


def test_a_message_for_no_time_is_confirmed_and_gone(peer: Peer) -> None:
    peer.queue("q", arguments={"x-message-ttl": 0})
    peer.ask(m.ConfirmSelect())
    peer.publish("", "q", b"m")
    peer.expect(m.BasicAck, delivery_tag=1)
    assert peer.ask(m.QueueDeclare(queue="q", passive=True)).message_count == 0


def test_a_message_for_no_time_reaches_a_consumer_that_is_ready(peer: Peer) -> None:
    peer.queue("q", arguments={"x-message-ttl": 0})
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
    peer.publish("", "q", b"m", BasicProperties(expiration="0"))
    delivery = peer.expect_delivery(b"m")
    assert delivery.properties.expiration == "0"


def test_the_count_of_a_declaration_leaves_out_what_has_expired(memory_peer: Peer) -> None:
    peer = memory_peer
    peer.queue("q", arguments={"x-message-ttl": 1_000})
    peer.publish("", "q", b"m")
    passes(peer, 0.95)
    assert peer.ask(m.QueueDeclare(queue="q", passive=True)).message_count == 1
    passes(peer, 0.1)
    assert peer.ask(m.QueueDeclare(queue="q", passive=True)).message_count == 0
    peer.send(m.BasicGet(queue="q"))
    peer.expect(m.BasicGetEmpty)


def test_an_unused_queue_is_not_found_any_more(peer: Peer) -> None:
    peer.queue("q", arguments={"x-expires": 50})
    until = time.monotonic() + 60
    while True:
        # To ask for the queue would be to use it; to publish is not.
        passes(peer, 0.1)
        peer.publish("", "q", b"m", mandatory=True).send(m.BasicQos())
        if peer.next_is(m.BasicReturn):
            peer.expect_content(m.BasicReturn, reply_code=312)
            peer.expect(m.BasicQosOk)
            break
        peer.expect(m.BasicQosOk)
        assert time.monotonic() < until
    peer.send(m.QueueDeclare(queue="q", passive=True))
    peer.expect_channel_close(404, "NOT_FOUND - no queue 'q' in vhost '/'", "queue.declare")


def test_a_transaction_that_is_not_committed_does_not_expire(memory_peer: Peer) -> None:
    peer = memory_peer
    peer.queue("q")
    peer.ask(m.TxSelect())
    peer.publish("", "q", b"m", BasicProperties(expiration="1000"))
    passes(peer, 5)
    peer.ask(m.TxCommit())
    peer.send(m.BasicGet(queue="q", no_ack=True))
    assert peer.expect_content(m.BasicGetOk).body == b"m"


def test_a_stream_takes_no_ttl_and_lets_nothing_expire(memory_peer: Peer) -> None:
    peer = memory_peer
    peer.queue("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.publish("", "s", b"m", BasicProperties(expiration="10"))
    passes(peer, 5)
    peer.ask(m.BasicQos(prefetch_count=5))
    peer.ask(m.BasicConsume(queue="s", consumer_tag="c", arguments={"x-stream-offset": "first"}))
    passes(peer, 1)
    peer.expect_delivery(b"m")


RETRY = {"x-retry-delays": [40, 80], **DEAD}


def test_a_rejected_message_is_delivered_again_later_and_dies_at_last(peer: Peer) -> None:
    peer.queue("dead")
    peer.queue("q", arguments=RETRY)
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.publish("", "q", b"m")
    for failed in range(3):
        if failed and isinstance(peer.site, MemorySite):
            passes(peer, 0.1)
        delivery = peer.expect_delivery(b"m", redelivered=failed > 0)
        headers = delivery.properties.headers or {}
        assert headers.get("x-delivery-count", 0) == failed
        peer.send(m.BasicReject(delivery.method.delivery_tag, requeue=False))
        if not failed and isinstance(peer.site, MemorySite):
            assert peer.ask(m.QueueDeclare(queue="dead", passive=True)).message_count == 0
    letter = peer.get("dead")
    assert letter.properties.headers["x-death"][0]["reason"] == "rejected"


def test_a_message_that_is_not_acknowledged_in_time_waits_like_a_rejected_one(
    memory_peer: Peer,
) -> None:
    peer = memory_peer
    arguments = {"x-retry-delays": [5_000], "x-consumer-timeout": 1_000}
    peer.queue("q", arguments=arguments)
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.publish("", "q", b"m")
    peer.expect_delivery(b"m")
    site = peer.site
    assert isinstance(site, MemorySite)
    overdue = DeliveryAckTimeout(site.registry, 0)
    until = site.now + 2
    while site.now < until:
        site.pass_time(0.25)
        overdue.look(site.now)
        site.turn()
    peer.expect(m.ChannelClose, reply_code=406)
    peer.send(m.ChannelCloseOk())
    peer.ask(m.ChannelOpen())
    assert peer.ask(m.QueueDeclare(queue="q", passive=True)).message_count == 0
    passes(peer, 5)
    assert peer.get("q").method.redelivered


def test_a_quorum_queue_tells_nack_from_reject_when_it_delays(memory_peer: Peer) -> None:
    peer = memory_peer
    arguments = {
        "x-queue-type": "quorum",
        "x-delayed-retry-type": "failed",
        "x-delayed-retry-min": 1_000,
    }
    peer.queue("q", durable=True, arguments=arguments)
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.publish("", "q", b"m")
    first = peer.expect_delivery(b"m")
    peer.send(m.BasicNack(first.method.delivery_tag, requeue=True))
    second = peer.expect_delivery(b"m", redelivered=True)
    peer.send(m.BasicReject(second.method.delivery_tag, requeue=True))
    passes(peer, 1.9)
    passes(peer, 0.2)
    third = peer.expect_delivery(b"m", redelivered=True)
    assert third.properties.headers["x-delivery-count"] == 2
