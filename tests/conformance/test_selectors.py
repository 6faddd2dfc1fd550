"""Selectors of consumers, on every kind of queue."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer

RED = {"x-filter-jms-selector": "color = 'red' AND weight >= 2"}
QUORUM: dict[str, Any] = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
STREAM: dict[str, Any] = {"durable": True, "arguments": {"x-queue-type": "stream"}}
KINDS: list[dict[str, Any]] = [
    {},
    QUORUM,
    {"arguments": {"x-max-priority": 3}},
    {"arguments": {"x-group-key": "color"}},
    {"durable": True},
]


def _publish(peer: Peer, body: bytes, color: str, weight: int = 2, queue: str = "q") -> None:
    headers = {"color": color, "weight": weight}
    peer.publish("", queue, body, BasicProperties(headers=headers))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_consumer_gets_what_its_selector_selects_and_the_rest_stays(
    peer: Peer, options: dict[str, Any]
) -> None:
    peer.queue("q", **options)
    _publish(peer, b"1", "blue")
    _publish(peer, b"2", "red")
    _publish(peer, b"3", "red", 1)
    peer.consume("q", arguments=RED)
    first = peer.expect_delivery(b"2", redelivered=False)
    _publish(peer, b"4", "red")
    _publish(peer, b"5", "blue")
    if "x-group-key" in options.get("arguments", {}):
        peer.send(m.BasicAck(first.method.delivery_tag))
        peer.expect_delivery(b"4")
    else:
        second = peer.expect_delivery(b"4", redelivered=False)
        peer.send(m.BasicNack(second.method.delivery_tag, requeue=True))
        peer.expect_delivery(b"4", redelivered=True)
    peer.expect_silence()
    assert peer.count("q") == 3


def test_a_selector_holds_on_a_stream(peer: Peer) -> None:
    peer.queue("q", **STREAM)
    peer.ask(m.ConfirmSelect())
    for number, color in enumerate(("red", "blue", "red")):
        _publish(peer, b"%d" % number, color)
        peer.expect(m.BasicAck)
    peer.ask(m.BasicQos(prefetch_count=10))
    peer.consume("q", arguments={**RED, "x-stream-offset": "first"})
    peer.expect_delivery(b"0")
    peer.expect_delivery(b"2")
    peer.expect_silence()


def test_what_one_selector_leaves_another_consumer_and_get_take(
    peer: Peer, connect: Connect
) -> None:
    other = connect().open()
    peer.queue("q")
    for number, color in enumerate(("blue", "red", "green")):
        _publish(peer, b"%d" % number, color)
    peer.consume("q", arguments=RED, no_ack=True)
    peer.expect_delivery(b"1")
    other.consume("q", arguments={"x-filter-jms-selector": "color IN ('green')"}, no_ack=True)
    other.expect_delivery(b"2")
    other.send(m.BasicGet(queue="q", no_ack=True))
    assert other.expect_content(m.BasicGetOk, message_count=0).body == b"0"


def test_an_empty_selector_is_none(peer: Peer) -> None:
    peer.queue("q")
    peer.consume("q", arguments={"x-filter-jms-selector": " "}, no_ack=True)
    _publish(peer, b"1", "blue")
    peer.expect_delivery(b"1")


def test_a_wrong_selector_closes_the_channel_with_its_place(peer: Peer) -> None:
    peer.queue("q")
    peer.send(m.BasicConsume(queue="q", arguments={"x-filter-jms-selector": "color = = 'red'"}))
    peer.expect_channel_close(
        406,
        "PRECONDITION_FAILED - invalid arg 'x-filter-jms-selector' of the consumer: the selector "
        "is wrong at character 9: a column or a value is missing before '='",
        "basic.consume",
    )
