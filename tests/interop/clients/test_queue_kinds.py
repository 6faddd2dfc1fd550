"""pika and aio-pika with streams, quorum queues and priorities, over a restart too."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aio_pika
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import PATIENCE_SECONDS, bodies, connected
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

STREAM = {"x-queue-type": "stream"}
QUORUM = {"x-queue-type": "quorum"}


def declare(channel: BlockingChannel, queue: str, **arguments: Any) -> str:
    channel.queue_declare(queue, durable=True, arguments=arguments)
    return queue


def stream(channel: BlockingChannel, queue: str, count: int, **arguments: Any) -> str:
    """A stream with numbered messages; those with an even number have the filter value "even"."""
    declare(channel, queue, **STREAM, **arguments)
    for number in range(count):
        headers = {"x-stream-filter-value": "even"} if number % 2 == 0 else {"odd": True}
        properties = pika.BasicProperties(headers=headers, content_type="text/plain")
        channel.basic_publish("", queue, b"%d" % number, properties)
    return queue


def read(
    channel: BlockingChannel, queue: str, count: int, prefetch: int = 5, **options: Any
) -> list[tuple[int, bytes]]:
    """What a new consumer gets: (offset, body) each; every delivery is acknowledged."""
    channel.basic_qos(prefetch_count=prefetch)
    got = []
    arguments = {f"x-stream-{name.replace('_', '-')}": value for name, value in options.items()}
    for method, properties, body in channel.consume(
        queue, inactivity_timeout=PATIENCE_SECONDS, arguments=arguments
    ):
        assert method is not None, f"only {got} came"
        assert properties.content_type == "text/plain"
        got.append((properties.headers["x-stream-offset"], body))
        channel.basic_ack(method.delivery_tag)
        if len(got) == count:
            break
    channel.cancel()
    return got


@pytest.mark.parametrize(
    ("start", "first"), [("first", 0), (7, 7), ("last", 19), ("1h", 0), (10**6, 20)]
)
def test_a_stream_is_read_from_any_offset(
    channel: BlockingChannel, name: Names, start: Any, first: int
) -> None:
    queue = stream(channel, name("stream"), 20)
    if first == 20:
        channel.basic_qos(prefetch_count=5)
        channel.basic_consume(queue, lambda *_: None, arguments={"x-stream-offset": start})
        return
    expected = [(number, b"%d" % number) for number in range(first, 20)]
    assert read(channel, queue, 20 - first, offset=start) == expected


def test_a_stream_is_read_again_and_again_and_never_beyond_the_credit(
    broker: RunningBroker, channel: BlockingChannel, name: Names
) -> None:
    queue = stream(channel, name("stream"), 10)
    assert read(channel, queue, 10, offset="first") == read(channel, queue, 10, offset="first")
    assert channel.queue_declare(queue, passive=True).method.message_count == 10
    with connected(broker) as connection:
        slow = connection.channel()
        slow.basic_qos(prefetch_count=3)
        got: list[bytes] = []
        slow.basic_consume(
            queue,
            lambda ch, method, properties, body: got.append(body),
            arguments={"x-stream-offset": "first"},
        )
        _serve(connection, got, 3)
        assert got == [b"0", b"1", b"2"]
        slow.basic_nack(2, multiple=True, requeue=True)
        _serve(connection, got, 5)
        assert got == [b"0", b"1", b"2", b"3", b"4"]


def _serve(connection: pika.BlockingConnection, got: list[Any], count: int) -> None:
    """Handle what comes until there is so much, and a moment longer."""
    until = time.monotonic() + PATIENCE_SECONDS
    while len(got) < count and time.monotonic() < until:
        connection.process_data_events(time_limit=1)
    connection.process_data_events(time_limit=0.3)


def test_a_streams_filters_are_exact(channel: BlockingChannel, name: Names) -> None:
    queue = stream(channel, name("stream"), 10)
    evens = read(channel, queue, 5, offset="first", filter="even")
    assert [offset for offset, _ in evens] == [0, 2, 4, 6, 8]
    others = read(channel, queue, 5, offset="first", filter=["x"], match_unfiltered=True)
    assert [offset for offset, _ in others] == [1, 3, 5, 7, 9]


def test_every_kind_is_there_after_a_restart() -> None:
    with own_broker() as first:
        with connected(first) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            stream(channel, "stream", 6)
            declare(channel, "quorum", **QUORUM)
            declare(channel, "priority", **{"x-max-priority": 3})
            channel.basic_publish("", "quorum", b"transient")
            method, _, _ = channel.basic_get("quorum")
            channel.basic_nack(method.delivery_tag)
            for priority in (1, 3):
                properties = pika.BasicProperties(delivery_mode=2, priority=priority)
                channel.basic_publish("", "priority", b"%d" % priority, properties)
            channel.basic_qos(prefetch_count=10)
            tracked = {"x-stream-automatic-offset-tracking": True}
            seen: list[bytes] = []
            channel.basic_consume(
                "stream",
                lambda ch, method, properties, body: seen.append(body),
                consumer_tag="me",
                arguments=tracked,
            )
            _serve(connection, seen, 6)
            # The first tag was that of basic.get.
            channel.basic_ack(5, multiple=True)
        assert first.stop() == 0
        with own_broker("--data-dir", str(first.data_dir)) as second, connected(second) as again:
            channel = again.channel()
            method, properties, body = channel.basic_get("quorum", auto_ack=True)
            assert (body, method.redelivered) == (b"transient", True)
            assert properties.headers == {"x-delivery-count": 1, "x-acquired-count": 1}
            assert bodies(channel, "priority") == [b"3", b"1"]
            channel.basic_qos(prefetch_count=10)
            got: list[int] = []
            channel.basic_consume(
                "stream",
                lambda ch, method, properties, body: got.append(
                    properties.headers["x-stream-offset"]
                ),
                consumer_tag="me",
                arguments=tracked,
            )
            _serve(again, got, 2)
            assert got == [4, 5]


@pytest.mark.asyncio
async def test_aio_pika_reads_a_stream_while_it_grows(broker: RunningBroker, name: Names) -> None:
    connection = await aio_pika.connect(host="127.0.0.1", port=broker.port)
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue(name("stream"), durable=True, arguments=STREAM)
        offsets: list[Any] = []
        done = asyncio.Event()

        async def take_one(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            offsets.append(message.headers["x-stream-offset"])
            await message.ack()
            if len(offsets) == 50:
                done.set()

        await queue.consume(take_one, arguments={"x-stream-offset": "first"})
        for number in range(50):
            await channel.default_exchange.publish(
                aio_pika.Message(b"%d" % number), routing_key=queue.name
            )
        async with asyncio.timeout(PATIENCE_SECONDS):
            await done.wait()
        assert offsets == list(range(50))
