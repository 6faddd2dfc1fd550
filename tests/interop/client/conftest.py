"""Brokers and APIs for the tests of the client: each test runs for every pair of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.interop.client.apis import Api
from tests.interop.client.brokers import Broker, make_broker
from tests.interop.client.certificates import make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority, a server certificate and a stranger."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def start_broker(certificates: Path) -> Iterator[Callable[[str], Broker]]:
    """Starts each broker when it is first asked for; all of them end with the session."""
    started: dict[str, Broker] = {}

    def start(name: str) -> Broker:
        if name not in started:
            broker = make_broker(name, certificates)
            broker.start()
            started[name] = broker
        return started[name]

    yield start
    for broker in started.values():
        broker.stop()


@pytest.fixture(params=["harebell", "rabbitmq"])
def broker(request: pytest.FixtureRequest, start_broker: Callable[[str], Broker]) -> Broker:
    """A running broker: the test runs against each kind."""
    return start_broker(request.param)


@pytest.fixture
def harebell(start_broker: Callable[[str], Broker]) -> Broker:
    """A running Harebell, for what takes too long to repeat with the other."""
    return start_broker("harebell")


@pytest.fixture
def rabbitmq(start_broker: Callable[[str], Broker]) -> Broker:
    """A running RabbitMQ, for what only it can do so far."""
    return start_broker("rabbitmq")


@pytest_asyncio.fixture(params=["asyncio", "blocking"])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """One of the client's APIs; its connections are closed after the test."""
    chosen = Api(request.param)
    yield chosen
    await chosen.close()
