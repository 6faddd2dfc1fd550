"""Connections of other versions than 0-9-1 come back, too, from a broker that died."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.client.apis import Api, do, take, unique
from tests.interop.client.brokers import Broker
from tests.interop.client.test_client_recovery import QUICK, back, pause_until_lost, restarted
from tests.patience import SECONDS

pytestmark = pytest.mark.asyncio

OTHERS = ("0-8", "0-10", "0-10t", "1-0")
"""0-9 has the methods of 0-9-1."""


@pytest.fixture(params=OTHERS)
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


async def started(channel: Any, queue: str, prefetch: int = 100) -> Any:
    """A consumer that has begun."""
    consumer = channel.consume(queue, prefetch=prefetch, timeout=SECONDS)
    if hasattr(consumer, "start"):
        await consumer.start()
    return consumer


async def commit(channel: Any) -> None:
    """Make the channel transactional, and end a transaction of nothing."""
    context = channel.transaction()
    if hasattr(context, "__aenter__"):
        async with context:
            pass
    else:
        with context:
            pass


async def test_queues_exchanges_and_bindings_are_there_again(
    harebell: Broker, api: Api, version: str
) -> None:
    recovered: list[bool] = []
    connection = await api.connect(harebell.url, version=version, recover=QUICK)
    connection.on_recovered = lambda: recovered.append(True)
    channel = await do(connection.channel())
    exchange, named = unique("x"), unique()
    await do(channel.declare_exchange(exchange, "topic"))
    await do(channel.declare_queue(named, arguments={"x-max-length": 2}))
    anonymous = await do(channel.declare_queue("", exclusive=True))
    first_name = anonymous.name
    await do(channel.bind_queue(named, exchange, "named.*"))
    await do(channel.bind_queue(first_name, exchange, "own.*"))
    dropped = await do(channel.declare_queue(unique(), exclusive=True))
    await do(channel.delete_queue(dropped.name))
    for _ in range(2):
        async with restarted(harebell):
            pass
        await pause_until_lost(channel)
        await back(channel)
    assert recovered == [True, True]
    assert anonymous.name != first_name
    assert connection.name_now(first_name) == anonymous.name
    for number in range(3):
        await do(channel.publish(b"%d" % number, exchange=exchange, routing_key="named.1"))
    await do(channel.publish(b"own", exchange=exchange, routing_key="own.1"))
    # The old name is understood as well as the new one.
    assert (await do(channel.get(first_name, no_ack=True))).body == b"own"
    assert await do(channel.get(anonymous.name, no_ack=True)) is None
    found = [(await do(channel.get(named, no_ack=True))).body for _ in range(2)]
    assert found == [b"1", b"2"], "the queue has its arguments again"
    other = await do(connection.channel())
    with pytest.raises(Exception, match=r"(?i)not.found"):
        await do(other.declare_queue(dropped.name, passive=True))


async def test_consumers_go_on_and_old_deliveries_can_be_acknowledged_in_peace(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version, recover=QUICK)
    channel = await do(connection.channel())
    queue = await do(channel.declare_queue("", exclusive=True))
    consumer = await started(channel, queue.name, prefetch=2)
    for body in (b"1", b"2", b"3"):
        await do(channel.publish(body, routing_key=queue.name))
    (held,) = await take(consumer, 1)
    assert held.body == b"1"
    async with restarted(harebell):
        pass
    await pause_until_lost(channel)
    await back(channel)
    # Nobody may be told about this delivery any more, and that is no error.
    await do(held.ack())
    for body in (b"4", b"5", b"6", b"7", b"8"):
        await do(channel.publish(body, routing_key=queue.name))
    for body in (b"4", b"5", b"6", b"7", b"8"):
        (message,) = await take(consumer, 1)
        assert (message.body, message.redelivered) == (body, False)
        await do(message.ack())
    await do(consumer.cancel())
    info = await do(channel.declare_queue(queue.name, passive=True))
    assert (info.message_count, info.consumer_count) == (0, 0)


async def test_a_transaction_does_not_survive_its_connection(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version, recover=QUICK)
    channel = await do(connection.channel(confirms=False))
    queue = await do(channel.declare_queue(unique()))
    await commit(channel)
    await do(channel.publish(b"lost", routing_key=queue.name))
    async with restarted(harebell):
        pass
    await pause_until_lost(channel)
    await back(channel)
    await do(channel.publish(b"not committed", routing_key=queue.name))
    reader = await do(connection.channel())
    assert await do(reader.get(queue.name)) is None
    await commit(channel)
    assert (await do(reader.get(queue.name))).body == b"not committed"
    await do(reader.delete_queue(queue.name))
