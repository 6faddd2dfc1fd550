"""Single active consumers on the wire: who takes over when, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer

SINGLE: dict[str, Any] = {"x-single-active-consumer": True}
QUORUM: dict[str, Any] = {**SINGLE, "x-queue-type": "quorum"}
KINDS = pytest.mark.parametrize("arguments", [SINGLE, QUORUM])
THING = "queue 'q' in vhost '/'"


@KINDS
def test_the_next_consumer_takes_over_when_the_active_one_is_cancelled(
    peer: Peer, arguments: dict[str, Any]
) -> None:
    peer.queue("q", durable=True, arguments=arguments)
    peer.ask(m.BasicQos(prefetch_count=1))
    peer.consume("q", consumer_tag="one")
    peer.consume("q", consumer_tag="two")
    peer.publish("", "q", b"a")
    peer.publish("", "q", b"b")
    assert peer.expect_delivery(b"a").method.consumer_tag == "one"
    peer.expect_silence()
    peer.send(m.BasicCancel(consumer_tag="one"))
    peer.expect(m.BasicCancelOk, consumer_tag="one")
    assert peer.expect_delivery(b"b").method.consumer_tag == "two"


@KINDS
def test_another_connection_takes_over_when_that_of_the_active_one_is_lost(
    connect: Connect, arguments: dict[str, Any]
) -> None:
    active, waiting = connect().open(), connect().open()
    active.queue("q", durable=True, arguments=arguments)
    active.ask(m.BasicQos(prefetch_count=1))
    active.consume("q", consumer_tag="one")
    waiting.consume("q", consumer_tag="two")
    active.publish("", "q", b"a")
    active.publish("", "q", b"b")
    active.expect_delivery(b"a")
    waiting.expect_silence()
    active.close()
    waiting.expect_delivery(b"a", redelivered=True)
    waiting.expect_delivery(b"b")


def test_basic_get_is_refused_by_a_quorum_queue_with_a_single_active_consumer(peer: Peer) -> None:
    peer.queue("q", durable=True, arguments=QUORUM)
    peer.send(m.BasicGet(queue="q"))
    peer.expect_channel_close(
        405,
        f"RESOURCE_LOCKED - cannot obtain access to locked {THING}. basic.get operations are not "
        "supported by quorum queues with single active consumer",
        at="basic.get",
    )


def test_an_exclusive_consumer_is_refused_by_a_queue_with_a_single_active_one(peer: Peer) -> None:
    peer.queue("q", durable=True, arguments=SINGLE)
    peer.send(m.BasicConsume(queue="q", consumer_tag="c", exclusive=True))
    peer.expect_channel_close(403, f"ACCESS_REFUSED - {THING} in exclusive use", at="basic.consume")
