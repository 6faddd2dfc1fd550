"""Every verb of both APIs against real brokers: declaring, publishing, consuming, settling."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from harebell.client.errors import (
    BulkPublishFailed,
    ClientClosed,
    ConsumerCancelled,
    PublishNacked,
    PublishReturned,
)
from harebell.client.message import Message
from tests.interop.client.apis import QUIET_SECONDS, Api, do, pause, take, take_just, unique
from tests.interop.client.brokers import Broker
from tests.patience import SECONDS

pytestmark = pytest.mark.asyncio


async def fresh_queue(channel: Any, **options: Any) -> str:
    """A queue that goes with its connection."""
    return (await do(channel.declare_queue("", exclusive=True, **options))).name


async def count(channel: Any, queue: str) -> int:
    """Messages ready in a queue."""
    return (await do(channel.declare_queue(queue, passive=True))).message_count


async def settled_count(channel: Any, queue: str, expected: int) -> int:
    """Messages ready in a queue, once they are so many: RabbitMQ requeues in its own time."""
    until = time.monotonic() + SECONDS
    while (found := await count(channel, queue)) != expected and time.monotonic() < until:
        await pause(channel.connection, 0.05)
    return found


async def test_a_queue_is_declared_counted_purged_and_deleted(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = unique()
    info = await do(channel.declare_queue(name, durable=True, arguments={"x-max-length": 100}))
    assert (info.name, info.message_count, info.consumer_count) == (name, 0, 0)
    for _ in range(3):
        await do(channel.publish(b"x", routing_key=name))
    assert await count(channel, name) == 3
    assert await do(channel.purge_queue(name)) == 3
    await do(channel.publish(b"x", routing_key=name))
    assert await do(channel.delete_queue(name)) == 1
    assert await do(channel.delete_queue(name)) == 0


async def test_bindings_route_until_they_are_undone(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    source, sink = unique("x"), unique("x")
    await do(channel.declare_exchange(source, "topic"))
    await do(channel.declare_exchange(sink, "headers", internal=True, auto_delete=True))
    queue, other = await fresh_queue(channel), await fresh_queue(channel)
    await do(channel.bind_queue(queue, source, "a.*"))
    await do(channel.bind_exchange(sink, source, "#"))
    await do(channel.bind_queue(other, sink, "", {"x-match": "all", "colour": "blue"}))
    await do(channel.publish(b"1", exchange=source, routing_key="a.b", headers={"colour": "blue"}))
    await do(channel.publish(b"2", exchange=source, routing_key="b.b", headers={"colour": "red"}))
    assert (await count(channel, queue), await count(channel, other)) == (1, 1)
    await do(channel.unbind_queue(queue, source, "a.*"))
    await do(channel.unbind_exchange(sink, source, "#"))
    await do(channel.publish(b"3", exchange=source, routing_key="a.b", headers={"colour": "blue"}))
    assert (await count(channel, queue), await count(channel, other)) == (1, 1)
    await do(channel.delete_exchange(source, if_unused=True))
    await do(channel.delete_exchange(sink))


async def test_every_property_arrives_as_it_was_sent(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    properties: dict[str, Any] = {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "headers": {
            "text": "ü",
            "octets": b"\xff\x00",
            "small": -1,
            "large": 1 << 40,
            "real": 0.5,
            "exact": Decimal("1.25"),
            "when": datetime(2024, 2, 29, 12, 0, 1, tzinfo=UTC),
            "nothing": None,
            "list": [1, "two", {"three": True}],
            "table": {"nested": {"deep": "x"}},
        },
        "delivery_mode": 2,
        "priority": 5,
        "correlation_id": "c-1",
        "reply_to": "answers",
        "expiration": "600000",
        "message_id": "m-1",
        "timestamp": datetime(2013, 1, 1, tzinfo=UTC),
        "type": "event",
        "user_id": "guest",
        "app_id": "tests",
    }
    await do(channel.publish(b"body", routing_key=queue, **properties))
    message = await do(channel.get(queue, no_ack=True))
    assert message.body == b"body"
    assert {name: getattr(message, name) for name in properties} == properties


async def test_get_takes_one_message_and_counts_the_rest(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    assert await do(channel.get(queue)) is None
    for body in (b"1", b"2", b"3"):
        await do(channel.publish(body, routing_key=queue))
    first = await do(channel.get(queue, no_ack=True))
    second = await do(channel.get(queue))
    assert (first.body, first.message_count) == (b"1", 2)
    assert (second.body, second.routing_key, second.redelivered) == (b"2", queue, False)
    await do(second.nack())
    again = await do(channel.get(queue))
    assert (again.body, again.redelivered) == (b"2", True)
    await do(again.ack())
    assert (await do(channel.get(queue, no_ack=True))).body == b"3"


async def test_a_mandatory_message_without_a_queue_comes_back_to_its_publisher(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    with pytest.raises(PublishReturned) as caught:
        await do(channel.publish(b"lost", routing_key=unique(), mandatory=True, message_id="m"))
    assert (caught.value.code, caught.value.text) == (312, "NO_ROUTE")
    assert caught.value.message.body == b"lost"
    assert caught.value.message.message_id == "m"
    await do(channel.publish(b"found", routing_key=queue, mandatory=True))
    await do(channel.publish(b"nobody minds", routing_key=unique()))


async def test_of_many_in_flight_exactly_those_without_a_queue_come_back(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    nowhere = unique()
    keys = [nowhere if number % 3 == 0 else queue for number in range(300)]
    confirms = [channel.publish_nowait(b"same", routing_key=key, mandatory=True) for key in keys]
    for key, confirm in zip(keys, confirms, strict=True):
        if key == queue:
            await do(confirm)
        else:
            with pytest.raises(PublishReturned):
                await do(confirm)
        assert confirm.done
    assert await count(channel, queue) == 200


async def test_without_confirms_returns_go_to_a_callback(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url, confirms=False)
    heard: list[PublishReturned] = []
    channel.on_return = heard.append
    await do(channel.publish(b"lost", routing_key=unique(), mandatory=True))
    while not heard:
        await pause(channel.connection, 0.05)
    assert heard[0].message.body == b"lost"


async def test_a_full_queue_that_rejects_publishes_nacks_them(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = await fresh_queue(channel, arguments=full)
    await do(channel.publish(b"1", routing_key=queue))
    with pytest.raises(PublishNacked):
        await do(channel.publish(b"2", routing_key=queue))
    with pytest.raises(BulkPublishFailed) as caught:
        await do(channel.publish_many([b"3", b"4", b"5"], routing_key=queue))
    assert caught.value.confirmed == 0
    assert [position for position, _ in caught.value.failures] == [0, 1, 2]


async def test_many_messages_are_published_in_order_with_progress(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    exchange = unique("x")
    await do(channel.declare_exchange(exchange, "direct"))
    await do(channel.bind_queue(queue, exchange, "k"))
    await do(channel.bind_queue(queue, exchange, "own"))
    seen: list[int] = []
    items = [
        *(b"%d" % number for number in range(3000)),
        ("own", b"pair"),
        Message(b"message", routing_key="own", type="t"),
    ]
    taken = await do(
        channel.publish_many(
            iter(items), exchange=exchange, routing_key="k", window=500, progress=seen.append
        )
    )
    assert taken == 3002
    assert seen[-1] == 3002
    assert seen == sorted(seen)
    messages = await take(channel.consume(queue, prefetch=0, timeout=SECONDS), 3002)
    assert [message.body for message in messages[:3000]] == [b"%d" % n for n in range(3000)]
    assert [message.body for message in messages[3000:]] == [b"pair", b"message"]
    assert messages[-1].type == "t"


async def test_prefetch_bounds_what_is_taken_ahead(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"x"] * 10, routing_key=queue))
    consumer = channel.consume(queue, prefetch=3)
    held = await take_just(consumer, 3)
    assert len(held) == 3
    assert await count(channel, queue) == 7
    await do(held[-1].ack(multiple=True))
    assert len(await take_just(consumer, 3)) == 3


async def test_a_shared_prefetch_bounds_all_consumers_of_a_channel(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"x"] * 10, routing_key=queue))
    await do(channel.qos(4, shared=True))
    first, second = (channel.consume(queue, prefetch=None, timeout=QUIET_SECONDS) for _ in "ab")
    # Both subscribe before either is read to its end.
    held = await take_just(first, 1)
    held += await take(second)
    held += await take(first)
    until = time.monotonic() + SECONDS
    while len(held) < 4 and time.monotonic() < until:
        held += await take(first) + await take(second)
    assert len(held) == 4


async def test_nack_and_reject_put_back_or_drop(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    for body in (b"nack", b"drop", b"reject", b"put back"):
        await do(channel.publish(body, routing_key=queue))
    consumer = channel.consume(queue, prefetch=4)
    nack, drop, reject, put_back = await take(consumer, 4)
    del consumer
    await do(drop.nack(requeue=False))
    await do(reject.reject())
    await do(put_back.reject(requeue=True))
    await do(nack.nack(requeue=True))
    again = await take_just(channel.consume(queue, prefetch=10), 2)
    assert {message.body for message in again} == {b"nack", b"put back"}
    assert all(message.redelivered for message in again)


async def test_messages_can_be_settled_by_their_tag(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"x"] * 5, routing_key=queue))
    held = [await do(channel.get(queue)) for _ in range(5)]
    tags = [message.delivery_tag for message in held]
    await do(channel.ack(tags[1], multiple=True))
    await do(channel.nack(tags[2], requeue=False))
    await do(channel.reject(tags[3], requeue=True))
    await do(channel.nack(tags[4], requeue=True))
    assert await settled_count(channel, queue, 2) == 2


async def test_recover_delivers_again_what_was_not_acknowledged(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"1", b"2"], routing_key=queue))
    consumer = channel.consume(queue, prefetch=2)
    first, _ = await take(consumer, 2)
    await do(first.ack())
    await do(channel.recover())
    (again,) = await take(consumer, 1)
    assert (again.body, again.redelivered) == (b"2", True)


async def test_without_acknowledgement_messages_are_gone_when_they_are_sent(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"x"] * 5, routing_key=queue))
    assert len(await take_just(channel.consume(queue, no_ack=True), 5)) == 5
    await do(channel.close())
    other = await do(channel.connection.channel())
    assert await count(other, queue) == 0


async def test_cancelling_puts_back_what_was_not_taken(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"%d" % number for number in range(6)], routing_key=queue))
    consumer = channel.consume(queue, prefetch=10)
    (first,) = await take(consumer, 1)
    await pause(channel.connection, 0.1)
    await do(consumer.cancel())
    await do(consumer.cancel())
    await do(first.ack())
    assert await settled_count(channel, queue, 5) == 5
    bodies = [message.body for message in await take_just(channel.consume(queue), 5)]
    assert bodies == [b"1", b"2", b"3", b"4", b"5"]


async def test_leaving_the_loop_ends_the_subscription(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await do(channel.publish_many([b"x"] * 6, routing_key=queue))
    held = await take(channel.consume(queue, prefetch=10), 1)
    assert await settled_count(channel, queue, 5) == 5
    assert (await do(channel.declare_queue(queue, passive=True))).consumer_count == 0
    await do(held[0].ack())


async def test_a_consumer_whose_queue_is_deleted_is_told(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    other = await do(channel.connection.channel())
    queue = await fresh_queue(channel)
    await do(channel.publish(b"last", routing_key=queue))
    consumer = channel.consume(queue)
    assert len(await take(consumer, 1)) == 1
    await do(other.delete_queue(queue))
    with pytest.raises(ConsumerCancelled) as caught:
        await take(consumer)
    assert caught.value.consumer_tag == consumer.tag
    assert channel.is_open


async def test_closing_a_channel_ends_its_consumers(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    consumer = channel.consume(queue, timeout=0.1)
    assert await take(consumer) == []
    await do(channel.close())
    with pytest.raises(ClientClosed):
        await take(consumer)


async def test_a_transaction_happens_as_a_whole_or_not_at_all(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    watcher = await do(channel.connection.channel())
    queue = await fresh_queue(channel)
    transaction = channel.transaction()
    await _enter(transaction)
    await do(channel.publish(b"1", routing_key=queue))
    await do(channel.publish(b"2", routing_key=queue))
    assert await count(watcher, queue) == 0
    await _leave(transaction)
    assert await count(watcher, queue) == 2
    rolled_back = channel.transaction()
    await _enter(rolled_back)
    await do(channel.publish(b"3", routing_key=queue))
    with pytest.raises(KeyError):
        await _leave(rolled_back, KeyError("changed my mind"))
    assert await count(watcher, queue) == 2


async def _enter(context: Any) -> None:
    await do(context.__aenter__() if hasattr(context, "__aenter__") else context.__enter__())


async def _leave(context: Any, error: BaseException | None = None) -> None:
    details = (type(error), error, None) if error else (None, None, None)
    leave = context.__aexit__ if hasattr(context, "__aexit__") else context.__exit__
    if not await do(leave(*details)) and error is not None:
        raise error


@pytest.mark.parametrize("frame_max", [4096, 131072])
async def test_bodies_of_any_size_survive(broker: Broker, api: Api, frame_max: int) -> None:
    connection = await api.connect(f"{broker.url}?frame_max={frame_max}")
    assert connection.frame_max == frame_max
    channel = await do(connection.channel())
    queue = await fresh_queue(channel)
    room = frame_max - 8
    sizes = [0, 1, room - 1, room, room + 1, 2 * room, 5_000_000]
    bodies = [bytes(range(256)) * (size // 256) + bytes(size % 256) for size in sizes]
    for body in bodies:
        await do(channel.publish(body, routing_key=queue))
    messages = await take(channel.consume(queue, prefetch=2 * len(sizes)), len(sizes))
    assert [message.body for message in messages] == bodies


async def test_many_channels_of_a_connection_work_side_by_side(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    channels = [await do(connection.channel()) for _ in range(50)]
    queues = [await fresh_queue(channel) for channel in channels]
    for number, channel in enumerate(channels):
        await do(channel.publish(b"%d" % number, routing_key=queues[-1 - number]))
    for number, channel in enumerate(channels):
        message = await do(channel.get(queues[number], no_ack=True))
        assert message.body == b"%d" % (49 - number)
