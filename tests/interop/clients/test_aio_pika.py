"""aio-pika (over aiormq): robust connections, iteration, confirms, transactions, patterns."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import (
    ChannelClosed,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    ProbableAuthenticationError,
    QueueEmpty,
)
from aio_pika.patterns import RPC, Master, NackMessage
from aiormq.exceptions import ChannelLockedResource, InvalidFrameError

from tests.interop.clients.brokers import own_broker, tls_broker
from tests.interop.clients.conftest import Names
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.patience import reached
from tests.ports import free_port
from tests.running import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.asyncio]

_PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def _channel(broker: RunningBroker, **more: Any) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(host="127.0.0.1", port=broker.port)
    async with connection:
        yield await connection.channel(**more)


async def test_iterating_a_queue_yields_its_messages_in_order(broker: RunningBroker) -> None:
    async with _channel(broker) as channel:
        await channel.set_qos(prefetch_count=10)
        queue = await channel.declare_queue(exclusive=True)
        for number in range(100):
            await channel.default_exchange.publish(Message(b"%d" % number), queue.name)
        got = []
        async with queue.iterator(timeout=_PATIENCE_SECONDS) as messages:
            async for message in messages:
                async with message.process():
                    got.append(int(message.body))
                if len(got) == 100:
                    break
        assert got == list(range(100))
        assert (await channel.declare_queue(queue.name, passive=True)) is not None
        assert queue.declaration_result.message_count == 0


async def test_properties_and_headers_come_back_equal(broker: RunningBroker) -> None:
    when = datetime.datetime(2013, 6, 1, 12, 30, tzinfo=datetime.UTC)
    headers = {
        "text": "ü",
        "int": 1,
        "large": 2**40,
        "negative": -5,
        "float": 2.5,
        "bool": True,
        "none": None,
        "decimal": Decimal("1.25"),
        "time": when,
        "list": [1, "two", [3.5]],
        "table": {"a": {"b": "c"}},
        "octets": bytearray(b"\x00\xff"),
    }
    properties = {
        "headers": headers,
        "content_type": "application/json",
        "content_encoding": "gzip",
        "delivery_mode": DeliveryMode.PERSISTENT,
        "priority": 200,
        "correlation_id": "c-1",
        "reply_to": "r",
        "message_id": "m-1",
        "timestamp": when,
        "type": "t",
        "user_id": "guest",
        "app_id": "app",
        "expiration": 3600,
    }
    async with _channel(broker) as channel:
        queue = await channel.declare_queue(exclusive=True)
        await channel.default_exchange.publish(Message(b"{}", **properties), queue.name)
        got = await queue.get(no_ack=True)
        assert {name: getattr(got, name) for name in properties} == properties
        assert got.body == b"{}"
        assert (got.exchange, got.routing_key, got.redelivered) == ("", queue.name, False)


async def test_many_publishes_at_once_are_all_confirmed(broker: RunningBroker) -> None:
    async with _channel(broker) as channel:
        queue = await channel.declare_queue(exclusive=True)
        confirmations = await asyncio.gather(
            *(
                channel.default_exchange.publish(Message(b"%d" % number), queue.name)
                for number in range(500)
            )
        )
        assert all(type(confirmation).__name__ == "Ack" for confirmation in confirmations)
        declared = await channel.declare_queue(queue.name, passive=True)
        assert declared.declaration_result.message_count == 500
        result = await queue.purge()
        assert result.message_count == 500


async def test_unroutable_publish_raises_when_asked_to(broker: RunningBroker) -> None:
    async with _channel(broker, on_return_raises=True) as channel:
        with pytest.raises(DeliveryError) as caught:
            await channel.default_exchange.publish(Message(b"lost"), "nobody-has-this-queue")
        returned = caught.value.message
        assert returned is not None
        assert (returned.delivery.reply_code, returned.delivery.reply_text) == (312, "NO_ROUTE")
        assert returned.body == b"lost"


async def test_process_requeues_or_rejects_when_the_block_fails(broker: RunningBroker) -> None:
    async with _channel(broker) as channel:
        queue = await channel.declare_queue(exclusive=True)
        await channel.default_exchange.publish(Message(b"x"), queue.name)
        with pytest.raises(ZeroDivisionError):
            async with (await queue.get()).process(requeue=True):
                raise ZeroDivisionError
        again = await queue.get()
        assert again.redelivered
        with pytest.raises(ZeroDivisionError):
            async with again.process(requeue=False):
                raise ZeroDivisionError
        with pytest.raises(QueueEmpty):
            await queue.get()


async def test_transaction_commits_at_its_end_and_rolls_back_on_failure(
    broker: RunningBroker,
) -> None:
    async with _channel(broker, publisher_confirms=False) as channel:
        queue = await channel.declare_queue(exclusive=True)
        async with channel.transaction():
            await channel.default_exchange.publish(Message(b"kept"), queue.name)
            assert await queue.get(fail=False) is None
        assert (await queue.get()).body == b"kept"

        async def fail() -> None:
            async with channel.transaction():
                await channel.default_exchange.publish(Message(b"dropped"), queue.name)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert await queue.get(fail=False) is None


async def test_errors_are_raised_as_the_exceptions_of_their_codes(
    broker: RunningBroker, name: Names
) -> None:
    queue = name("mine")
    async with _channel(broker) as other:
        await other.declare_queue(queue, exclusive=True)
        async with _channel(broker) as channel:
            with pytest.raises(ChannelLockedResource, match="cannot obtain exclusive access"):
                await channel.declare_queue(queue, passive=True)
        async with _channel(broker) as channel:
            with pytest.raises(ChannelNotFoundEntity, match="no exchange"):
                await channel.get_exchange(name("missing"))
        async with _channel(broker) as channel:
            with pytest.raises(ChannelPreconditionFailed, match="inequivalent arg 'type'"):
                await channel.declare_exchange("amq.topic", ExchangeType.FANOUT, durable=True)
            with pytest.raises((ChannelClosed, RuntimeError)):
                await channel.declare_queue(exclusive=True)


async def test_wrong_login_and_unknown_vhost_are_told(broker: RunningBroker) -> None:
    with pytest.raises(ProbableAuthenticationError):
        await aio_pika.connect(host="127.0.0.1", port=broker.port, password="nope")
    # aiormq looks at no close of the connection while it opens, only at what it is not.
    with pytest.raises(InvalidFrameError, match="Expected one of"):
        await aio_pika.connect(host="127.0.0.1", port=broker.port, virtualhost="nowhere")


async def test_rpc_pattern_calls_and_raises(broker: RunningBroker, name: Names) -> None:
    method = name("divide")

    async def divide(*, x: int, y: int) -> float:
        return x / y

    async with _channel(broker) as serving, _channel(broker) as calling:
        server, client = await RPC.create(serving), await RPC.create(calling)
        await server.register(method, divide, auto_delete=True)
        answers = await asyncio.gather(
            *(client.call(method, kwargs={"x": x, "y": 2}) for x in range(20))
        )
        assert answers == [x / 2 for x in range(20)]
        with pytest.raises(ZeroDivisionError):
            await client.call(method, kwargs={"x": 1, "y": 0})
        with pytest.raises(aio_pika.exceptions.MessageProcessError):
            await client.call(name("nobody-serves-this"))
        await client.close()
        await server.close()


async def test_rpc_gets_its_answer_over_a_reply_queue_of_its_own(
    broker: RunningBroker, name: Names
) -> None:
    """The shape of the tutorial: a reply queue, correlation ids, a server that answers."""
    work = name("fibonacci")
    async with _channel(broker) as serving, _channel(broker) as asking:
        requests = await serving.declare_queue(work, exclusive=True)

        async def answer(message: AbstractIncomingMessage) -> None:
            async with message.process():
                body = b"%d" % (int(message.body) ** 2)
                reply = Message(body, correlation_id=message.correlation_id)
                await serving.default_exchange.publish(reply, message.reply_to or "")

        await requests.consume(answer)
        replies = await asking.declare_queue(exclusive=True)
        got: dict[str | None, int] = {}

        async def collect(message: AbstractIncomingMessage) -> None:
            got[message.correlation_id] = int(message.body)

        await replies.consume(collect, no_ack=True)
        for number in range(10):
            request = Message(b"%d" % number, correlation_id=str(number), reply_to=replies.name)
            await asking.default_exchange.publish(request, work)
        await reached(lambda: len(got) == 10)
        assert got == {str(number): number**2 for number in range(10)}


async def test_master_pattern_shares_work_and_puts_back(broker: RunningBroker, name: Names) -> None:
    task, done, refused = name("task"), [], []

    async def work(*, number: int) -> None:
        if number == 3 and not refused:
            refused.append(number)
            raise NackMessage(requeue=True)
        done.append(number)

    async with _channel(broker) as channel:
        master = Master(channel)
        worker = await master.create_worker(task, work, auto_delete=True)
        for number in range(6):
            await master.create_task(task, kwargs={"number": number})
        await reached(lambda: len(done) == 6)
        await worker.close()
    assert sorted(done) == list(range(6))
    assert refused == [3]


async def test_robust_connection_declares_and_consumes_again_after_a_restart(
    name: Names,
) -> None:
    port = free_port()
    exchange_name, queue_name, got = name("events"), name("events"), []

    async def collect(message: AbstractIncomingMessage) -> None:
        async with message.process():
            got.append(message.body)

    with own_broker("--port", str(port)) as first:
        connection = await aio_pika.connect_robust(
            host="127.0.0.1", port=port, reconnect_interval=0.1, fail_fast=True
        )
        channel = await connection.channel()
        exchange = await channel.declare_exchange(exchange_name, ExchangeType.TOPIC)
        queue = await channel.declare_queue(queue_name)
        await queue.bind(exchange, "a.*")
        await queue.consume(collect)
        await exchange.publish(Message(b"before"), "a.b")
        await reached(lambda: got == [b"before"])
        reconnected = asyncio.Event()
        connection.reconnect_callbacks.add(lambda *_: reconnected.set())
        first.process.kill()
    with own_broker("--port", str(port)):
        async with connection:
            await asyncio.wait_for(reconnected.wait(), _PATIENCE_SECONDS)
            # The exchange, the queue, the binding and the consumer are all made again.
            await exchange.publish(Message(b"after"), "a.b")
            await reached(lambda: got == [b"before", b"after"])


async def test_idle_connection_stays_open_with_heartbeats(broker: RunningBroker) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/?heartbeat={BEAT_SECONDS}"
    connection = await aio_pika.connect(url)
    async with connection:
        await asyncio.sleep(IDLE_SECONDS)
        channel = await connection.channel()
        assert (await channel.declare_queue(exclusive=True)).name.startswith("amq.gen-")


async def test_tls_connection_carries_messages(tmp_path: Path) -> None:
    with tls_broker(tmp_path) as (_, authority, port):
        context = ssl.create_default_context(cafile=str(authority))
        connection = await aio_pika.connect(
            host="127.0.0.1", port=port, ssl=True, ssl_context=context
        )
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(exclusive=True)
            await channel.default_exchange.publish(Message(b"secret"), queue.name)
            assert (await queue.get(no_ack=True)).body == b"secret"
