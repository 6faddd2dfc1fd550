"""What the tests with pika share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.running import RunningBroker

PATIENCE_SECONDS = 60.0


def parameters(broker: RunningBroker, **more: Any) -> pika.ConnectionParameters:
    """How to reach a broker; pika dials `localhost` unless told otherwise."""
    return pika.ConnectionParameters(host="127.0.0.1", port=broker.port, **more)


@contextmanager
def connected(broker: RunningBroker, **more: Any) -> Iterator[pika.BlockingConnection]:
    """A connection for a block, closed at its end if it is still open."""
    connection = pika.BlockingConnection(parameters(broker, **more))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


@contextmanager
def channel_closes(code: int, text: str) -> Iterator[None]:
    """The block ends with the broker closing the channel with this code and text."""
    with pytest.raises(ChannelClosedByBroker) as caught:
        yield
    assert (caught.value.reply_code, caught.value.reply_text) == (code, text)


def bodies(channel: BlockingChannel, queue: str) -> list[bytes]:
    """Everything that is ready in a queue, taken with basic.get."""
    found: list[bytes] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append(body)


def take(channel: BlockingChannel, queue: str, count: int, **more: Any) -> list[tuple[Any, ...]]:
    """The next deliveries of a new consumer, which stays: (method, properties, body) each."""
    got: list[tuple[Any, ...]] = []
    for delivery in channel.consume(queue, inactivity_timeout=PATIENCE_SECONDS, **more):
        assert delivery[0] is not None, f"only {len(got)} of {count} deliveries came"
        got.append(delivery)
        if len(got) == count:
            return got
    raise AssertionError("the consumer was cancelled")
