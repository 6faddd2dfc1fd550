"""The client in AMQP 1.0 with RabbitMQ 3, which publishes and delivers in it, and no more."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from harebell.client.errors import (
    AuthenticationFailed,
    NotFound,
    UnsupportedByVersion,
)
from tests.interop.client.apis import Api, do, take, take_just, unique
from tests.interop.client.brokers import Broker
from tests.interop.client.test_client_versions import subscribed

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def queue(rabbitmq: Broker, api: Api) -> str:
    """A queue that a channel of 0-9-1 has declared, and bound to amq.topic by its name."""
    channel = await api.channel(rabbitmq.url)
    name = unique()
    await do(channel.declare_queue(name))
    await do(channel.bind_queue(name, "amq.topic", f"{name}.#"))
    return name


async def channel_1_0(rabbitmq: Broker, api: Api, **options: Any) -> Any:
    """A channel of 1.0."""
    connection = await api.connect(rabbitmq.url, version="1-0")
    return await do(connection.channel(**options))


async def test_messages_go_by_both_exchanges_and_come_in_order(
    rabbitmq: Broker, api: Api, queue: str
) -> None:
    channel = await channel_1_0(rabbitmq, api)
    await do(channel.publish(b"first", routing_key=queue, persistent=True, message_id="m"))
    await do(channel.publish(b"second", exchange="amq.topic", routing_key=f"{queue}.a"))
    bodies = [b"%d" % number for number in range(2000)] + [b"x" * 300_000, b""]
    assert await do(channel.publish_many(bodies, routing_key=queue)) == len(bodies)
    messages = await take_just(await subscribed(channel, queue, 5000), len(bodies) + 2)
    assert [message.body for message in messages] == [b"first", b"second", *bodies]
    assert (messages[0].message_id, messages[0].persistent) == ("m", True)
    await do(messages[-1].ack(multiple=True))


async def test_a_message_given_back_comes_again_and_a_rejected_one_does_not(
    rabbitmq: Broker, api: Api, queue: str
) -> None:
    channel = await channel_1_0(rabbitmq, api)
    await do(channel.publish(b"again", routing_key=queue))
    consumer = await subscribed(channel, queue, 1)
    (first,) = await take(consumer, 1)
    await do(first.nack(requeue=True))
    (second,) = await take(consumer, 1)
    assert (first.redelivered, second.redelivered) == (False, True)
    await do(second.reject())
    await do(consumer.cancel())
    old = await api.channel(rabbitmq.url)
    assert (await do(old.declare_queue(queue, passive=True))).message_count == 0


async def test_errors_have_their_classes(rabbitmq: Broker, api: Api) -> None:
    channel = await channel_1_0(rabbitmq, api)
    with pytest.raises(NotFound, match="no exchange 'nowhere'"):
        await do(channel.publish(b"x", exchange="nowhere", routing_key="k"))
    await do((await channel_1_0(rabbitmq, api)).publish(b"x", routing_key=unique()))
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        await api.connect(rabbitmq.url.replace("guest:guest", "guest:wrong"), version="1-0")


async def test_without_confirms_a_message_is_sent_before_the_close(
    rabbitmq: Broker, api: Api, queue: str
) -> None:
    channel = await channel_1_0(rabbitmq, api, confirms=False)
    await do(channel.publish(b"sent", routing_key=queue))
    await do(channel.connection.close())
    (message,) = await take(await subscribed(await api.channel(rabbitmq.url), queue, 1), 1)
    assert message.body == b"sent"


async def test_what_rabbitmq_3_lacks_is_refused_by_name(rabbitmq: Broker, api: Api) -> None:
    channel = await channel_1_0(rabbitmq, api)
    with pytest.raises(UnsupportedByVersion, match=r"no queue\.declare with RabbitMQ before 4\.0"):
        await do(channel.declare_queue("q"))
    with pytest.raises(UnsupportedByVersion, match=r"no basic\.get with RabbitMQ before 4\.0"):
        await do(channel.get("q"))
    with pytest.raises(UnsupportedByVersion, match=r"no basic\.return with RabbitMQ before 4\.0"):
        await do(channel.publish(b"x", routing_key="q", mandatory=True))
