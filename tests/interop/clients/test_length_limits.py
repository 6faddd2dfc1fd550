"""Queues with limits, as applications with pika meet them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, NackError

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import bodies, connected, parameters
from tests.running import RunningBroker

pytestmark = pytest.mark.interop
KINDS = [{}, {"x-max-priority": 3}, {"x-queue-type": "quorum"}]
LASTING = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def publish(channel: BlockingChannel, queue: str, *texts: str) -> list[bool]:
    """Which of the messages were confirmed by an ack."""
    taken = []
    for text in texts:
        try:
            channel.basic_publish("", queue, text.encode(), LASTING)
            taken.append(True)
        except NackError:
            taken.append(False)
    return taken


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [{"x-max-length": 3}, {"x-max-length-bytes": 3}])
def test_a_queue_keeps_the_newest_messages(
    channel: BlockingChannel, name: Names, kind: dict[str, object], limit: dict[str, object]
) -> None:
    queue = name("limited")
    channel.queue_declare(queue, durable=True, arguments={**kind, **limit})
    assert publish(channel, queue, *"12345") == [True] * 5
    assert bodies(channel, queue) == [b"3", b"4", b"5"]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_publisher_hears_that_a_queue_is_full(
    channel: BlockingChannel, name: Names, kind: dict[str, object]
) -> None:
    queue = name("limited")
    limit = {"x-max-length": 2, "x-overflow": "reject-publish"}
    channel.queue_declare(queue, durable=True, arguments={**kind, **limit})
    assert publish(channel, queue, *"1234") == [True, True, False, False]
    assert bodies(channel, queue) == [b"1", b"2"]
    assert publish(channel, queue, "5") == [True]


def test_a_quorum_queue_takes_one_too_many_before_it_refuses(
    channel: BlockingChannel, name: Names
) -> None:
    queue = name("limited")
    limit = {"x-queue-type": "quorum", "x-max-length": 2, "x-overflow": "reject-publish"}
    channel.queue_declare(queue, durable=True, arguments=limit)
    assert publish(channel, queue, *"12345") == [True, True, True, False, False]
    assert bodies(channel, queue) == [b"1", b"2", b"3"]


def test_dropped_messages_are_in_the_dead_letter_queue_in_order(
    channel: BlockingChannel, name: Names
) -> None:
    queue, dead = name("limited"), name("dead")
    channel.queue_declare(dead, durable=True)
    arguments = {
        "x-max-length": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead,
    }
    channel.queue_declare(queue, durable=True, arguments=arguments)
    publish(channel, queue, *"1234")
    _, properties, body = channel.basic_get(dead, auto_ack=True)
    assert body == b"1"
    assert properties.headers["x-death"][0]["reason"] == "maxlen"
    assert properties.headers["x-first-death-queue"] == queue
    assert bodies(channel, dead) == [b"2", b"3"]


def test_a_transaction_with_a_full_queue_fails(broker: RunningBroker, name: Names) -> None:
    queue = name("limited")
    with connected(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
        channel.tx_select()
        channel.basic_publish("", queue, b"1")
        with pytest.raises(ChannelClosedByBroker) as caught:
            channel.tx_commit()
        assert caught.value.reply_text == "PRECONDITION_FAILED - partial tx completion"


@pytest.mark.parametrize("kind", KINDS)
def test_messages_out_when_the_broker_ended_count_after_the_restart(
    kind: dict[str, object],
) -> None:
    with own_broker() as first:
        # Never closed: what it holds is still out when the broker dies.
        channel = pika.BlockingConnection(parameters(first)).channel()
        channel.confirm_delivery()
        channel.queue_declare("dead", durable=True)
        arguments = {
            "x-max-length-bytes": 2,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
            **kind,
        }
        channel.queue_declare("limited", durable=True, arguments=arguments)
        publish(channel, "limited", *"12")
        for _ in range(2):
            channel.basic_get("limited")
        publish(channel, "limited", *"34")
        first.stop(signal.SIGKILL)
        with (
            own_broker("--data-dir", str(first.data_dir)) as second,
            connected(second) as connection,
        ):
            channel = connection.channel()
            assert bodies(channel, "limited") == [b"3", b"4"]
            assert bodies(channel, "dead") == [b"1", b"2"]
            channel.confirm_delivery()
            publish(channel, "limited", *"5678")
            assert bodies(channel, "limited") == [b"7", b"8"]
