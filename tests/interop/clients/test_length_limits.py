"""Queues with limits, as applications with pika meet them."""

from __future__ import annotations

import signal

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.pikas import bodies, connected, parameters

pytestmark = pytest.mark.interop
KINDS = [{}, {"x-max-priority": 3}, {"x-queue-type": "quorum"}]
LASTING = pika.BasicProperties(delivery_mode=2)


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
