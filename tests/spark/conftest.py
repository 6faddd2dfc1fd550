"""What the Spark tests share: a broker, a queue of their own, and one session for all.

Half of them call readers and writers as Spark does, without one. Those that start Spark, here or as
a process of its own, are marked `spark`: few of them run at a time, and little beside them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pyspark.sql import SparkSession

from harebell.spark.session import build_session
from tests.interop.rabbitmq import RabbitNode
from tests.running import running_broker
from tests.warming import warm_once

if TYPE_CHECKING:
    from tests.spark.cells import Site

_NUMBERS = itertools.count(1)
PATIENT = {"fetchTimeout": "300s"}
"""Options for tests that are not about how long a query waits for a broker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses the session is marked `spark`."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(autouse=True)
def no_java(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without the mark runs beside others: it finds no Java to start."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setenv("JAVA_HOME", "/no/java/without/the/mark/spark")


@pytest.fixture(scope="session")
def broker_url() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.address() + "/%2F"


@pytest.fixture(scope="module")
def rabbit() -> Iterator[str]:
    """The URL of a RabbitMQ node that the tests of one file share."""
    node = RabbitNode()
    try:
        node.start()
        yield node.url
    finally:
        node.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The brokers of a matrix of queries."""
    from tests.spark.cells import Site

    with running_broker() as elsewhere:
        made = Site(tmp_path, elsewhere)
        yield made
        made.remove()


@pytest.fixture
def channel(broker_url: str) -> Iterator[Any]:
    """A pika channel in confirm mode: the messages are published by a client that is not ours.

    It may say nothing for as long as a JVM takes.
    """
    connection = pika.BlockingConnection(pika.URLParameters(f"{broker_url}?heartbeat=0"))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


@pytest.fixture
def queue(channel: Any) -> Iterator[str]:
    """A durable queue that is deleted afterwards."""
    name = f"test.{next(_NUMBERS)}"
    channel.queue_declare(name, durable=True)
    yield name
    channel.connection.channel().queue_delete(name)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests: starting it is what takes time."""
    warm_once()
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = build_session(
        "tests", cores=2, short_lived=True, settings={"spark.sql.warehouse.dir": str(warehouse)}
    )
    yield session
    session.stop()
