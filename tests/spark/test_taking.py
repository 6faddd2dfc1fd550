"""Messages that are taken from a queue and settled: whole or not at all, without a session."""

from __future__ import annotations

from typing import Any

import pika
import pytest

from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.spec.description import Route
from harebell.pipeline.sql import queue_snapshot as taking
from harebell.pipeline.sql.queue_snapshot import Change, take_snapshot
from tests.relay import relay
from tests.spark.asking import taken_bodies, waiting

pytestmark = pytest.mark.timeout(600)


def test_a_move_of_which_one_message_has_no_queue_changes_nothing(
    broker_url: str, channel: Any, queue: str
) -> None:
    channel.queue_declare(f"{queue}.to")
    for number in range(4):
        channel.basic_publish("", queue, b"%d" % number)
    changes = [Change(row) for row in range(3)]

    def target(message: Any) -> Route:
        return Route("", f"{queue}.to" if message.body != b"1" else "no.such.queue")

    with (
        pytest.raises(PipelineError, match=r"1 of 3 messages reach no queue.*'no\.such\.queue'"),
        take_snapshot(URL.parse(broker_url), queue) as taken,
    ):
        taken.settle(changes, target)
    assert taken_bodies(channel, queue) == [b"0", b"1", b"2", b"3"]
    assert taken_bodies(channel, f"{queue}.to") == []
    channel.queue_delete(f"{queue}.to")


def test_no_message_of_a_quorum_queue_dies_of_being_looked_at(
    broker_url: str, channel: Any, queue: str
) -> None:
    quorum = f"{queue}.quorum"
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 1}
    channel.queue_declare(quorum, durable=True, arguments=arguments)
    for number in range(4):
        channel.basic_publish("", quorum, b"%d" % number)
    for _ in range(3):
        with take_snapshot(URL.parse(broker_url), quorum) as taken:
            assert len(taken) == 4
        assert waiting(channel, quorum) == 4
    with take_snapshot(URL.parse(broker_url), quorum) as taken:
        taken.settle([Change(2)], None)
    assert taken_bodies(channel, quorum) == [b"0", b"1", b"3"]
    channel.queue_delete(quorum)


def test_a_stream_is_refused_before_anybody_waits_for_its_messages(
    broker_url: str, channel: Any, queue: str
) -> None:
    stream = f"{queue}.stream"
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    channel.basic_publish("", stream, b"0")
    with (
        pytest.raises(PipelineError, match="is a stream: its messages go by their age"),
        take_snapshot(URL.parse(broker_url), stream),
    ):
        pass
    channel.queue_delete(stream)


def test_a_broker_that_is_slow_is_waited_for_until_all_is_there(
    broker_url: str, channel: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "_QUIET_SECONDS", 0.1)
    for _ in range(10):
        channel.basic_publish("", queue, bytes(50_000))
    with relay(pika.URLParameters(broker_url).port) as slow:
        # What is too much for one piece comes with a silence after each.
        slow.late = 0.2
        url = URL.parse(f"amqp://127.0.0.1:{slow.port}/%2F?connection_timeout=60000")
        with take_snapshot(url, queue) as taken:
            assert len(taken) == 10
    assert waiting(channel, queue) == 10


def test_a_queue_that_another_consumer_has_alone_is_not_taken_for_empty(
    broker_url: str, channel: Any, queue: str
) -> None:
    alone = f"{queue}.alone"
    channel.queue_declare(alone, arguments={"x-single-active-consumer": True})
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(alone, lambda *_: None)
    for number in range(3):
        channel.basic_publish("", alone, b"%d" % number)
    with (
        pytest.raises(PipelineError, match="has 2 messages, and none came in 3 s"),
        take_snapshot(URL.parse(broker_url), alone),
    ):
        pass
    channel.queue_delete(alone)
