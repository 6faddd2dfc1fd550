"""What goes wrong becomes an exception with code and text, and hurts nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harebell.client import aio, blocking
from harebell.client.errors import (
    AccessRefused,
    AuthenticationFailed,
    CallTimeout,
    ClientClosed,
    ConnectionFailed,
    ConnectionLost,
    ConnectTimeout,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    ProtocolMismatch,
    ResourceLocked,
)
from tests.interop.client.apis import Api, do, pause, take, unique
from tests.interop.client.brokers import Broker
from tests.interop.idleness import BEAT_SECONDS, IDLE_SECONDS
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.relay import relay
from tests.running import running_broker

pytestmark = pytest.mark.asyncio


async def test_a_missing_queue_is_not_found(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = unique()
    with pytest.raises(NotFound) as caught:
        await do(channel.declare_queue(name, passive=True))
    assert caught.value.code == 404
    assert caught.value.text == f"NOT_FOUND - no queue '{name}' in vhost '/'"
    assert (caught.value.class_id, caught.value.method_id) == (50, 10)


async def test_a_missing_exchange_fails_the_publish_itself(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = unique("x")
    with pytest.raises(NotFound) as caught:
        await do(channel.publish(b"", exchange=name))
    assert caught.value.text == f"NOT_FOUND - no exchange '{name}' in vhost '/'"


async def test_a_missing_queue_fails_consume_and_get(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    channel = await do(connection.channel())
    with pytest.raises(NotFound):
        await do(channel.get(unique()))
    channel = await do(connection.channel())
    with pytest.raises(NotFound):
        await take(channel.consume(unique()))


async def test_a_different_redeclaration_is_a_failed_precondition(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = (await do(channel.declare_queue(unique(), exclusive=True))).name
    with pytest.raises(PreconditionFailed) as caught:
        await do(channel.declare_queue(name, exclusive=True, auto_delete=True))
    assert caught.value.code == 406
    assert "inequivalent arg 'auto_delete'" in caught.value.text


async def test_a_reserved_name_is_refused(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    with pytest.raises(AccessRefused) as caught:
        await do(channel.declare_queue(f"amq.{unique()}"))
    assert caught.value.code == 403
    assert "reserved prefix 'amq.*'" in caught.value.text


async def test_a_queue_of_another_connection_is_locked(broker: Broker, api: Api) -> None:
    owner = await api.channel(broker.url)
    other = await api.channel(broker.url)
    name = (await do(owner.declare_queue("", exclusive=True))).name
    with pytest.raises(ResourceLocked) as caught:
        await do(other.get(name))
    assert caught.value.code == 405
    assert "cannot obtain exclusive access to locked queue" in caught.value.text


async def test_an_unknown_delivery_tag_closes_the_channel(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = (await do(channel.declare_queue("", exclusive=True))).name
    consumer = channel.consume(name)
    if api.name == "asyncio":
        await consumer.start()
    await do(channel.ack(99))
    with pytest.raises(PreconditionFailed, match="unknown delivery tag 99"):
        await take(consumer)


async def test_a_closed_channel_keeps_saying_why_and_the_others_go_on(
    broker: Broker, api: Api
) -> None:
    connection = await api.connect(broker.url)
    broken, healthy = await do(connection.channel()), await do(connection.channel())
    with pytest.raises(NotFound):
        await do(broken.purge_queue(unique()))
    assert not broken.is_open
    for verb in (lambda: broken.qos(1), lambda: broken.publish(b""), lambda: broken.get("q")):
        with pytest.raises(NotFound):
            await do(verb())
    name = (await do(healthy.declare_queue("", exclusive=True))).name
    await do(healthy.publish(b"", routing_key=name))
    again = await do(connection.channel())
    assert again.number == broken.number
    await do(again.publish(b"", routing_key=name))


async def test_one_failed_publish_fails_those_behind_it(broker: Broker, api: Api) -> None:
    channel = await api.channel(broker.url)
    name = (await do(channel.declare_queue("", exclusive=True))).name
    await do(channel.publish(b"before", routing_key=name))
    wrong = channel.publish_nowait(b"", exchange=unique("x"))
    behind = channel.publish_nowait(b"behind", routing_key=name)
    for confirm in (wrong, behind):
        with pytest.raises(NotFound):
            await do(confirm)


async def test_a_wrong_password_is_an_authentication_failure(broker: Broker, api: Api) -> None:
    url = broker.url.replace("guest:guest", "guest:wrong-secret")
    with pytest.raises(AuthenticationFailed) as caught:
        await api.connect(url)
    assert caught.value.code == 403
    assert "ACCESS_REFUSED" in caught.value.text
    assert "wrong-secret" not in str(caught.value)


async def test_amqplain_logs_in_as_well(broker: Broker, api: Api) -> None:
    connection = await api.connect(f"{broker.url}?auth_mechanism=amqplain")
    assert connection.is_open


async def test_a_missing_virtual_host_is_not_allowed(broker: Broker, api: Api) -> None:
    with pytest.raises(NotAllowed) as caught:
        await api.connect(f"{broker.url}/nowhere")
    assert caught.value.code == 530
    assert "nowhere" in caught.value.text


async def test_a_hard_error_closes_the_connection_with_its_code(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    one, other = await do(connection.channel()), await do(connection.channel())
    name = (await do(one.declare_queue("", exclusive=True))).name
    first = one.consume(name, tag="same")
    if api.name == "asyncio":
        await first.start()
    # The client refuses to use a tag twice; a broker that is asked anyway closes the connection.
    consumers, one.core.consumers = one.core.consumers, {}
    with pytest.raises(NotAllowed) as caught:
        await take(one.consume(name, tag="same"))
    one.core.consumers = consumers
    assert caught.value.code == 530
    assert "attempt to reuse consumer tag 'same'" in caught.value.text
    with pytest.raises(NotAllowed):
        await do(other.qos(1))
    assert not connection.is_open


async def test_a_refused_connection_names_the_address(api: Api) -> None:
    port = free_port()
    with pytest.raises(ConnectionFailed, match=rf"127\.0\.0\.1:{port}"):
        await api.connect(f"amqp://127.0.0.1:{port}")


@contextmanager
def server(answer: bytes) -> Iterator[int]:
    """A TCP server that is no broker: it says something, or nothing, and keeps the socket open."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def serve() -> None:
            try:
                while True:
                    client, _ = listener.accept()
                    held.append(client)
                    if answer:
                        client.recv(8)
                        client.sendall(answer)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)
        for client in held:
            client.close()


async def test_a_server_that_says_nothing_is_given_up_in_time(api: Api) -> None:
    with server(b"") as port, pytest.raises(ConnectTimeout, match=r"0\.5 seconds"):
        await api.connect(f"amqp://127.0.0.1:{port}?connection_timeout=500")


async def test_a_web_server_is_recognised(api: Api) -> None:
    answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with server(answer) as port, pytest.raises(ProtocolMismatch, match="does not speak AMQP"):
        await api.connect(f"amqp://127.0.0.1:{port}")


async def test_calls_of_a_closed_connection_say_so(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    channel = await do(connection.channel())
    await do(connection.close())
    await do(connection.close())
    assert not connection.is_open
    with pytest.raises(ClientClosed):
        await do(channel.qos(1))
    with pytest.raises(ClientClosed):
        await do(connection.channel())


async def test_a_consumer_of_a_closed_connection_says_so_each_time(broker: Broker) -> None:
    async with aio.connect(broker.url) as connection:
        consumer = (await connection.channel()).consume("jobs")
    async with asyncio.timeout(SECONDS):
        for _ in range(2):
            with pytest.raises(ClientClosed):
                await anext(consumer)


async def test_an_answer_that_does_not_come_in_time_is_a_timeout(broker: Broker) -> None:
    connection = blocking.connect(broker.url, call_timeout=SECONDS)
    with connection:
        channel = connection.channel()
        channel.qos(1)
        connection._call_timeout = 0.2
        # A call that the broker never hears of.
        call = channel.core.qos(2)
        channel.core.send = lambda method: None  # type: ignore[method-assign]
        call = channel.core.qos(3)
        with pytest.raises(CallTimeout):
            connection.finish(call)
        connection._call_timeout = SECONDS
        del channel.core.send


async def test_a_message_that_a_timed_out_get_brings_later_is_requeued() -> None:
    with running_broker() as server, relay(server.port) as between:
        url = f"amqp://guest:guest@127.0.0.1:{between.port}/%2F"
        with blocking.connect(url, call_timeout=SECONDS) as connection:
            channel = connection.channel()
            queue = channel.declare_queue("", exclusive=True).name
            channel.publish(b"one", routing_key=queue)
            between.silent = True
            connection._call_timeout = 0.1
            with pytest.raises(CallTimeout):
                channel.get(queue)
            between.silent = False
            connection._call_timeout = SECONDS
            assert eventually(lambda: channel.declare_queue(queue, passive=True).message_count)
            again = channel.get(queue)
            assert again is not None
            assert (again.body, again.redelivered) == (b"one", True)


async def test_blocked_publishers_are_told_and_confirmed_when_there_is_room_again(
    broker: Broker, api: Api
) -> None:
    connection = await api.connect(broker.url)
    channel = await do(connection.channel())
    name = (await do(channel.declare_queue("", exclusive=True))).name
    await do(channel.publish(b"before", routing_key=name))
    assert not is_blocked(connection)
    await asyncio.to_thread(broker.block_publishers)
    try:
        held = channel.publish_nowait(b"held", routing_key=name)
        until = time.monotonic() + SECONDS
        while not is_blocked(connection) and time.monotonic() < until:
            await pause(connection, 0.05)
        assert is_blocked(connection)
        assert "memory" in connection.blocked_reason
    finally:
        await asyncio.to_thread(broker.unblock_publishers)
    await do(held)
    until = time.monotonic() + SECONDS
    while is_blocked(connection) and time.monotonic() < until:
        await pause(connection, 0.05)
    assert not is_blocked(connection)
    assert connection.blocked_reason is None
    await do(channel.publish(b"after", routing_key=name))


async def test_consumer_and_channel_end_although_the_broker_blocks_publishers(
    broker: Broker,
) -> None:
    other = await aio.connect(broker.url)
    name = (await (await other.channel()).declare_queue("", exclusive=False)).name
    connection = await aio.connect(broker.url)
    try:
        async with asyncio.timeout(SECONDS):
            async with await connection.channel() as channel, channel.consume(name) as consumer:
                await channel.publish(b"first", routing_key=name)
                await channel.publish(b"prefetched", routing_key=name)
                assert (await anext(consumer)).body == b"first"
                await asyncio.to_thread(broker.block_publishers)
                channel.publish_nowait(bytes(25_000_000), routing_key=name)
                await connection.blocked.wait()
            assert not channel.is_open
            assert [message async for message in consumer] == []
    finally:
        await asyncio.to_thread(broker.unblock_publishers)
    await connection.close()
    # The closed channel has requeued what was not acknowledged.
    channel = await other.channel()
    async with channel.consume(name, prefetch=2) as second:
        assert [(await anext(second)).body for _ in range(2)] == [b"first", b"prefetched"]
    await channel.delete_queue(name)
    await other.close()


async def test_a_cancelled_consumer_requeues_its_messages_when_the_broker_reads_again(
    harebell: Broker,
) -> None:
    async with aio.connect(harebell.url) as connection, aio.connect(harebell.url) as other:
        channel = await connection.channel()
        name = (await channel.declare_queue("", auto_delete=False)).name
        consumer = await channel.consume(name, prefetch=1).start()
        await asyncio.to_thread(harebell.block_publishers)
        try:
            held = channel.publish_nowait(b"held", routing_key=name)
            await connection.blocked.wait()
            async with asyncio.timeout(SECONDS):
                await consumer.cancel()
        finally:
            await asyncio.to_thread(harebell.unblock_publishers)
        await held
        async with (await other.channel()).consume(name) as second:
            assert (await anext(second)).body == b"held"
        await channel.delete_queue(name)


async def test_a_publish_to_a_broker_that_does_not_read_ends_with_its_timeout(
    broker: Broker,
) -> None:
    connection = blocking.connect(broker.url, call_timeout=SECONDS)
    channel = connection.channel()
    name = channel.declare_queue("", exclusive=True).name
    await asyncio.to_thread(broker.block_publishers)
    try:
        # More than the buffers between us and the broker can hold.
        connection._call_timeout = 1.0
        with pytest.raises(CallTimeout):
            channel.publish(bytes(25_000_000), routing_key=name)
        connection._call_timeout = SECONDS
        # A broker that was slow to read may say why only now.
        assert eventually(lambda: connection.blocked or connection.pump(0.05))
        assert connection.blocked
    finally:
        await asyncio.to_thread(broker.unblock_publishers)
    # What was half written is written to its end first.
    while connection.blocked:
        connection.pump(1.0)
    assert connection.is_open
    channel.purge_queue(name)
    connection.close()


def is_blocked(connection: Any) -> bool:
    """Whether the broker has said that it takes no publishes."""
    if isinstance(connection, blocking.Connection):
        return connection.blocked
    blocked: bool = connection.blocked.is_set()
    assert connection.unblocked.is_set() is not blocked
    return blocked


async def test_an_idle_connection_with_heartbeats_stays(broker: Broker, api: Api) -> None:
    connection = await api.connect(f"{broker.url}?heartbeat={BEAT_SECONDS}")
    assert connection.heartbeat == BEAT_SECONDS
    channel = await do(connection.channel())
    await pause(connection, IDLE_SECONDS)
    await do(channel.qos(1))


async def test_a_busy_program_is_kept_alive_by_its_heartbeat_thread(broker: Broker) -> None:
    url = f"{broker.url}?heartbeat={BEAT_SECONDS}"
    others = set(threading.enumerate())
    with blocking.connect(url, background_heartbeats=True) as connection:
        channel = connection.channel()
        await asyncio.sleep(IDLE_SECONDS)
        channel.qos(1)
    mine = set(threading.enumerate()) - others
    assert not any(thread.name == "harebell-heartbeat" for thread in mine)


async def test_a_busy_program_without_that_thread_is_dropped_and_told(broker: Broker) -> None:
    connection = blocking.connect(f"{broker.url}?heartbeat=3")
    channel = connection.channel()
    name = channel.declare_queue(unique(), exclusive=True).name
    with blocking.connect(broker.url) as watcher:
        await asyncio.to_thread(eventually, lambda: is_gone(watcher, name))
    with pytest.raises(ConnectionLost):
        _use_until_it_fails(channel)


def is_gone(watcher: blocking.Connection, name: str) -> bool:
    """Whether an exclusive queue has gone with its connection."""
    try:
        watcher.channel().declare_queue(name, passive=True)
    except NotFound:
        return True
    except ResourceLocked:
        return False
    raise AssertionError(f"queue {name} is not exclusive")


def _use_until_it_fails(channel: blocking.Channel) -> None:
    # The first writes after the broker has closed may still reach the socket.
    for _ in range(3):
        channel.qos(1)


async def test_a_broker_that_dies_is_a_lost_connection_everywhere(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    channel = await do(connection.channel())
    name = (await do(channel.declare_queue("", exclusive=True))).name
    consumer = channel.consume(name, timeout=SECONDS)
    if api.name == "asyncio":
        await consumer.start()
    await asyncio.to_thread(broker.kill)
    try:
        with pytest.raises(ConnectionLost):
            await take(consumer)
        with pytest.raises(ConnectionLost):
            await do(channel.publish(b"", routing_key=name))
        with pytest.raises(ConnectionLost):
            await do(channel.qos(1))
        with pytest.raises(ConnectionLost):
            await do(connection.channel())
        assert not connection.is_open
        await do(connection.close())
    finally:
        await asyncio.to_thread(broker.start)
