"""An app of typed handlers: what they get, what becomes of what does not fit, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from harebell.client import aio, blocking
from harebell.client.app import App
from harebell.client.codecs import MESSAGE_PACK, MessagePack
from harebell.client.errors import ConnectionFailed, ConsumerCancelled, NotFound
from harebell.client.message import Message
from harebell.testing import VirtualBroker
from tests.interop.client.apis import unique
from tests.interop.client.brokers import Broker
from tests.patience import SECONDS
from tests.ports import free_port

pytestmark = pytest.mark.asyncio

DECLARED = {"auto_delete": True}


@dataclass
class Order:
    id: int


class Parcel(pydantic.BaseModel):
    weight: float


async def got(queue: asyncio.Queue[Any]) -> Any:
    """What a handler has put into a queue."""
    return await asyncio.wait_for(queue.get(), SECONDS)


async def test_a_handler_gets_the_body_as_its_type_and_the_message(broker: Broker) -> None:
    app = App(broker.url)
    seen: asyncio.Queue[Any] = asyncio.Queue()
    names = [unique() for _ in range(6)]

    @app.subscriber(names[0], declare=DECLARED)
    async def order(order: Order) -> None:
        await seen.put(order)

    @app.subscriber(names[1], declare=DECLARED)
    async def parcel(message: aio.Delivery, parcel: Parcel, retries: int = 3) -> None:
        await seen.put((parcel, message.routing_key, retries))

    @app.subscriber(names[2], declare=DECLARED)
    def text(text: str) -> None:
        seen.put_nowait(text)

    @app.subscriber(names[3], declare=DECLARED)
    async def body(body: bytes) -> None:
        await seen.put(body)

    @app.subscriber(names[4], declare=DECLARED)
    async def anything(value) -> None:  # type: ignore[no-untyped-def]
        await seen.put(value)

    @app.subscriber(names[5], declare=DECLARED, codec=MessagePack)
    async def packed(order: Order) -> None:
        await seen.put(order)

    assert repr(app).endswith(f"{names[5]!r}, does not run>")
    async with app:
        assert repr(app).endswith(f"{names[5]!r}, runs>")
        publish = app.channel.publish
        await app.channel.publish_json({"id": 1}, routing_key=names[0])
        assert await got(seen) == Order(1)
        await publish(b'{"weight": 1.5}', routing_key=names[1])
        assert await got(seen) == (Parcel(weight=1.5), names[1], 3)
        await publish("ü".encode(), routing_key=names[2])
        assert await got(seen) == "ü"
        await publish(b"\xff", routing_key=names[3])
        assert await got(seen) == b"\xff"
        await publish(b"[1]", routing_key=names[4])
        assert await got(seen) == [1]
        await publish(Message.of({"id": 2}, MESSAGE_PACK), routing_key=names[5])
        assert await got(seen) == Order(2)
    with pytest.raises(RuntimeError, match="does not run"):
        app.channel.qos(1)


async def test_a_body_of_another_type_is_dead_lettered_and_its_handler_is_not_called(
    broker: Broker,
) -> None:
    app = App(broker.url)
    queue, dead = unique(), unique()
    letters: asyncio.Queue[bytes] = asyncio.Queue()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}

    @app.subscriber(queue, declare={**DECLARED, "arguments": arguments})
    async def order(order: Order) -> None:
        raise AssertionError("no order was published")

    @app.subscriber(dead, declare=DECLARED)
    async def letter(body: bytes) -> None:
        await letters.put(body)

    async with app:
        await app.channel.publish(b'{"id": "x"}', routing_key=queue)
        assert await got(letters) == b'{"id": "x"}'


async def test_what_a_handler_returns_answers_a_request(broker: Broker) -> None:
    app = App(broker.url)
    queue = unique()

    @app.subscriber(queue, declare=DECLARED, concurrency=10)
    async def double(number: int) -> int:
        return 2 * number

    async with app, aio.connect(broker.url) as connection, connection.requester() as requester:
        calls = [requester.call(b"%d" % number, routing_key=queue) for number in range(10)]
        replies = await asyncio.gather(*calls)
        # Without a request nobody is answered.
        await app.channel.publish(b"1", routing_key=queue)
    assert [int(reply.body) for reply in replies] == [2 * number for number in range(10)]


async def test_a_delayed_message_is_handled_when_virtual_time_has_passed() -> None:
    with VirtualBroker() as broker:
        app = App(broker.url)
        seen: asyncio.Queue[Any] = asyncio.Queue()

        @app.subscriber("due", declare={})
        async def handle(order: Order) -> None:
            await seen.put(order)

        async with app:
            due = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "due"}
            await app.channel.declare_queue("later", arguments={**due, "x-message-ttl": 60_000})
            await app.channel.publish_json(Order(3), routing_key="later")
            broker.advance(59)
            assert seen.empty()
            broker.advance(1)
            assert await got(seen) == Order(3)


async def test_a_running_app_ends_with_stop_and_with_sigterm(broker: Broker) -> None:
    app = App(broker.url)
    queue = unique()
    begun = asyncio.Event()
    done: list[int] = []

    @app.subscriber(queue, declare={})
    async def handle(number: int) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        done.append(number)

    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        channel.declare_queue(queue)
        for number, end in enumerate((app.stop, lambda: os.kill(os.getpid(), signal.SIGTERM))):
            begun.clear()
            channel.publish(b"%d" % number, routing_key=queue)
            running = asyncio.create_task(app.run())
            await asyncio.wait_for(begun.wait(), SECONDS)
            end()
            await asyncio.wait_for(running, SECONDS)
            # The handler that ran has ended, and its message is acknowledged.
            assert done == list(range(number + 1))
        assert channel.delete_queue(queue) == 0


async def test_a_queue_that_is_missing_or_deleted_ends_the_app(broker: Broker) -> None:
    queue = unique()
    app = App(broker.url)
    app.subscriber(queue)(print_order)
    with pytest.raises(NotFound):
        await app.run()
    app = App(broker.url)
    app.subscriber(queue, declare={})(print_order)
    running = asyncio.create_task(app.run())
    async with aio.connect(broker.url) as connection:
        channel = await connection.channel()
        while (await channel.declare_queue(queue)).consumer_count == 0:
            await asyncio.sleep(0.01)
        await channel.delete_queue(queue)
    with pytest.raises(ConsumerCancelled):
        await asyncio.wait_for(running, SECONDS)


async def test_an_app_without_a_broker_waits_as_long_as_it_should() -> None:
    app = App(f"amqp://127.0.0.1:{free_port()}", wait=0.1)
    with pytest.raises(ConnectionFailed, match="gave up after"):
        await app.run()


async def print_order(order: Order) -> None:
    """A handler."""


async def test_a_handler_that_cannot_be_called_is_refused_at_once() -> None:
    class Unknown:
        """No type of data."""

    def two_bodies(first: int, second: int) -> None: ...
    def unknown(body: Unknown) -> None: ...
    def another_api(message: blocking.Delivery) -> None: ...
    def unnamed(*bodies: int) -> None: ...
    def generator(body: int) -> Any:
        yield

    two_bodies.__annotations__ = {"first": int, "second": int}
    unknown.__annotations__ = {"body": Unknown}
    for wrong in (two_bodies, unknown, another_api, unnamed, generator):
        with pytest.raises(TypeError, match=r"one parameter|cannot be decoded|place|generator"):
            App().subscriber("q")(wrong)
