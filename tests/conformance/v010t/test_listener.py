"""A listener of its own for the transitional 0-10, whose header is that of the final one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.sites import Site, SocketWire
from tests.conformance.v010t.peer import HEADER_0_10, HEADER_PREVIEW, Peer
from tests.running import DidNotStart, RunningBroker, running_broker

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """A broker with both listeners."""
    with running_broker("--listen", "amqp-0-10t://127.0.0.1:0") as running:
        yield running


def transitional_port(broker: RunningBroker) -> int:
    """The port of the listener for the transitional 0-10."""
    return int(broker.address("amqp-0-10t").rpartition(":")[2])


def wired(broker: RunningBroker, port: int) -> Peer:
    """A peer on a port of the broker."""
    site: Site = broker  # type: ignore[assignment]
    return Peer(site, SocketWire(port))


def test_on_its_listener_the_header_of_0_10_means_the_transitional_one(broker: RunningBroker):
    peer = wired(broker, transitional_port(broker)).open(header=HEADER_0_10)
    assert peer.queue("q") == "q"
    peer.close()


def test_its_own_number_is_understood_on_every_listener(broker: RunningBroker):
    for port in (broker.port, transitional_port(broker)):
        peer = wired(broker, port).open(header=HEADER_PREVIEW)
        peer.ask(m.QueueDeclare("q"))
        peer.close()


def test_other_versions_are_spoken_on_its_listener_too(broker: RunningBroker):
    peer = wired(broker, transitional_port(broker))
    start = peer.greet(HEADER_0_9_1)
    assert (start.version_major, start.version_minor) == (0, 9)
    peer.drop()


def test_the_broker_says_where_it_listens(broker: RunningBroker):
    port = transitional_port(broker)
    assert f"listening on amqp-0-10t://127.0.0.1:{port}" in broker.log


def test_a_listener_that_cannot_be_had_gets_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(DidNotStart, match=f"127.0.0.1:{port} is in use already"),
            running_broker("--listen", f"amqp-0-10t://127.0.0.1:{port}"),
        ):
            pass
