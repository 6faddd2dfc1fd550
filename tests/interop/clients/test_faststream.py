"""FastStream: a service with typed handlers over queues of every kind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest
from faststream.rabbit import RabbitBroker

from tests.interop.clients.processes import Application
from tests.running import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

_MODULE = "tests.interop.clients.faststream_app"
_PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def running_service(
    shared_broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    """The service, which has to end by itself when it is asked to."""
    url = f"amqp://guest:guest@127.0.0.1:{shared_broker.port}/"
    directory = tmp_path_factory.mktemp("faststream")
    command = [sys.executable, "-m", _MODULE]
    service = Application(command, "FastStream app started successfully", directory, url)
    try:
        service.start()
        yield service
        assert service.stop() == 0
    finally:
        service.kill()


@pytest.fixture
def service(broker: RunningBroker, running_service: Application) -> Application:
    """The module's service; `broker` checks the broker's log after each test."""
    return running_service


def _with_client(broker: RunningBroker, act: Callable[[RabbitBroker], Awaitable[object]]) -> object:
    """Do something with a client of FastStream's own."""

    async def run() -> object:
        async with RabbitBroker(f"amqp://guest:guest@127.0.0.1:{broker.port}/") as client:
            return await asyncio.wait_for(act(client), _PATIENCE_SECONDS)

    return asyncio.run(run())


def test_a_request_is_checked_and_answered(broker: RunningBroker, service: Application) -> None:
    async def ask(client: RabbitBroker) -> object:
        body = {"item": "cup", "count": 21}
        answer = await client.request(body, "fs-order", timeout=_PATIENCE_SECONDS)
        return await answer.decode()

    assert _with_client(broker, ask) == {"cup": 42}


def test_the_result_of_one_handler_goes_on_to_the_next(
    broker: RunningBroker, service: Application
) -> None:
    async def send(client: RabbitBroker) -> None:
        for number in range(10):
            await client.publish(f"message {number}", "fs-in")

    _with_client(broker, send)
    assert service.wait_for_marks("passed", 10) == [f"MESSAGE {number}" for number in range(10)]


def test_topic_and_headers_exchanges_choose_the_handler(
    broker: RunningBroker, service: Application
) -> None:
    async def send(client: RabbitBroker) -> None:
        for key in ("sensor.a.cold", "sensor.a.b.warm", "sensor.a.warm"):
            await client.publish("read", exchange="fs-events", routing_key=key, mandatory=False)
        for colour in ("blue", "red"):
            await client.publish(
                colour, exchange="fs-headers", headers={"colour": colour}, mandatory=False
            )

    _with_client(broker, send)
    assert service.wait_for_marks("topic", 1) == ["sensor.a.warm read"]
    assert service.wait_for_marks("headers", 1) == ["red"]


def test_a_message_that_a_handler_rejects_goes_to_the_dead_letter_queue(
    broker: RunningBroker, service: Application
) -> None:
    async def send(client: RabbitBroker) -> None:
        for body in ("good", "bad", "better"):
            await client.publish(body, "fs-jobs", persist=True)

    _with_client(broker, send)
    assert service.wait_for_marks("dead", 1) == ["bad rejected fs-jobs 1"]
    assert service.wait_for_marks("jobs", 2) == ["good", "better"]


def test_a_quorum_queue_counts_how_often_a_message_came_back(
    broker: RunningBroker, service: Application
) -> None:
    async def send(client: RabbitBroker) -> None:
        await client.publish("again", "fs-quorum", persist=True)

    _with_client(broker, send)
    assert service.wait_for_marks("quorum", 3) == ["again 0", "again 1", "again 2"]


def test_a_stream_is_read_by_a_handler(broker: RunningBroker, service: Application) -> None:
    async def send(client: RabbitBroker) -> None:
        for number in range(25):
            await client.publish(str(number), "fs-stream", persist=True)

    _with_client(broker, send)
    assert service.wait_for_marks("stream", 25) == [str(number) for number in range(25)]
