"""What the tests with other people's clients share: one broker and names that never clash.

The broker is the installed command in a process of its own, so that nothing here can reach into it:
what a client sees over the socket is all there is. After every test its log is read, because an
error that the broker survives would otherwise stay unseen.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.brokers import faults_in
from tests.running import RunningBroker, running_broker

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

Names = Callable[[str], str]

_CLIENTS = (
    *(
        "aio_pika",
        "amqp",
        "amqpstorm",
        "azure",
        "celery",
        "dramatiq",
        "faststream",
        "kombu",
        "pika",
    ),
    *("proton", "rabbitmq_amqp_python_client"),
)
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interop: runs a client that others wrote")
    missing = [name for name in _CLIENTS if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(
            f"the interop tests need {', '.join(missing)}: pip install -e '.[interop]'"
        )


@pytest.fixture(scope="session")
def shared_broker() -> Iterator[RunningBroker]:
    """The one broker of the session; it must end by itself when asked to."""
    with running_broker() as started:
        yield started
        assert started.process.poll() is None, f"the broker is gone:\n{started.log}"
        assert started.stop() == 0
        assert faults_in(started.log) == []


@pytest.fixture
def broker(shared_broker: RunningBroker) -> Iterator[RunningBroker]:
    """The session's broker, checked after the test: it lives and reports no mistake of its own."""
    seen = len(shared_broker.log)
    yield shared_broker
    assert shared_broker.process.poll() is None, f"the broker is gone:\n{shared_broker.log}"
    assert faults_in(shared_broker.log[seen:]) == []


@pytest.fixture
def name() -> Names:
    """Makes names for queues and exchanges that no other test uses."""
    return lambda kind: f"{kind}-{next(_numbers)}"


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    """A channel of pika, whose publishes are confirmed."""
    from tests.interop.clients.pikas import connected

    with connected(broker) as connection:
        opened = connection.channel()
        opened.confirm_delivery()
        yield opened
