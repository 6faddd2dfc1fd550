"""What came while the whole process stood still came in time, however late it is looked at."""

from __future__ import annotations

import asyncio
import time

import pytest

from harebell.client import aio, blocking
from harebell.client.blocking import connection as blocking_connection
from tests.interop.client.brokers import Broker

_TIMEOUT = 0.3


def publish(broker: Broker, queue: str) -> None:
    """Somebody else publishes a message, which is on its way to its consumer then."""
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        channel.publish(b"in time", routing_key=queue)
        # By the time of a later answer the broker has written all that was due with the first.
        channel.declare_queue(queue, passive=True)


class Stopping:
    """A clock that is looked at, and the next time much has happened in between.

    Args:
        broker: where a message is published meanwhile.
        queue: that it is for.
    """

    def __init__(self, broker: Broker, queue: str) -> None:
        self._publish = lambda: publish(broker, queue)
        self._looks = 0

    def monotonic(self) -> float:
        """The time, which has leapt when the second look is taken."""
        self._looks += 1
        if self._looks == 2:
            self._publish()
        return time.monotonic() + (self._looks >= 2) * 2 * _TIMEOUT


def test_a_blocking_consumer_has_what_came_while_its_process_stood_still(
    harebell: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocking.connect(harebell.url) as connection:
        channel = connection.channel()
        queue = channel.declare_queue("", exclusive=False, auto_delete=True).name
        consumer = channel.consume(queue, timeout=_TIMEOUT)
        monkeypatch.setattr(blocking_connection, "time", Stopping(harebell, queue))
        assert [message.body for message in consumer] == [b"in time"]


@pytest.mark.asyncio
async def test_a_consumer_of_asyncio_has_what_came_while_its_process_stood_still(
    harebell: Broker,
) -> None:
    async with aio.connect(harebell.url) as connection:
        channel = await connection.channel()
        queue = (await channel.declare_queue("", exclusive=False, auto_delete=True)).name

        def stand_still() -> None:
            publish(harebell, queue)
            time.sleep(2 * _TIMEOUT)

        async with channel.consume(queue, timeout=_TIMEOUT) as consumer:
            asyncio.get_running_loop().call_later(_TIMEOUT / 3, stand_still)
            assert [message.body async for message in consumer] == [b"in time"]
