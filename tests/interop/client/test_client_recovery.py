"""A broker that dies and comes back: with recovery the client goes on where it was."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harebell.client import aio
from harebell.client.blocking import Recovery
from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionLost,
    RecoveryFailed,
)
from tests.interop.client.apis import Api, do, pause, take, unique
from tests.interop.client.brokers import Broker
from tests.patience import SECONDS, reached
from tests.relay import relay
from tests.running import running_broker

pytestmark = pytest.mark.asyncio

QUICK = Recovery(first_seconds=0.1, most_seconds=0.5)
AGAIN = Recovery(first_seconds=0.1, most_seconds=0.5, resend=True)
UNREAD = frozenset(b"%d" % number for number in range(20))


@contextlib.asynccontextmanager
async def restarted(broker: Broker) -> AsyncIterator[None]:
    """Kills the broker, lets the block run while it is away, and starts it again."""
    await asyncio.to_thread(broker.kill)
    # Let the asyncio API hear of it.
    await asyncio.sleep(0.05)
    try:
        yield
    finally:
        await asyncio.to_thread(broker.start)


async def back(channel: Any) -> None:
    """Use a channel until the connection has recovered; the call that meets the loss fails."""
    for _ in range(3):
        with contextlib.suppress(ConnectionLost):
            await do(channel.qos(100))
            return
    raise AssertionError("the connection did not recover")


async def test_everything_declared_is_there_again(broker: Broker, api: Api) -> None:
    recovered: list[bool] = []
    connection = await api.connect(broker.url, recover=QUICK, rng=random.Random(1))
    connection.on_recovered = lambda: recovered.append(True)
    channel = await do(connection.channel())
    exchange, fan, named = unique("x"), unique("x"), unique()
    await do(channel.declare_exchange(exchange, "topic"))
    await do(channel.declare_exchange(fan, "fanout"))
    await do(channel.bind_exchange(fan, exchange, "all.#"))
    await do(channel.declare_queue(named, arguments={"x-max-length": 10}))
    anonymous = await do(channel.declare_queue("", exclusive=True))
    first_name = anonymous.name
    await do(channel.bind_queue(named, exchange, "named"))
    await do(channel.bind_queue(first_name, fan, ""))
    async with restarted(broker):
        pass
    await back(channel)
    assert recovered == [True]
    assert anonymous.name != first_name
    assert connection.name_now(first_name) == anonymous.name
    await do(channel.publish(b"1", exchange=exchange, routing_key="named", mandatory=True))
    await do(channel.publish(b"2", exchange=exchange, routing_key="all.x", mandatory=True))
    assert (await do(channel.get(named, no_ack=True))).body == b"1"
    # The old name is understood as well as the new one.
    assert (await do(channel.get(first_name, no_ack=True))).body == b"2"
    assert await do(channel.get(anonymous.name, no_ack=True)) is None
    await do(channel.delete_queue(named))
    await do(channel.delete_exchange(exchange))
    await do(channel.delete_exchange(fan))


async def test_a_consumer_goes_on_and_its_old_deliveries_can_be_acknowledged_in_peace(
    broker: Broker, api: Api
) -> None:
    connection = await api.connect(broker.url, recover=QUICK)
    channel = await do(connection.channel())
    queue = await do(channel.declare_queue("", exclusive=True))
    await do(channel.publish_many([b"1", b"2", b"3"], routing_key=queue.name))
    consumer = channel.consume(queue.name, prefetch=2, timeout=SECONDS)
    (held,) = await take(consumer, 1)
    async with restarted(broker):
        pass
    await back(channel)
    # Nobody may be told about this delivery any more, and that is no error.
    await do(held.ack())
    await do(channel.publish_many([b"4", b"5", b"6"], routing_key=queue.name))
    for body in (b"4", b"5", b"6"):
        (message,) = await take(consumer, 1)
        assert message.body == body
        await do(message.ack())
    info = await do(channel.declare_queue(queue.name, passive=True))
    assert (info.message_count, info.consumer_count) == (0, 1)


async def test_a_consumer_that_waits_while_the_broker_is_away_goes_on(
    harebell: Broker, api: Api
) -> None:
    connection = await api.connect(harebell.url, recover=QUICK)
    channel = await do(connection.channel())
    queue = await do(channel.declare_queue("", exclusive=True))
    consumer = channel.consume(queue.name, timeout=2 * SECONDS)
    if api.name == "asyncio":
        await consumer.start()

    async def feed() -> None:
        await asyncio.to_thread(harebell.kill)
        await asyncio.to_thread(harebell.start)
        async with aio.connect(harebell.url) as other:
            publisher = await other.channel()
            await reached(lambda: not connection.recovering and queue.name != first_name)
            await publisher.publish(b"after", routing_key=queue.name, mandatory=True)

    first_name = queue.name
    if api.name == "asyncio":
        _, messages = await asyncio.gather(feed(), take(consumer, 1))
    else:
        feeding = asyncio.to_thread(asyncio.run, feed())
        _, messages = await asyncio.gather(feeding, asyncio.to_thread(next, consumer))
        messages = [messages]
    assert messages[0].body == b"after"
    await do(messages[0].ack())


async def test_unconfirmed_publishes_fail_clearly_by_default(harebell: Broker, api: Api) -> None:
    connection = await api.connect(harebell.url, recover=QUICK)
    channel = await do(connection.channel())
    queue = await do(channel.declare_queue("", exclusive=True))
    await do(channel.publish(b"", routing_key=queue.name))
    async with restarted(harebell):
        # Not yet noticed by the blocking API, and refused at once by the other.
        try:
            confirm = channel.publish_nowait(b"lost", routing_key=queue.name)
        except ConnectionLost:
            assert api.name == "asyncio"
            confirm = None
    if confirm is not None:
        with pytest.raises(ConnectionLost):
            await do(confirm)
    await back(channel)
    await do(channel.publish(b"fine", routing_key=queue.name, mandatory=True))


async def cut_off_while_publishing(broker: Broker, api: Api, version: str) -> set[bytes]:
    """Publish to a broker that dies before it reads; what of it comes to a consumer afterwards."""
    connection = await api.connect(broker.url, version=version, recover=AGAIN)
    channel = await do(connection.channel())
    queue = await do(channel.declare_queue("", exclusive=True))
    exchange = unique("x")
    await do(channel.declare_exchange(exchange, "fanout"))
    await do(channel.bind_queue(queue.name, exchange))
    await do(channel.publish(b"", exchange=exchange))
    broker.freeze()
    # Written into the socket of a broker that will never read them.
    confirms = [channel.publish_nowait(body, exchange=exchange) for body in sorted(UNREAD)]
    await pause(connection, 0.05)
    async with restarted(broker):
        pass
    for confirm in confirms:
        await do(confirm)
    await back(channel)
    found: set[bytes] = set()
    consumer = channel.consume(queue.name, timeout=SECONDS)
    while found < UNREAD:
        (message,) = await take(consumer, 1)
        found.add(message.body)
    await do(channel.delete_exchange(exchange))
    return found


async def test_unconfirmed_publishes_are_sent_again_on_request(broker: Broker, api: Api) -> None:
    assert await cut_off_while_publishing(broker, api, "0-9-1") == UNREAD


@pytest.mark.parametrize("version", ["0-10", "0-10t"])
async def test_unconfirmed_publishes_are_sent_again_in_later_versions(
    harebell: Broker, api: Api, version: str
) -> None:
    assert await cut_off_while_publishing(harebell, api, version) == UNREAD


@pytest.mark.parametrize("version", ["0-9-1", "0-10", "0-10t"])
async def test_a_bulk_publish_survives_a_restart_when_it_may_send_again(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version, recover=AGAIN)
    channel = await do(connection.channel())
    exchange = unique("x")
    await do(channel.declare_exchange(exchange, "fanout"))
    restarts: list[Any] = []

    def items() -> Any:
        for number in range(4000):
            if number == 2000:
                harebell.kill()
                restarts.append(asyncio.get_running_loop().run_in_executor(None, harebell.start))
            yield b"%d" % number

    assert await do(channel.publish_many(items(), exchange=exchange, window=700)) == 4000
    await asyncio.gather(*restarts)
    await do(channel.delete_exchange(exchange))


async def test_calls_made_while_the_broker_is_away_wait_for_it(harebell: Broker) -> None:
    async with aio.connect(harebell.url, recover=QUICK) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("", exclusive=True)
        await asyncio.to_thread(harebell.kill)
        await reached(lambda: connection.recovering)
        assert not connection.is_open
        waiting = asyncio.gather(
            channel.publish(b"waited", exchange="amq.fanout"),
            channel.bind_queue(queue.name, "amq.fanout"),
            connection.channel(),
        )
        await asyncio.to_thread(harebell.start)
        await waiting
        assert connection.is_open


async def test_giving_up_says_after_how_many_attempts_and_why(harebell: Broker, api: Api) -> None:
    brief = Recovery(first_seconds=0.05, most_seconds=0.05, attempts=3)
    connection = await api.connect(harebell.url, recover=brief)
    channel = await do(connection.channel())
    name = (await do(channel.declare_queue("", exclusive=True))).name
    consumer = channel.consume(name, timeout=SECONDS)
    if api.name == "asyncio":
        await consumer.start()
    async with restarted(harebell):
        with pytest.raises(RecoveryFailed, match="3 attempts") as caught:
            await take(consumer)
        assert isinstance(caught.value.__cause__, ConnectionFailed)
        with pytest.raises(RecoveryFailed):
            await do(channel.qos(1))
        await do(connection.close())


async def test_closing_while_recovering_ends_it(harebell: Broker) -> None:
    async with aio.connect(harebell.url, recover=QUICK) as connection:
        channel = await connection.channel()
        await asyncio.to_thread(harebell.kill)
        try:
            await reached(lambda: connection.recovering)
            waiting = asyncio.ensure_future(channel.qos(1))
            await asyncio.sleep(0)
            await connection.close()
            with pytest.raises(AMQPError):
                await waiting
        finally:
            await asyncio.to_thread(harebell.start)


async def test_a_consumer_whose_start_was_cancelled_during_a_recovery_starts_after_it(
    harebell: Broker,
) -> None:
    async with aio.connect(harebell.url, recover=QUICK) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(unique())
        consumer = channel.consume(queue.name, timeout=SECONDS)
        async with restarted(harebell):
            await reached(lambda: connection.recovering)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(consumer), 0.1)
        await channel.publish(b"one", routing_key=queue.name)
        assert (await anext(consumer)).body == b"one"
        await channel.delete_queue(queue.name)


async def test_a_consumer_whose_connection_was_lost_before_it_had_begun_says_so_each_time() -> None:
    with running_broker() as server, relay(server.port) as between:
        url = f"amqp://guest:guest@127.0.0.1:{between.port}/%2F"
        async with aio.connect(url, recover=QUICK) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(unique())
            consumer = channel.consume(queue.name)
            between.cut_at = b"\0\x3c\0\x14"  # basic.consume
            async with asyncio.timeout(SECONDS):
                for _ in range(2):
                    with pytest.raises(ConnectionLost):
                        await anext(consumer)
            await back(channel)


async def test_a_refused_login_is_not_something_to_recover_from(harebell: Broker, api: Api) -> None:
    url = harebell.url.replace("guest:guest", "guest:wrong")
    with pytest.raises(AuthenticationFailed):
        await api.connect(url, recover=True)


async def test_a_transaction_does_not_survive_its_connection(harebell: Broker, api: Api) -> None:
    connection = await api.connect(harebell.url, recover=QUICK)
    channel = await do(connection.channel(confirms=False))
    queue = await do(channel.declare_queue("", exclusive=True))
    await do(channel.core.select_transactions() and channel.qos(10))
    await do(channel.publish(b"lost", routing_key=queue.name))
    async with restarted(harebell):
        pass
    await pause_until_lost(channel)
    await back(channel)
    assert await do(channel.get(queue.name)) is None


async def pause_until_lost(channel: Any) -> None:
    """Let the API notice that the connection is gone."""
    with contextlib.suppress(ConnectionLost):
        await pause(channel.connection, 0.1)


async def test_consumers_given_up_while_the_broker_was_away_do_not_come_back(
    harebell: Broker, api: Api
) -> None:
    connection = await api.connect(harebell.url, recover=QUICK)
    kept, closed = await do(connection.channel()), await do(connection.channel())
    queue = await do(kept.declare_queue("", exclusive=True))
    dropped, cancelled = kept.consume(queue.name), kept.consume(queue.name)
    on_closed = closed.consume(queue.name)
    if api.name == "asyncio":
        await asyncio.gather(dropped.start(), cancelled.start(), on_closed.start())
    assert (await do(kept.declare_queue(queue.name, passive=True))).consumer_count == 3
    async with restarted(harebell):
        if api.name == "asyncio":
            await reached(lambda: connection.recovering)
        else:
            # This API hears of the loss when it reads; do not let it wait for the broker here.
            connection._link.pump(0.5)
        await do(closed.close())
        del dropped
    await back(kept)
    await do(cancelled.cancel())
    assert connection.channels == {kept.number: kept}
    assert (await do(kept.declare_queue(queue.name, passive=True))).consumer_count == 0


async def test_a_loss_and_a_recovery_are_logged(
    harebell: Broker, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "harebell.client")
    connection = await api.connect(harebell.url, recover=QUICK)
    alone = await api.connect(harebell.url)
    channel = await do(connection.channel())
    lonely = await do(alone.channel())
    async with restarted(harebell):
        pass
    await back(channel)
    for _ in range(2):
        with contextlib.suppress(ConnectionLost):
            await do(lonely.qos(1))
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    where = f"127.0.0.1:{connection.url.port}"
    name = "harebell.client.aio" if api.name == "asyncio" else "harebell.client.blocking"
    assert {record.name for record in caplog.records} == {name}
    assert any(
        level == "WARNING" and text.startswith(f"lost the connection to {where}, recovering: ")
        for level, text in said
    )
    assert any(
        level == "INFO" and text.startswith(f"connected to {where} again after ")
        for level, text in said
    )
    assert any(
        level == "WARNING" and text.startswith(f"lost the connection to {where}: ")
        for level, text in said
    )
