"""The blocking API with a heartbeat thread that is slow: nothing is lost, in any version.

The heartbeat is held inside its system call until the program has something to write. That is what
a busy machine does now and then; here it happens every time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from pathlib import Path

import pytest

from harebell.client import aio, blocking
from harebell.client.blocking import transport as blocking_link
from harebell.client.blocking.shared_socket import SharedSocket
from harebell.client.errors import ConcurrentUse
from harebell.client.url import URL
from harebell.wire.v09.frames import FrameSink
from tests.interop.client.apis import unique
from tests.interop.client.brokers import Broker
from tests.interop.matrix import SPOKEN
from tests.patience import SECONDS

HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
HELD_SECONDS = 0.1
HEARTBEAT_SECONDS = 600
"""No broker closes a connection whose heartbeats are late on a busy machine."""
PAUSE_SECONDS = 0.5
"""What the thread waits between two heartbeats."""
MESSAGES = 12
READS = 5


class Slow(socket.socket):
    """A socket whose heartbeats stay in their system call for a while."""

    beating: threading.Event

    def send(self, data: memoryview, flags: int = 0) -> int:  # type: ignore[override]
        sent = super().send(data, flags)
        if threading.current_thread().name == "harebell-heartbeat":
            self.beating.set()
            threading.Event().wait(HELD_SECONDS)
        return sent


@pytest.fixture
def beating(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set whenever a heartbeat is being sent, which takes long."""
    event = threading.Event()
    connect = blocking_link._connect
    monkeypatch.setattr(blocking_link, "_BEATS", HEARTBEAT_SECONDS / PAUSE_SECONDS)

    def connect_slowly(url: URL, context: None) -> socket.socket:
        slow = Slow(fileno=connect(url, context).detach())
        slow.beating = event
        return slow

    monkeypatch.setattr(blocking_link, "_connect", connect_slowly)
    return event


def wait_for(beating: threading.Event) -> None:
    """Wait for the beginning of the next heartbeat."""
    beating.clear()
    assert beating.wait(SECONDS)


def test_publishes_without_confirms_beside_slow_heartbeats_all_arrive(
    broker: Broker, beating: threading.Event
) -> None:
    url = f"{broker.url}?heartbeat={HEARTBEAT_SECONDS}"
    with blocking.connect(url, background_heartbeats=True) as connection:
        channel = connection.channel(confirms=False)
        queue = channel.declare_queue(unique(), exclusive=True).name
        for number in range(MESSAGES):
            wait_for(beating)
            channel.publish(b"%d" % number, routing_key=queue)
        consumer = channel.consume(queue, no_ack=True, timeout=SECONDS)
        bodies = [next(consumer).body for _ in range(MESSAGES)]
        assert bodies == [b"%d" % number for number in range(MESSAGES)]
        assert channel.get(queue) is None


def test_every_bulk_read_beside_slow_heartbeats_is_answered(
    harebell: Broker, beating: threading.Event
) -> None:
    url = f"{harebell.url}?heartbeat={HEARTBEAT_SECONDS}"
    with blocking.connect(url, background_heartbeats=True, call_timeout=SECONDS) as connection:
        channel = connection.channel()
        queue = channel.declare_queue(
            unique(), durable=True, arguments={"x-queue-type": "stream"}
        ).name
        channel.publish_many([b"row"] * 100, routing_key=queue)
        for _ in range(READS):
            wait_for(beating)
            assert channel.read_arrow(queue, 0, 100, columns=["value"]).rows == 100
        channel.delete_queue(queue)


@pytest.mark.parametrize("version", SPOKEN)
def test_heartbeats_of_the_thread_are_those_of_the_version(
    harebell: Broker, beating: threading.Event, version: str
) -> None:
    url = f"{harebell.url}?heartbeat={HEARTBEAT_SECONDS}"
    with blocking.connect(url, version=version, background_heartbeats=True) as connection:
        channel = connection.channel()
        for _ in range(4):
            wait_for(beating)
        queue = channel.declare_queue(unique(), exclusive=True).name
        channel.publish(b"still here", routing_key=queue)
        message = channel.get(queue, no_ack=True)
        assert message is not None
        assert message.body == b"still here"


def test_a_heartbeat_that_tls_could_not_write_is_finished_first(certificates: Path) -> None:
    ours, theirs = socket.socketpair()
    trust = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    trust.check_hostname = False
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    accepted: list[ssl.SSLSocket] = []
    thread = threading.Thread(
        target=lambda: accepted.append(server.wrap_socket(theirs, server_side=True)), daemon=True
    )
    thread.start()
    encrypted = trust.wrap_socket(ours)
    thread.join(SECONDS)
    shared = SharedSocket(encrypted, HEARTBEAT)
    while not shared._unsent:
        # The peer reads nothing, until a heartbeat does not fit the socket any more.
        shared.beat()
    waiting = [b"data that comes after it"]
    assert shared.write(lambda: waiting.pop() if waiting else b"")
    received = b""
    while not received.endswith(b"after it"):
        received += accepted[0].recv(1 << 16)
        shared.write(lambda: waiting.pop() if waiting else b"")
    assert received.replace(HEARTBEAT, b"") == b"data that comes after it"
    shared.close()
    accepted[0].close()


class Staying(FrameSink):
    """A sink that keeps the thread that reads until the test lets it go."""

    def __init__(self) -> None:
        self.inside, self.go = threading.Event(), threading.Event()

    def deliver(self, *delivery: object) -> int:  # type: ignore[override]
        self.inside.set()
        assert self.go.wait(SECONDS)
        return 0


def test_a_blocking_connection_that_another_thread_uses_says_so(harebell: Broker) -> None:
    with blocking.connect(harebell.url) as connection:
        channel = connection.channel()
        queue = channel.declare_queue(unique(), exclusive=True).name
        sink = Staying()
        channel.consume_into(sink, queue, no_ack=True)
        channel.publish_nowait(b"x", routing_key=queue)

        def read() -> None:
            while not sink.inside.is_set():
                connection.pump(SECONDS)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert sink.inside.wait(SECONDS)
        with pytest.raises(ConcurrentUse, match="belongs to one thread at a time"):
            channel.publish(b"not from here", routing_key=queue)
        with pytest.raises(ConcurrentUse, match="belongs to one thread at a time"):
            connection.flush()
        sink.go.set()
        thread.join(SECONDS)
        channel.qos(1)


def test_an_asyncio_connection_refuses_another_thread(harebell: Broker) -> None:
    async def work() -> None:
        async with aio.connect(harebell.url) as connection:
            channel = await connection.channel()
            queue = (await channel.declare_queue(unique(), exclusive=True)).name

            def elsewhere() -> None:
                for use in (
                    lambda: channel.publish_nowait(b"x", routing_key=queue),
                    lambda: asyncio.run(channel.publish(b"x", routing_key=queue)),
                    lambda: asyncio.run(channel.purge_queue(queue)),
                ):
                    with pytest.raises(ConcurrentUse, match="run_coroutine_threadsafe"):
                        use()
                publish = channel.publish(b"y", routing_key=queue)
                asyncio.run_coroutine_threadsafe(publish, loop).result(SECONDS)

            loop = asyncio.get_running_loop()
            await asyncio.to_thread(elsewhere)
            message = await channel.get(queue, no_ack=True)
            assert message is not None
            assert (message.body, message.message_count) == (b"y", 0)

    asyncio.run(work())


def test_a_consumer_that_another_thread_collects_ends_its_subscription(harebell: Broker) -> None:
    async def work() -> None:
        async with aio.connect(harebell.url) as connection:
            channel = await connection.channel()
            queue = (await channel.declare_queue(unique(), exclusive=True)).name
            dropped = [await channel.consume(queue).start()]
            await asyncio.to_thread(dropped.clear)
            await channel.qos(1)
            assert (await channel.declare_queue(queue, passive=True)).consumer_count == 0

    asyncio.run(work())
    with blocking.connect(harebell.url) as connection:
        channel = connection.channel()
        queue = channel.declare_queue(unique(), exclusive=True).name
        dropped = [channel.consume(queue)]
        thread = threading.Thread(target=dropped.clear, daemon=True)
        thread.start()
        thread.join(SECONDS)
        channel.qos(1)
        assert channel.declare_queue(queue, passive=True).consumer_count == 0
