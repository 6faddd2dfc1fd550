"""Queue kinds beside the classic one: what nobody may ask of them, and the words of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer

STREAM = {"x-queue-type": "stream"}
QUORUM = {"x-queue-type": "quorum"}
THING = "queue 'q' in vhost '/'"


def declared(peer: Peer, arguments: dict[str, Any]) -> None:
    peer.queue("q", durable=True, arguments=arguments)


def consume(**changed: Any) -> m.Method:
    return m.BasicConsume(queue="q", consumer_tag="c", **changed)


@pytest.mark.parametrize(
    ("arguments", "prefetch", "method", "code", "text"),
    [
        (
            STREAM,
            1,
            m.BasicGet(queue="q"),
            540,
            f"NOT_IMPLEMENTED - basic.get not supported by stream queues {THING}",
        ),
        (
            STREAM,
            1,
            m.QueuePurge(queue="q"),
            540,
            f"NOT_IMPLEMENTED - queue.purge not supported by stream queues {THING}",
        ),
        (
            STREAM,
            1,
            consume(no_ack=True),
            540,
            f"NOT_IMPLEMENTED - automatic acknowledgement not supported by stream {THING}",
        ),
        (
            QUORUM,
            1,
            m.QueueDelete(queue="q", if_empty=True),
            540,
            f"NOT_IMPLEMENTED - cannot delete {THING}. queue.delete operations with if-empty flag "
            "set are not supported by quorum queues",
        ),
    ],
)
def test_an_operation_that_the_queue_type_lacks_closes_the_connection(
    peer: Peer, arguments: dict[str, Any], prefetch: int, method: m.Method, code: int, text: str
) -> None:
    declared(peer, arguments)
    peer.ask(m.BasicQos(prefetch_count=prefetch))
    peer.send(method)
    peer.expect_connection_close(code, text, at=method.NAME)


@pytest.mark.parametrize("arguments", [STREAM, QUORUM])
def test_one_prefetch_for_a_whole_channel_is_not_for_streams_and_quorum_queues(
    peer: Peer, arguments: dict[str, Any]
) -> None:
    declared(peer, arguments)
    peer.ask(m.BasicQos(prefetch_count=1))
    peer.ask(m.BasicQos(prefetch_count=10, global_=True))
    peer.send(consume())
    peer.expect_connection_close(
        540, f"NOT_IMPLEMENTED - {THING} does not support global qos", at="basic.consume"
    )


@pytest.mark.parametrize("kind", [STREAM, QUORUM])
def test_streams_and_quorum_queues_cannot_be_exclusive(peer: Peer, kind: dict[str, Any]) -> None:
    declared(peer, kind)
    peer.ask(m.BasicQos(prefetch_count=1))
    for tag, exclusive in (("a", True), ("b", False), ("c", True)):
        peer.consume("q", consumer_tag=tag, exclusive=exclusive)


@pytest.mark.parametrize(
    ("prefetch", "changed", "text"),
    [
        (0, {}, f"consumer prefetch count is not set for stream {THING}"),
        (
            1,
            {"arguments": {"x-priority": 3}},
            f"invalid arg 'x-priority' for {THING} of queue type rabbit_stream_queue",
        ),
        (
            1,
            {"arguments": {"x-stream-offset": "foo"}},
            f"invalid arg 'x-stream-offset' for {THING}: "
            '{invalid_stream_offset_arg,{longstr,<<"foo">>}}',
        ),
    ],
)
def test_a_consumer_that_a_stream_cannot_serve_loses_its_channel(
    peer: Peer, prefetch: int, changed: dict[str, Any], text: str
) -> None:
    declared(peer, STREAM)
    peer.ask(m.BasicQos(prefetch_count=prefetch))
    peer.send(consume(**changed))
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", at="basic.consume")


@pytest.mark.parametrize("kind", ["quorum", "stream"])
@pytest.mark.parametrize(
    ("method", "text"),
    [
        (m.QueueDeclare(queue="q"), f"invalid property 'non-durable' for {THING}"),
        (
            m.QueueDeclare(queue="q", durable=True, exclusive=True),
            f"invalid property 'exclusive-owner' for {THING}",
        ),
        (
            m.QueueDeclare(queue="q", durable=True, auto_delete=True),
            f"invalid property 'auto-delete' for {THING}",
        ),
        (
            m.QueueDeclare(queue="", durable=True),
            "Cannot declare a server-named queue for type rabbit_{kind}_queue",
        ),
    ],
)
def test_quorum_queues_and_streams_have_no_other_properties(
    peer: Peer, kind: str, method: m.QueueDeclare, text: str
) -> None:
    method.arguments = {"x-queue-type": kind}
    peer.send(method)
    expected = "PRECONDITION_FAILED - " + text.replace("{kind}", kind)
    peer.expect_channel_close(406, expected, at="queue.declare")


def test_an_argument_of_another_kind_is_refused(peer: Peer) -> None:
    peer.send(m.QueueDeclare(queue="q", durable=True, arguments={**QUORUM, "x-max-priority": 5}))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-max-priority' for {THING} of queue type "
        "rabbit_quorum_queue",
        at="queue.declare",
    )


def test_a_queue_cannot_be_declared_again_as_another_kind(peer: Peer) -> None:
    declared(peer, QUORUM)
    peer.send(m.QueueDeclare(queue="q", durable=True))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for {THING}: received none but "
        "current is the value 'quorum' of type 'longstr'",
        at="queue.declare",
    )


@pytest.mark.rule("0-9-1r#090")
def test_a_message_of_higher_priority_is_delivered_first(peer: Peer) -> None:
    peer.queue("q", arguments={"x-max-priority": 9})
    for priority, body in ((0, b"low"), (9, b"high"), (5, b"middle")):
        peer.publish("", "q", body, properties=b"\x08\x00" + bytes((priority,)))
    assert [peer.get("q").body for _ in range(3)] == [b"high", b"middle", b"low"]
