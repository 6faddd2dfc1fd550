"""The asyncio API runs on asyncio's own loop and on uvloop, with and without TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from harebell.client import aio
from harebell.client.errors import ConnectionFailed
from tests.interop.client.brokers import Broker
from tests.interop.client.certificates import SERVER_NAME

Factory = Callable[[], asyncio.AbstractEventLoop]
FACTORIES: list[Factory] = [asyncio.new_event_loop, uvloop.new_event_loop]


async def round_trip(url: str) -> int:
    """Publish messages of many sizes and get all of them back; returns their octets."""
    async with aio.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("", exclusive=True)
        bodies = [bytes([number]) * (number * 5000) for number in range(40)]
        await asyncio.gather(*(channel.publish(body, routing_key=queue.name) for body in bodies))
        octets = 0
        async with channel.consume(queue.name, prefetch=7) as messages:
            async for message in messages:
                assert message.body == bodies[message.delivery_tag - 1]
                octets += len(message.body)
                await message.ack()
                if message.delivery_tag == len(bodies):
                    break
        return octets


@pytest.mark.parametrize("factory", FACTORIES, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_messages_make_the_round_trip(
    broker: Broker, certificates: Path, factory: Factory, tls: bool
) -> None:
    url = broker.url
    if tls:
        url = (
            f"amqps://guest:guest@127.0.0.1:{broker.tls_port}"
            f"?cacertfile={certificates / 'ca.pem'}&server_name_indication={SERVER_NAME}"
        )
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(round_trip(url)) == sum(number * 5000 for number in range(40))


@pytest.mark.parametrize("factory", FACTORIES, ids=["asyncio", "uvloop"])
def test_a_certificate_that_is_not_trusted_fails_on_either_loop(
    broker: Broker, factory: Factory
) -> None:
    url = f"amqps://127.0.0.1:{broker.tls_port}"
    with (
        asyncio.Runner(loop_factory=factory) as runner,
        pytest.raises(ConnectionFailed, match="not accepted"),
    ):
        runner.run(round_trip(url))
