"""Queues with a limit: which messages go, and what publishers are told."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer, publish_octets

REJECT = {"x-overflow": "reject-publish"}
THING = "queue 'q' in vhost '/'"


def limited(peer: Peer, name: str = "q", **arguments: Any) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    peer.queue(name, arguments=given)


def answers(peer: Peer, *bodies: bytes, queue: str = "q") -> list[str]:
    """What a publisher with confirms is told about each message."""
    said = []
    for body in bodies:
        peer.publish("", queue, body)
        said.append(peer.expect_ack_or_nack().NAME)
    return said


def rest(peer: Peer, queue: str = "q") -> list[bytes]:
    return [peer.get(queue).body for _ in range(peer.count(queue))]


ACK, NACK = "basic.ack", "basic.nack"


def test_without_anything_else_the_oldest_messages_go_and_all_are_confirmed(peer: Peer) -> None:
    limited(peer, x_max_length=2)
    peer.ask(m.ConfirmSelect())
    assert answers(peer, b"1", b"2", b"3", b"4") == [ACK] * 4
    assert rest(peer) == [b"3", b"4"]


def test_refused_messages_are_nacked_until_there_is_room(peer: Peer) -> None:
    limited(peer, x_max_length=2, **REJECT)
    peer.ask(m.ConfirmSelect())
    assert answers(peer, b"1", b"2", b"3") == [ACK, ACK, NACK]
    peer.get("q")
    assert answers(peer, b"4", b"5") == [ACK, NACK]
    assert rest(peer) == [b"2", b"4"]


def test_without_confirms_a_refused_message_is_gone_without_a_word(peer: Peer) -> None:
    limited(peer, x_max_length=1, **REJECT)
    peer.publish("", "q", b"1", mandatory=True)
    peer.publish("", "q", b"2", mandatory=True)
    peer.expect_silence()
    assert rest(peer) == [b"1"]


@pytest.mark.rule("0-9-1r#123")
def test_one_queue_that_refuses_makes_it_a_nack_though_others_have_the_message(peer: Peer) -> None:
    limited(peer, x_max_length=0, **REJECT)
    peer.queue("open")
    for queue in ("q", "open"):
        peer.ask(m.QueueBind(queue=queue, exchange="amq.fanout"))
    peer.ask(m.ConfirmSelect())
    peer.publish("amq.fanout", "", b"1")
    assert peer.expect(m.BasicNack).delivery_tag == 1
    peer.expect_silence()
    assert rest(peer, "open") == [b"1"]


def test_acks_and_nacks_come_in_the_order_of_the_publishes(peer: Peer) -> None:
    limited(peer, x_max_length=1, **REJECT)
    peer.queue("open")
    peer.queue("durable", durable=True)
    peer.ask(m.ConfirmSelect())
    peer.send_bytes(
        *[
            publish_octets("", queue, b"", BasicProperties(delivery_mode=2))
            for queue in ("durable", "q", "q", "durable", "open", "q")
        ]
    )
    told: dict[int, str] = {}
    while len(told) < 6:
        found = peer.expect_ack_or_nack()
        first = len(told) + 1
        assert found.multiple or found.delivery_tag == first
        told |= dict.fromkeys(range(first, found.delivery_tag + 1), found.NAME)
    assert told == {1: ACK, 2: ACK, 3: NACK, 4: ACK, 5: ACK, 6: NACK}


def test_a_return_comes_before_its_confirm_beside_nacks(peer: Peer) -> None:
    limited(peer, x_max_length=0, **REJECT)
    peer.ask(m.ConfirmSelect())
    peer.publish("", "q", b"1", mandatory=True)
    peer.expect(m.BasicNack, delivery_tag=1)
    peer.publish("", "nowhere", b"2", mandatory=True)
    peer.expect_content(m.BasicReturn, reply_code=312)
    peer.expect(m.BasicAck, delivery_tag=2)


def test_a_commit_with_a_refused_publish_does_nothing(peer: Peer) -> None:
    limited(peer, x_max_length=1, **REJECT)
    peer.queue("open")
    peer.publish("", "open", b"0")
    peer.ask(m.TxSelect())
    peer.send(m.BasicGet(queue="open"))
    peer.send(m.BasicAck(peer.expect_content(m.BasicGetOk).method.delivery_tag))
    for queue, body in (("q", b"1"), ("q", b"2"), ("open", b"3")):
        peer.publish("", queue, body)
    peer.send(m.TxCommit())
    peer.expect_channel_close(406, "PRECONDITION_FAILED - partial tx completion", "tx.commit")
    peer.ask(m.ChannelOpen())
    assert (rest(peer), rest(peer, "open")) == ([], [b"0"])


@pytest.mark.parametrize(("kind", "limit"), [("classic", 2), ("quorum", 3)])
def test_a_commit_that_fits_exactly_is_done(peer: Peer, kind: str, limit: int) -> None:
    arguments = {"x-max-length": 2, "x-queue-type": kind, **REJECT}
    peer.queue("q", durable=True, arguments=arguments)
    peer.ask(m.TxSelect())
    for number in range(limit):
        peer.publish("", "q", b"%d" % number)
    peer.ask(m.TxCommit())
    peer.publish("", "q", b"one too many")
    peer.send(m.TxCommit())
    peer.expect_channel_close(406, "PRECONDITION_FAILED - partial tx completion", "tx.commit")
    peer.ask(m.ChannelOpen())
    assert rest(peer) == [b"%d" % number for number in range(limit)]


def test_a_message_that_goes_because_there_are_too_many_is_a_dead_letter(peer: Peer) -> None:
    peer.queue("dead")
    limited(peer, x_max_length=1, x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    peer.publish("", "q", b"1")
    peer.publish("", "q", b"2")
    letter = peer.get("dead")
    assert letter.body == b"1"
    headers = letter.properties.headers
    assert headers["x-death"][0]["reason"] == headers["x-first-death-reason"] == "maxlen"
    assert rest(peer) == [b"2"]


def test_a_refused_message_can_be_a_dead_letter_too(peer: Peer) -> None:
    peer.queue("dead")
    limited(
        peer,
        x_max_length=1,
        x_overflow="reject-publish-dlx",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
    )
    peer.ask(m.ConfirmSelect())
    assert answers(peer, b"1", b"2") == [ACK, NACK]
    letter = peer.get("dead")
    assert letter.body == b"2"
    assert letter.properties.headers["x-death"][0]["reason"] == "maxlen"
    assert rest(peer) == [b"1"]


def test_a_dead_letter_that_is_refused_is_gone(peer: Peer) -> None:
    limited(peer, "dead", x_max_length=0, **REJECT)
    limited(peer, x_max_length=1, x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    peer.ask(m.ConfirmSelect())
    assert answers(peer, b"1", b"2") == [ACK, ACK]
    assert (rest(peer), rest(peer, "dead")) == ([b"2"], [])


def test_with_a_limit_of_none_a_message_goes_to_a_waiting_consumer_or_nowhere(peer: Peer) -> None:
    limited(peer, x_max_length=0)
    peer.publish("", "q", b"1")
    assert peer.count("q") == 0
    peer.consume("q")
    peer.publish("", "q", b"2")
    assert peer.expect_delivery().body == b"2"


def test_requeued_messages_may_exceed_the_limit(peer: Peer) -> None:
    limited(peer, x_max_length=2)
    for body in (b"1", b"2"):
        peer.publish("", "q", body)
    for _ in range(2):
        peer.get("q", no_ack=False)
    for body in (b"3", b"4"):
        peer.publish("", "q", body)
    peer.send(m.BasicNack(2, multiple=True, requeue=True))
    assert rest(peer) == [b"3", b"4"]


def test_a_quorum_queue_knows_no_dead_letters_of_what_is_refused_and_drops_its_head(
    peer: Peer,
) -> None:
    arguments = {
        "x-queue-type": "quorum",
        "x-max-length": 1,
        "x-overflow": "reject-publish-dlx",
    }
    peer.queue("q", durable=True, arguments=arguments)
    peer.ask(m.ConfirmSelect())
    assert answers(peer, b"1", b"2") == [ACK, ACK]
    assert rest(peer) == [b"2"]


@pytest.mark.parametrize(
    ("argument", "value", "term"),
    [
        ("x-max-length", -1, "{value_negative,-1}"),
        ("x-max-length", "5", '"expected integer, got longstr"'),
        ("x-max-length", True, '"expected integer, got bool"'),
        ("x-max-length-bytes", -2, "{value_negative,-2}"),
        ("x-overflow", "explode", "invalid_overflow"),
        ("x-overflow", 5, "{unacceptable_type,signedint}"),
    ],
)
def test_limits_that_mean_nothing_are_refused(
    peer: Peer, argument: str, value: Any, term: str
) -> None:
    peer.send(m.QueueDeclare(queue="q", arguments={argument: value}))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - invalid arg '{argument}' for {THING}: {term}",
        "queue.declare",
    )
