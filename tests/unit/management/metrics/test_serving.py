"""The metrics port of a running broker: which one it is, and what a busy one does."""

from __future__ import annotations

import socket

import pytest

from harebell.config import Config
from harebell.management.metrics.serving import port_of
from harebell.server.limits import METRICS_PORT
from tests.interop.prometheus import fetched
from tests.ports import free_port
from tests.running import DidNotStart, RunningBroker, running_broker


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, METRICS_PORT),
        ({"port": 0}, 0),
        ({"metrics_port": 0}, 0),
        ({"port": 0, "metrics_port": 9_000}, 9_000),
    ],
)
def test_the_port_is_that_of_rabbitmq_unless_another_is_set(
    settings: dict[str, int], expected: int
) -> None:
    assert port_of(Config(**settings)) == expected


def test_a_busy_port_ends_the_start_and_is_named_by_its_key() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(DidNotStart, match=f"metrics_port: 127.0.0.1:{port} is in use"):
            RunningBroker("--metrics-port", str(port))


def test_sums_become_single_objects_where_that_is_configured() -> None:
    port = free_port()
    with running_broker("--metrics-port", str(port), "--metrics-per-object", "true") as broker:
        assert f"listening on http://127.0.0.1:{port}" in broker.log
        _, _, text = fetched(f"http://127.0.0.1:{port}/metrics")
    assert 'rabbitmq_endpoint="per-object"' in text
