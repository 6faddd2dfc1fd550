"""The client in every version of AMQP: the same verbs, and a word where there is no such thing."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.client.errors import (
    AuthenticationFailed,
    NotFound,
    ProtocolMismatch,
    PublishReturned,
    UnsupportedByVersion,
)
from tests.interop.client.apis import Api, do, take_just, unique
from tests.interop.client.brokers import Broker
from tests.interop.matrix import SPOKEN

pytestmark = pytest.mark.asyncio

RABBITMQ = ("0-8", "0-9", "0-9-1")
RETURNS = ("0-9", "0-9-1", "0-10", "1-0")
TRANSITIONAL = "0-10t"


@pytest.fixture(params=SPOKEN)
def version(request: pytest.FixtureRequest, broker: Broker) -> str:
    """Every version that the broker speaks."""
    spoken: str = request.param
    if broker.name == "rabbitmq" and spoken not in RABBITMQ:
        spoken = "0-9-1"
    return spoken


async def publish(connection: Any, body: bytes, **where: Any) -> None:
    """Publish a message, and know that it has been taken."""
    channel = await do(connection.channel())
    if channel.confirms:
        await do(channel.publish(body, **where))
        return
    context = channel.transaction()
    if hasattr(context, "__aenter__"):
        async with context:
            await do(channel.publish(body, **where))
    else:
        with context:
            channel.publish(body, **where)


async def subscribed(channel: Any, queue: str, prefetch: int) -> Any:
    """A consumer."""
    consumer = channel.consume(queue, prefetch=prefetch)
    return await consumer if hasattr(consumer, "__await__") else consumer


async def fail_in_transaction(channel: Any, queue: str) -> None:
    """Publish a message in a transaction that is not carried out."""
    context = channel.transaction()
    if hasattr(context, "__aenter__"):
        async with context:
            await do(channel.publish(b"never", routing_key=queue))
            raise ZeroDivisionError
    with context:
        channel.publish(b"never", routing_key=queue)
        raise ZeroDivisionError


async def test_a_message_goes_through_an_exchange_and_comes_back(
    broker: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel())
    queue, exchange = unique(), unique("x")
    info = await do(channel.declare_queue(queue, durable=True))
    assert (info.name, info.message_count) == (queue, 0)
    await do(channel.declare_exchange(exchange, "topic", durable=True))
    await do(channel.bind_queue(queue, exchange, "a.#"))
    await publish(
        connection, b"hello", exchange=exchange, routing_key="a.b", priority=3, headers={"n": 1}
    )
    message = await do(channel.get(queue))
    assert (message.body, message.exchange, message.routing_key) == (b"hello", exchange, "a.b")
    assert (message.priority, message.headers, message.redelivered) == (3, {"n": 1}, False)
    assert message.message_count == 0
    await do(message.ack())
    assert await do(channel.get(queue)) is None
    await do(channel.unbind_queue(queue, exchange, "a.#"))
    await do(channel.delete_exchange(exchange))
    assert await do(channel.delete_queue(queue)) == 0


async def test_a_requeued_message_comes_again(broker: Broker, api: Api, version: str) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel())
    queue = unique()
    await do(channel.declare_queue(queue))
    await publish(connection, b"again", routing_key=queue)
    consumer = await subscribed(channel, queue, 1)
    (first,) = await take_just(consumer, 1)
    await do(first.nack(requeue=True))
    if version == TRANSITIONAL:
        # What a session has given back is for somebody else.
        consumer = await subscribed(await do(connection.channel()), queue, 1)
    (second,) = await take_just(consumer, 1)
    assert (first.redelivered, second.redelivered) == (False, True)
    await do(second.reject(requeue=False))
    await do(consumer.cancel())
    assert await do(channel.delete_queue(queue)) == 0


async def test_the_prefetch_limits_what_is_out(broker: Broker, api: Api, version: str) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel())
    queue = unique()
    await do(channel.declare_queue(queue))
    for number in range(5):
        await publish(connection, b"%d" % number, routing_key=queue)
    consumer = await subscribed(channel, queue, 2)
    out = await take_just(consumer, 2)
    assert [message.body for message in out] == [b"0", b"1"]
    await do(out[-1].ack(multiple=True))
    assert [message.body for message in await take_just(consumer, 2)] == [b"2", b"3"]
    await do(consumer.cancel())
    await do(channel.delete_queue(queue))


async def test_a_transaction_is_taken_back_or_made(broker: Broker, api: Api, version: str) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel(confirms=False))
    queue = unique()
    await do(channel.declare_queue(queue))
    with pytest.raises(ZeroDivisionError):
        await fail_in_transaction(channel, queue)
    reader = await do(connection.channel())
    assert await do(reader.get(queue)) is None
    await publish(connection, b"made", routing_key=queue)
    message = await do(reader.get(queue, no_ack=True))
    assert message.body == b"made"


async def test_an_error_of_the_broker_has_its_class(broker: Broker, api: Api, version: str) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel())
    with pytest.raises(NotFound, match="nowhere") as caught:
        await do(channel.declare_queue("nowhere", passive=True))
    assert caught.value.code == 404
    other = await do(connection.channel())
    assert (await do(other.declare_queue("", exclusive=True))).message_count == 0


async def test_a_wrong_password_is_told_apart(broker: Broker, api: Api, version: str) -> None:
    address = broker.url.replace("guest:guest@", "").replace("://", "://guest:wrong@")
    with pytest.raises(AuthenticationFailed):
        await api.connect(address, version=version)


async def test_many_messages_come_in_their_order(broker: Broker, api: Api, version: str) -> None:
    connection = await api.connect(broker.url, version=version)
    channel = await do(connection.channel())
    queue = unique()
    await do(channel.declare_queue(queue))
    bodies = [b"%d" % number for number in range(2000)] + [b"x" * 300_000, b""]
    await do(channel.publish_many(bodies, routing_key=queue))
    consumer = channel.consume(queue, no_ack=True)
    if hasattr(consumer, "__await__"):
        consumer = await consumer
    found = await take_just(consumer, len(bodies))
    assert [message.body for message in found] == bodies


@pytest.mark.parametrize("version", RETURNS)
async def test_a_mandatory_message_without_a_queue_comes_back(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version)
    channel = await do(connection.channel())
    with pytest.raises(PublishReturned) as caught:
        await do(channel.publish(b"x", routing_key=unique("nowhere"), mandatory=True))
    assert caught.value.code == 312
    await do(channel.publish(b"x", routing_key=unique("nowhere")))


async def test_0_8_has_no_confirms_no_nack_of_many_and_no_bindings_between_exchanges(
    broker: Broker, api: Api
) -> None:
    connection = await api.connect(broker.url.replace("amqp://", "amqp+0-8://"))
    with pytest.raises(UnsupportedByVersion, match="AMQP 0-8 has no publisher confirms"):
        await do(connection.channel(confirms=True))
    channel = await do(connection.channel())
    assert not channel.confirms
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 0-8 has no basic\.nack"):
        await do(channel.nack(1, multiple=True))
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 0-8 has no exchange\.bind"):
        await do(channel.bind_exchange("amq.direct", "amq.topic"))


async def test_a_broker_that_lacks_the_version_says_what_it_has(rabbitmq: Broker, api: Api) -> None:
    with pytest.raises(ProtocolMismatch, match=r"not speak AMQP 0-10; it answered with 0\.0\.9\.1"):
        await api.connect(rabbitmq.url, version="0-10")


async def test_transitional_0_10_has_no_returns_and_no_nack_of_many(
    harebell: Broker, api: Api
) -> None:
    connection = await api.connect(harebell.url, version=TRANSITIONAL)
    channel = await do(connection.channel())
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 0-10t has no basic\.return"):
        await do(channel.publish(b"x", routing_key="nowhere", mandatory=True))
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 0-10t has no basic\.nack"):
        await do(channel.nack(1, multiple=True))
