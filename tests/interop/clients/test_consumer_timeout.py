"""pika with a consumer that never acknowledges: the broker closes its channel."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import connected
from tests.running import RunningBroker

pytestmark = pytest.mark.interop


def consume(channel: BlockingChannel, queue: str) -> None:
    """Get messages and say nothing; the end may come before a slow program has begun to wait."""
    channel.basic_consume(queue, lambda *_: None)
    channel.start_consuming()


def closed_while_waiting(
    broker: RunningBroker, queue: str, arguments: dict[str, int]
) -> pika.exceptions.ChannelClosedByBroker:
    """What ends a channel that got a message and says nothing; the message is back afterwards."""
    with connected(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, arguments=arguments)
        channel.basic_publish("", queue, b"x")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            consume(channel, queue)
        method, _, body = connection.channel().basic_get(queue)
        assert body == b"x"
        assert method.redelivered
    return closed.value


@pytest.mark.parametrize(("arguments", "used_ms"), [({}, 700), ({"x-consumer-timeout": 300}, 300)])
def test_pika_loses_the_channel_that_does_not_acknowledge(
    name: Names, arguments: dict[str, int], used_ms: int
) -> None:
    with own_broker("--consumer-timeout", "700") as broker:
        closed = closed_while_waiting(broker, name("slow"), arguments)
    assert closed.reply_code == 406
    assert closed.reply_text == (
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value "
        f"used: {used_ms} ms. This timeout value can be configured, see consumers doc guide to "
        "learn more"
    )
