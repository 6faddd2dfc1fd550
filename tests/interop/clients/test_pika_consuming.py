"""pika: consumers, prefetch, acknowledging in every way, and what is told when a queue goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import StreamLostError

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import PATIENCE_SECONDS, connected, take
from tests.running import RunningBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(broker) as connection:
        yield connection.channel()


def _filled(channel: BlockingChannel, count: int) -> str:
    """A queue with so many numbered messages."""
    queue: str = channel.queue_declare("", exclusive=True).method.queue
    for number in range(count):
        channel.basic_publish("", queue, str(number).encode())
    return queue


def _consume(channel: BlockingChannel, queue: str, **more: object) -> list[tuple[object, bytes]]:
    """Start a consumer that keeps what it gets and acknowledges nothing."""
    got: list[tuple[object, bytes]] = []
    channel.basic_consume(queue, lambda _c, method, _p, body: got.append((method, body)), **more)
    return got


def _settle(channel: BlockingChannel) -> None:
    """Wait for a reply that comes after everything the broker has to send now."""
    channel.basic_qos(prefetch_count=0)
    channel.connection.process_data_events(time_limit=0)


def _numbers(got: list[tuple[object, bytes]]) -> list[int]:
    return [int(body) for _, body in got]


def test_prefetch_limits_what_is_out(channel: BlockingChannel) -> None:
    queue = _filled(channel, 10)
    channel.basic_qos(prefetch_count=3)
    got = _consume(channel, queue)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2]
    channel.basic_ack(got[1][0].delivery_tag)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2, 3]
    channel.basic_ack(got[3][0].delivery_tag, multiple=True)
    _settle(channel)
    assert _numbers(got) == [0, 1, 2, 3, 4, 5, 6]


def test_losing_a_connection_returns_what_it_held(broker: RunningBroker, name: Names) -> None:
    queue = name("held")
    with connected(broker) as keeper, connected(broker) as lost:
        channel = keeper.channel()
        channel.queue_declare(queue)
        channel.basic_publish("", queue, b"precious")
        assert lost.channel().basic_get(queue)[2] == b"precious"
        lost._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        ((method, _, body),) = take(channel, queue, 1)
        assert (body, method.redelivered) == (b"precious", True)
        channel.queue_delete(queue)
        with pytest.raises(StreamLostError):
            lost.process_data_events(time_limit=PATIENCE_SECONDS)


def test_consumer_is_told_when_its_queue_is_deleted(broker: RunningBroker, name: Names) -> None:
    queue = name("doomed")
    with connected(broker) as connection, connected(broker) as other:
        channel = connection.channel()
        channel.queue_declare(queue)
        cancelled: list[str] = []
        channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        tag = channel.basic_consume(queue, lambda *_: None)
        other.channel().queue_delete(queue)
        channel.start_consuming()
        assert cancelled == [tag]
        assert channel.is_open
