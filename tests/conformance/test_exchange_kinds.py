"""RabbitMQ's further exchange types, over the wire: one destination of several per message."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer

QUEUES = ("q1", "q2", "q3")
KINDS = [
    ("x-consistent-hash", "1"),
    ("x-modulus-hash", ""),
    ("x-random", ""),
    ("x-local-random", ""),
]


def _bound(peer: Peer, kind: str, key: str, **arguments: Any) -> None:
    peer.ask(m.ExchangeDeclare("x", kind, arguments=arguments))
    for queue in QUEUES:
        peer.queue(queue)
        peer.ask(m.QueueBind(queue, "x", key))


def _counts(peer: Peer) -> list[int]:
    found = [peer.ask(m.QueueDeclare(queue, passive=True)) for queue in QUEUES]
    return [ok.message_count for ok in found]


@pytest.mark.parametrize(("kind", "key"), KINDS)
def test_every_message_goes_to_one_queue_and_every_queue_gets_some(
    peer: Peer, kind: str, key: str
) -> None:
    _bound(peer, kind, key)
    for number in range(90):
        peer.publish("x", f"key-{number}", b"body")
    counts = _counts(peer)
    assert sum(counts) == 90
    assert all(counts)


@pytest.mark.parametrize(("kind", "key"), KINDS[:2])
def test_messages_of_one_key_stay_together(peer: Peer, kind: str, key: str) -> None:
    _bound(peer, kind, key)
    for _ in range(30):
        peer.publish("x", "same", b"body")
    assert sorted(_counts(peer)) == [0, 0, 30]


def test_messages_of_one_header_value_stay_together(peer: Peer) -> None:
    _bound(peer, "x-consistent-hash", "1", **{"hash-header": "customer"})
    for number in range(30):
        peer.publish("x", f"key-{number}", b"", BasicProperties(headers={"customer": "one"}))
    assert sorted(_counts(peer)) == [0, 0, 30]


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (m.QueueBind("q", "hash", "0"), "The binding key must be greater than 0"),
        (m.QueueBind("q", "hash", "many"), 'The binding key must be an integer: <<"many">>'),
        (m.QueueBind("q", "local", "k"), "Non empty binding 'k' key not permitted"),
        (m.ExchangeBind("hash", "local", ""), "Destination not found"),
        (
            m.ExchangeDeclare("x", "x-consistent-hash", arguments={"hash-property": "type"}),
            "Unsupported property: type",
        ),
    ],
)
def test_arguments_that_the_type_cannot_use_are_refused(
    peer: Peer, method: m.Method, text: str
) -> None:
    peer.queue("q")
    peer.ask(m.ExchangeDeclare("hash", "x-consistent-hash"))
    peer.ask(m.ExchangeDeclare("local", "x-local-random"))
    peer.send(method)
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", method.NAME)
