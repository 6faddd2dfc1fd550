"""Requests and replies in both APIs, with real brokers and a server of pika's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pika
import pytest

from harebell.client import blocking
from harebell.client.errors import CallTimeout, ConnectionLost, NotFound, PublishReturned
from tests.interop.client.apis import Api, do, unique
from tests.interop.client.brokers import Broker
from tests.interop.matrix import SPOKEN
from tests.patience import SECONDS, reached

pytestmark = pytest.mark.asyncio
SILENT = b"say nothing"


class Server(threading.Thread):
    """Answers requests with their text in capitals, but not all of them."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__(daemon=True)
        self._url, self._queue = url, queue
        self.ready, self.stop = threading.Event(), threading.Event()
        self.asked: list[bytes] = []

    def run(self) -> None:
        connection = pika.BlockingConnection(pika.URLParameters(self._url))
        channel = connection.channel()
        channel.queue_declare(self._queue, auto_delete=True)
        channel.basic_consume(self._queue, self._answer, auto_ack=True)
        self.ready.set()
        while not self.stop.is_set():
            connection.process_data_events(0.05)
        connection.close()

    def _answer(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.asked.append(body)
        if body != SILENT:
            told = pika.BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish("", properties.reply_to, body.upper(), told)


@pytest.fixture
def serve() -> Iterator[Callable[[Broker], Server]]:
    """Starts a server with a queue of its own."""
    started: list[Server] = []

    def start(broker: Broker) -> Server:
        server = Server(broker.url, unique())
        server.start()
        started.append(server)
        assert server.ready.wait(SECONDS)
        return server

    yield start
    for server in started:
        server.stop.set()
        server.join(SECONDS)


async def test_a_request_is_answered(
    broker: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    server = serve(broker)
    connection = await api.connect(broker.url)
    requester = connection.requester()
    reply = await do(
        requester.call(b"hello", routing_key=server._queue, timeout=SECONDS, type="greeting")
    )
    assert reply.body == b"HELLO"
    assert len(requester.requests) == 0
    await do(requester.close())


async def test_a_request_without_a_queue_fails_at_once(broker: Broker, api: Api) -> None:
    connection = await api.connect(broker.url)
    requester = connection.requester()
    with pytest.raises(PublishReturned, match="NO_ROUTE"):
        await do(requester.call(b"x", routing_key=unique("nobody"), timeout=SECONDS))
    assert len(requester.requests) == 0


async def test_a_request_to_an_exchange_that_is_not_there_fails_and_the_next_one_works(
    broker: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    server = serve(broker)
    connection = await api.connect(broker.url)
    requester = connection.requester()
    with pytest.raises(NotFound):
        await do(requester.call(b"x", exchange=unique("none"), routing_key="", timeout=SECONDS))
    reply = await do(requester.call(b"next", routing_key=server._queue, timeout=SECONDS))
    assert reply.body == b"NEXT"


async def test_a_request_that_nobody_answers_times_out_and_a_late_reply_is_dropped(
    broker: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    server = serve(broker)
    connection = await api.connect(broker.url)
    requester = connection.requester()
    with pytest.raises(CallTimeout, match=rf"no reply from queue '{server._queue}' in 0\.2 s"):
        await do(requester.call(SILENT, routing_key=server._queue, timeout=0.2))
    # On a busy machine the reply may be there as soon as the request is sent.
    with suppress(CallTimeout):
        await do(requester.call(b"late", routing_key=server._queue, timeout=0.0))
    reply = await do(requester.call(b"in time", routing_key=server._queue, timeout=SECONDS))
    assert reply.body == b"IN TIME"
    assert len(requester.requests) == 0


async def test_a_request_without_time_for_its_reply_is_sent_all_the_same(
    broker: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    server = serve(broker)
    connection = await api.connect(broker.url)
    requester = connection.requester()
    with pytest.raises(CallTimeout):
        await do(requester.call(SILENT, routing_key=server._queue, timeout=0.0))
    await reached(lambda: server.asked == [SILENT])


async def test_replies_find_their_requests_in_whatever_order(
    broker: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    server = serve(broker)
    connection = await api.connect(broker.url)
    requester = connection.requester()
    questions = [b"q%d" % number for number in range(50)]
    if isinstance(connection, blocking.Connection):
        pending = [requester.send(one, routing_key=server._queue) for one in questions]
        replies = [one.wait(SECONDS) for one in reversed(pending)][::-1]
    else:
        replies = await asyncio.gather(
            *(requester.call(one, routing_key=server._queue, timeout=SECONDS) for one in questions)
        )
    assert [reply.body for reply in replies] == [one.upper() for one in questions]


async def test_a_request_whose_connection_is_lost_fails_and_the_next_one_is_answered(
    harebell: Broker, api: Api, serve: Callable[[Broker], Server]
) -> None:
    connection = await api.connect(harebell.url, recover=blocking.Recovery(0.1, 0.5, resend=True))
    requester = connection.requester()
    channel = await do(connection.channel())
    queue = (await do(channel.declare_queue("", exclusive=True))).name

    def restart() -> None:
        harebell.kill()
        harebell.start()

    killer = threading.Thread(target=restart, daemon=True)
    first = asyncio.to_thread(killer.start)
    if isinstance(connection, blocking.Connection):
        pending = requester.send(b"x", routing_key=queue)
        await first
        with pytest.raises(ConnectionLost):
            pending.wait(SECONDS)
    else:
        call = asyncio.ensure_future(requester.call(b"x", routing_key=queue, timeout=SECONDS))
        await asyncio.sleep(0)
        await first
        with pytest.raises(ConnectionLost):
            await call
    await asyncio.to_thread(killer.join, SECONDS)
    server = await asyncio.to_thread(serve, harebell)
    reply = await do(requester.call(b"again", routing_key=server._queue, timeout=SECONDS))
    assert reply.body == b"AGAIN"


@pytest.mark.parametrize("version", SPOKEN)
async def test_requests_are_answered_in_every_version(
    harebell: Broker, api: Api, serve: Callable[[Broker], Server], version: str
) -> None:
    server = serve(harebell)
    connection = await api.connect(harebell.url, version=version)
    requester = connection.requester()
    reply = await do(requester.call(b"hello", routing_key=server._queue, timeout=SECONDS))
    assert reply.body == b"HELLO"
    if version != "0-10t":
        with pytest.raises(PublishReturned):
            await do(requester.call(b"x", routing_key=unique("nobody"), timeout=SECONDS))


async def test_a_request_chooses_its_correlation_id_itself(harebell: Broker, api: Api) -> None:
    connection = await api.connect(harebell.url)
    requester = connection.requester()
    with pytest.raises(TypeError, match="correlation_id is chosen by the request itself"):
        await do(requester.call(b"x", routing_key="q", correlation_id="mine"))
