"""`message.process()`: what becomes of a message at the end of its block, in every version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harebell.client.errors import AlreadySettled, ConnectionLost
from tests.interop.client.apis import Api, do, take, unique
from tests.interop.client.brokers import Broker
from tests.interop.client.test_client_verbs import fresh_queue, settled_count
from tests.interop.client.test_client_versions import publish, subscribed
from tests.interop.matrix import SPOKEN
from tests.relay import relay

pytestmark = pytest.mark.asyncio


class Unfit(Exception):
    """The error of a block."""


async def processed(message: Any, block: Callable[[], Any], **options: Any) -> None:
    """Run a block in `process()` of either API."""
    context = message.process(**options)
    if hasattr(context, "__aenter__"):
        async with context as entered:
            assert entered is message
            await do(block())
    else:
        with context as entered:
            assert entered is message
            block()


def nothing() -> None:
    """A block that does nothing."""


def fail() -> None:
    """A block that fails."""
    raise Unfit


async def message_of(channel: Any, queue: str) -> Any:
    """The first message of a queue."""
    return await do(channel.get(queue))


@pytest.mark.parametrize("version", SPOKEN)
async def test_a_block_acknowledges_at_its_end_and_requeues_as_it_is_asked_to(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version)
    channel = await do(connection.channel())
    queue = unique()
    await do(channel.declare_queue(queue))
    await publish(connection, b"job", routing_key=queue)
    with pytest.raises(Unfit):
        await processed(await message_of(channel, queue), fail, requeue=True)
    # On another channel: 0-10t requeues for other consumers.
    consumer = await subscribed(await do(connection.channel()), queue, 1)
    (again,) = await take(consumer, 1)
    assert (again.body, again.redelivered) == (b"job", True)
    await processed(again, nothing)
    assert again.settled
    await do(consumer.cancel())
    assert await message_of(channel, queue) is None
    await publish(connection, b"poison", routing_key=queue)
    with pytest.raises(Unfit):
        await processed(await message_of(channel, queue), fail)
    assert await message_of(channel, queue) is None
    await do(channel.delete_queue(queue))


async def test_a_failed_message_is_dead_lettered_with_the_second_failure(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    dead = await fresh_queue(channel)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = await fresh_queue(channel, arguments=to_dead)
    await do(channel.publish(b"job", routing_key=queue))
    for _ in range(2):
        assert await settled_count(channel, queue, 1) == 1
        message = await message_of(channel, queue)
        with pytest.raises(Unfit):
            await processed(message, fail, requeue=True, reject_on_redelivered=True)
    assert await settled_count(channel, dead, 1) == 1
    assert await settled_count(channel, queue, 0) == 0


async def test_a_block_that_settles_its_message_says_so(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish(b"1", routing_key=queue))
    await do(channel.publish(b"2", routing_key=queue))
    first, second = await message_of(channel, queue), await message_of(channel, queue)
    await processed(first, first.ack, ignore_processed=True)
    with pytest.raises(AlreadySettled, match="message 2 is settled already"):
        await processed(second, second.ack)
    with pytest.raises(AlreadySettled):
        await processed(second, nothing)
    # The channel is as good as before: nothing was settled twice.
    assert await settled_count(channel, queue, 0) == 0


async def test_a_message_without_acknowledgement_has_nothing_to_settle(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish(b"1", routing_key=queue))
    message = await do(channel.get(queue, no_ack=True))
    with pytest.raises(AlreadySettled, match="or has no_ack"):
        await processed(message, nothing)
    await processed(message, nothing, ignore_processed=True)
    assert await settled_count(channel, queue, 0) == 0


async def test_an_interrupted_block_requeues_whatever_its_policy(broker: Broker, api: Api) -> None:
    def interrupt() -> None:
        raise asyncio.CancelledError if api.name == "asyncio" else KeyboardInterrupt

    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish(b"1", routing_key=queue))
    with pytest.raises((asyncio.CancelledError, KeyboardInterrupt)):
        await processed(await message_of(channel, queue), interrupt)
    assert await settled_count(channel, queue, 1) == 1


async def test_the_error_of_a_block_is_not_hidden_by_a_lost_connection(
    broker: Broker, api: Api
) -> None:
    other = await api.channel(broker.url)
    queue = unique()
    await do(other.declare_queue(queue))
    await do(other.publish(b"1", routing_key=queue))
    with relay(int(broker.url.rpartition(":")[2])) as between:
        channel = await api.channel(f"amqp://guest:guest@127.0.0.1:{between.port}")
        message = await message_of(channel, queue)
        between.cut()
        with pytest.raises(ConnectionLost):
            await do(channel.qos(1))
        with pytest.raises(Unfit):
            await processed(message, fail)
        # The success of a block cannot be acknowledged: that is an error, and nothing is lost.
        with pytest.raises(ConnectionLost):
            await do(message.ack())
    assert await settled_count(other, queue, 1) == 1
    assert (await message_of(other, queue)).redelivered
    await do(other.delete_queue(queue))
