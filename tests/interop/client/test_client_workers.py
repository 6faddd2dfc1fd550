"""`channel.handle()`: a handler for each message, what its errors do, and how a worker ends."""

from __future__ import annotations

import asyncio
import functools
import logging
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from harebell.client import aio, blocking
from harebell.client.errors import ConnectionLost, ConsumerCancelled, NotFound, Undecodable
from harebell.client.message import Message
from tests.interop.client.apis import QUIET_SECONDS, Api, do, unique
from tests.interop.client.brokers import Broker
from tests.interop.client.test_client_recovery import QUICK
from tests.interop.client.test_client_verbs import fresh_queue, settled_count
from tests.interop.client.test_client_versions import publish
from tests.interop.matrix import SPOKEN
from tests.patience import SECONDS
from tests.relay import relay

pytestmark = pytest.mark.asyncio

POISON = b"{"


def handler_of(api: Api, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function as a handler of either API."""
    if api.name == "blocking":
        return work

    async def handle(message: Any) -> None:
        await asyncio.sleep(0)
        await do(work(message))

    return handle


async def fill(channel: Any, queue: str, count: int) -> None:
    """Publish so many numbered messages."""
    for number in range(count):
        await do(channel.publish(b"%d" % number, routing_key=queue))


async def dead_lettering(channel: Any) -> tuple[str, str]:
    """A queue, and the one that gets what it rejects."""
    dead = await fresh_queue(channel)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    return await fresh_queue(channel, arguments=to_dead), dead


@pytest.mark.parametrize("version", SPOKEN)
async def test_each_message_is_handled_and_acknowledged(
    harebell: Broker, api: Api, version: str
) -> None:
    connection = await api.connect(harebell.url, version=version)
    channel = await do(connection.channel())
    queue = unique()
    await do(channel.declare_queue(queue))
    for number in range(5):
        await publish(connection, b"%d" % number, routing_key=queue)
    seen: list[bytes] = []
    handler = handler_of(api, lambda message: seen.append(message.body))
    worker = channel.handle(queue, handler, prefetch=10, timeout=QUIET_SECONDS)
    await do(worker.run())
    assert seen == [b"0", b"1", b"2", b"3", b"4"]
    assert (worker.handled, worker.failed, worker.running) == (5, 0, 0)
    assert repr(worker) == f"<Worker of queue {queue!r}, 0 running, 5 handled, 0 failed>"
    assert await do(channel.delete_queue(queue)) == 0


@pytest.mark.parametrize(
    ("on_error", "left", "dead", "calls"),
    [
        ("reject", 0, 1, 1),
        ("requeue_once", 0, 1, 2),
        ("ack", 0, 0, 1),
        (lambda _, error: "reject" if "unfit" in str(error) else "requeue", 0, 1, 1),
    ],
)
async def test_a_failed_message_goes_where_the_policy_says_and_the_log_has_why(
    broker: Broker,
    api: Api,
    caplog: pytest.LogCaptureFixture,
    on_error: Any,
    left: int,
    dead: int,
    calls: int,
) -> None:
    channel = await api.channel(broker.url)
    queue, letters = await dead_lettering(channel)
    await do(channel.publish(b"poison", routing_key=queue))
    await do(channel.publish(b"good", routing_key=queue))
    bodies: list[bytes] = []

    def work(message: Any) -> None:
        bodies.append(message.body)
        if message.body == b"poison":
            raise ValueError("unfit")

    worker = channel.handle(queue, handler_of(api, work), on_error=on_error, timeout=QUIET_SECONDS)
    await do(worker.run())
    assert (bodies.count(b"poison"), bodies.count(b"good")) == (calls, 1)
    assert (worker.handled, worker.failed) == (1, calls)
    assert await settled_count(channel, queue, left) == left
    assert await settled_count(channel, letters, dead) == dead
    failures = [record for record in caplog.records if "the handler of queue" in record.message]
    assert [record.levelno for record in failures] == [logging.ERROR] * calls
    assert all(record.exc_info for record in failures)
    assert queue in failures[0].message


async def test_a_body_that_cannot_be_decoded_is_dead_lettered(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue, letters = await dead_lettering(channel)
    await do(channel.publish(POISON, routing_key=queue))
    await do(channel.publish_json({"id": 7}, routing_key=queue))
    found: list[Any] = []
    handler = handler_of(api, lambda message: found.append(message.json()))
    await do(channel.handle(queue, handler, timeout=QUIET_SECONDS).run())
    assert found == [{"id": 7}]
    assert await settled_count(channel, letters, 1) == 1
    letter = await do(channel.get(letters))
    assert letter.body == POISON
    with pytest.raises(Undecodable, match="the body is not the expected JSON"):
        letter.json()


async def test_a_policy_that_fails_ends_the_worker_and_loses_nothing(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue, _ = await dead_lettering(channel)
    await fill(channel, queue, 2)

    def work(message: Any) -> None:
        raise ValueError("unfit")

    for on_error in (lambda *_: 1 / 0, lambda *_: "rejct"):
        worker = channel.handle(queue, handler_of(api, work), on_error=on_error, timeout=SECONDS)
        with pytest.raises((ZeroDivisionError, ValueError)):
            await do(worker.run())
        assert await settled_count(channel, queue, 2) == 2


async def test_a_handler_may_settle_its_message(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue, letters = await dead_lettering(channel)
    await fill(channel, queue, 2)
    handler = handler_of(api, lambda message: message.reject())
    await do(channel.handle(queue, handler, timeout=QUIET_SECONDS).run())
    assert await settled_count(channel, letters, 2) == 2
    assert channel.is_open


async def test_a_handler_without_acknowledgements_settles_nothing(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await fill(channel, queue, 3)
    seen: list[bytes] = []

    def work(message: Any) -> None:
        seen.append(message.body)
        raise ValueError("unfit")

    worker = channel.handle(queue, handler_of(api, work), no_ack=True, timeout=QUIET_SECONDS)
    await do(worker.run())
    assert len(seen) == worker.failed == 3
    assert await settled_count(channel, queue, 0) == 0


async def test_a_stopped_worker_ends_its_handlers_and_requeues_the_rest(
    broker: Broker, api: Api
) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await fill(channel, queue, 10)
    worker: Any = None

    def work(message: Any) -> None:
        worker.stop()

    worker = channel.handle(queue, handler_of(api, work), prefetch=10, timeout=SECONDS)
    await do(worker.run())
    assert (worker.handled, worker.failed) == (1, 0)
    assert await settled_count(channel, queue, 9) == 9
    with pytest.raises(RuntimeError, match="runs once"):
        await do(worker.run())


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"on_error": "retry"}])
async def test_a_wrong_argument_is_refused_at_once(
    harebell: Broker, api: Api, wrong: dict[str, Any]
) -> None:
    channel = await api.channel(harebell.url)
    with pytest.raises(ValueError, match=r"at least 1|reject, requeue, requeue_once, ack"):
        channel.handle("q", handler_of(api, print), **wrong)


async def test_a_handler_that_would_run_nothing_is_refused_at_once(
    harebell: Broker, api: Api
) -> None:
    def generator(message: Any) -> Iterator[None]:
        yield

    async def asynchronous(message: Any) -> AsyncIterator[None]:
        yield

    channel = await api.channel(harebell.url)
    for handler in (generator, asynchronous, None, b"x"):
        with pytest.raises(TypeError, match=r"handler|generator"):
            channel.handle("q", handler)


async def test_a_missing_queue_and_a_deleted_one_end_the_worker(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    channel = await do(connection.channel())
    with pytest.raises(NotFound):
        await do(channel.handle(unique(), handler_of(api, print)).run())
    channel, other = await do(connection.channel()), await do(connection.channel())
    queue = await fresh_queue(channel)
    await fill(channel, queue, 1)
    handler = handler_of(api, lambda message: other.delete_queue(queue))
    with pytest.raises(ConsumerCancelled):
        await do(channel.handle(queue, handler).run())


async def test_a_connection_that_breaks_in_a_handler_delivers_again(
    broker: Broker, api: Api
) -> None:
    with relay(int(broker.url.rpartition(":")[2])) as between:
        url = f"amqp://guest:guest@127.0.0.1:{between.port}"
        connection = await api.connect(url, recover=QUICK, rng=random.Random(1))
        channel = await do(connection.channel())
        queue = unique()
        await do(channel.declare_queue(queue))
        await fill(channel, queue, 3)
        seen: list[tuple[bytes, bool]] = []

        def work(message: Any) -> None:
            seen.append((message.body, message.redelivered))
            if len(seen) == 1:
                between.cut()
            if len(seen) == 4:
                worker.stop()

        worker = channel.handle(queue, handler_of(api, work))
        await do(worker.run())
        assert [body for body, _ in seen] == [b"0", b"0", b"1", b"2"]
        assert [again for _, again in seen][:2] == [False, True]
        assert await settled_count(channel, queue, 0) == 0
        await do(channel.delete_queue(queue))


async def test_a_broker_that_dies_in_a_handler_ends_a_worker_without_recovery(
    harebell: Broker, api: Api
) -> None:
    channel = await api.channel(harebell.url)
    queue = await fresh_queue(channel)
    await fill(channel, queue, 1)

    def restart() -> None:
        harebell.kill()
        harebell.start()

    def work(message: Any) -> Any:
        return asyncio.to_thread(restart) if api.name == "asyncio" else restart()

    with pytest.raises(ConnectionLost):
        await do(channel.handle(queue, handler_of(api, work)).run())


async def test_a_connection_that_breaks_ends_a_worker_and_its_messages_come_again(
    broker: Broker, api: Api
) -> None:
    other = await api.channel(broker.url)
    queue = unique()
    await do(other.declare_queue(queue))
    await fill(other, queue, 1)
    with relay(int(broker.url.rpartition(":")[2])) as between:
        channel = await api.channel(f"amqp://guest:guest@127.0.0.1:{between.port}")
        handler = handler_of(api, lambda message: between.cut())
        with pytest.raises(ConnectionLost):
            await do(channel.handle(queue, handler).run())
    assert await settled_count(other, queue, 1) == 1
    await do(other.delete_queue(queue))


async def test_so_many_handlers_run_at_a_time_and_no_more(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    queue = await fresh_queue(channel)
    await fill(channel, queue, 250)
    together = threading.Barrier(100)
    running = peak = 0
    all_run = asyncio.Event()
    lock = threading.Lock()

    async def in_task(message: Any) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        if running == 100:
            all_run.set()
        await asyncio.wait_for(all_run.wait(), SECONDS)
        running -= 1

    def in_thread(message: Any) -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        if int(message.body) < 100:
            together.wait(SECONDS)
        with lock:
            running -= 1

    handler = in_task if api.name == "asyncio" else in_thread
    worker = channel.handle(queue, handler, concurrency=100, timeout=QUIET_SECONDS)
    await do(worker.run())
    assert peak == 100
    assert (worker.handled, worker.failed) == (250, 0)
    assert await settled_count(channel, queue, 0) == 0


async def test_a_cancelled_worker_cancels_its_handlers_and_requeues_their_messages(
    broker: Broker,
) -> None:
    async with aio.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await fresh_queue(channel)
        await fill(channel, queue, 5)
        begun: asyncio.Queue[Any] = asyncio.Queue()

        async def handle(message: aio.Delivery) -> None:
            begun.put_nowait(message)
            await asyncio.Event().wait()

        task = asyncio.create_task(channel.handle(queue, handle, concurrency=3).run())
        for _ in range(3):
            await begun.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await settled_count(channel, queue, 5) == 5


async def test_a_worker_beside_a_block_ends_with_it_when_its_handlers_have_ended(
    broker: Broker,
) -> None:
    async with aio.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await fresh_queue(channel)
        await fill(channel, queue, 5)
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def handle(message: aio.Delivery) -> None:
            begun.set()
            await go_on.wait()

        async with channel.handle(queue, handle) as worker:
            await begun.wait()
            assert worker.running == 1
            asyncio.get_running_loop().call_later(0.05, go_on.set)
        assert (worker.running, worker.handled) == (0, 1)
        assert await settled_count(channel, queue, 4) == 4
        with pytest.raises(NotFound):
            async with channel.handle(unique(), handle):
                raise AssertionError("entered without a queue")


async def test_a_handler_that_ends_with_a_cancelled_future_has_failed(broker: Broker) -> None:
    async with aio.connect(broker.url) as connection:
        channel = await connection.channel()
        queue, letters = await dead_lettering(channel)
        await fill(channel, queue, 1)

        async def handle(message: aio.Delivery) -> None:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        worker = channel.handle(queue, handle, timeout=QUIET_SECONDS)
        await worker.run()
        assert worker.failed == 1
        assert await settled_count(channel, letters, 1) == 1


async def test_an_asyncio_worker_takes_a_function_that_does_not_wait(broker: Broker) -> None:
    async with aio.connect(broker.url) as connection:
        channel = await connection.channel()
        queue = await fresh_queue(channel)
        await channel.publish(Message.of({"a": 1}), routing_key=queue)
        seen: list[Any] = []
        worker = channel.handle(queue, lambda message: seen.append(message.json()), timeout=0.3)
        await worker.run()
        assert seen == [{"a": 1}]


async def test_a_blocking_worker_refuses_a_coroutine_function_and_keeps_its_messages(
    broker: Broker,
) -> None:
    async def handle(message: Any) -> None:
        raise AssertionError("it cannot run")

    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        queue = channel.declare_queue("", exclusive=True).name
        with pytest.raises(TypeError, match="for the asyncio API"):
            channel.handle(queue, handle)
        channel.publish(b"1", routing_key=queue)
        # What is no coroutine function, and returns a coroutine, is a handler that fails.
        worker = channel.handle(queue, functools.partial(lambda it: handle(it)), on_error="ack")
        threading.Timer(QUIET_SECONDS, worker.stop).start()
        worker.run()
        assert worker.failed == 1


async def test_a_blocking_worker_is_stopped_from_another_thread(broker: Broker) -> None:
    with blocking.connect(broker.url) as connection:
        channel = connection.channel()
        queue = channel.declare_queue("", exclusive=True).name
        worker = channel.handle(queue, print, concurrency=2)
        threading.Timer(0.1, worker.stop).start()
        worker.run()
        assert worker.handled == 0


async def test_heartbeats_go_on_while_a_handler_in_a_thread_is_slow(broker: Broker) -> None:
    release = threading.Event()
    with blocking.connect(broker.url + "?heartbeat=1") as connection:
        channel = connection.channel()
        queue = channel.declare_queue("", exclusive=True).name
        for _ in range(2):
            channel.publish(b"1", routing_key=queue)

        def handle(message: Any) -> None:
            # Longer than two intervals without a heartbeat.
            release.wait(3.5)

        worker = channel.handle(queue, handle, concurrency=2, timeout=QUIET_SECONDS)
        worker.run()
        assert worker.handled == 2
        assert channel.declare_queue(queue, passive=True).message_count == 0
