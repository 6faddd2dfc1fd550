"""The pytest plugin: `harebell_broker` and `harebell_virtual`.

    @pytest.mark.harebell(heartbeat=5)
    def test_orders_arrive(harebell_broker):
        connection = pika.BlockingConnection(pika.URLParameters(harebell_broker.url))

The arguments of the mark are keys of docs/reference/configuration.md. The log of a broker is shown
with a test that fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harebell.testing.running import RunningBroker
    from harebell.testing.spares import Spares
    from harebell.testing.virtual import VirtualBroker

MARK = "harebell"
_LOG = pytest.StashKey[list["RunningBroker | VirtualBroker"]]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(**settings): settings of the brokers of this test, such as heartbeat=0",
    )


@pytest.fixture(scope="session")
def _harebell_spares() -> Iterator[Spares]:
    """Brokers that start before a test asks for them."""
    from harebell.testing.spares import Spares

    spares = Spares()
    yield spares
    spares.close()


@pytest.fixture
def harebell_broker(
    request: pytest.FixtureRequest, _harebell_spares: Spares
) -> Iterator[RunningBroker]:
    """A broker in a process of its own, new for each test."""
    with _harebell_spares.take(_settings(request)) as broker:
        request.node.stash.setdefault(_LOG, []).append(broker)
        yield broker


@pytest.fixture
def harebell_virtual(request: pytest.FixtureRequest) -> Iterator[VirtualBroker]:
    """A broker in this process, whose time passes only in its method `advance`."""
    from harebell.testing.virtual import VirtualBroker

    with VirtualBroker(**_settings(request)) as broker:
        request.node.stash.setdefault(_LOG, []).append(broker)
        yield broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of the brokers to the report of a test that failed."""
    report = yield
    if report.failed:
        for broker in item.stash.get(_LOG, []):
            report.sections.append(("log of harebell", broker.log))
    return report


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the settings of the marks; the ones nearest to the test win."""
    settings: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(MARK))):
        settings |= mark.kwargs
    return settings
