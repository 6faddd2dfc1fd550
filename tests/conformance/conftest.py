"""Fixtures of the conformance tests: the broker on both sites, and peers that are looked after.

A test that takes `site` or `peer` runs twice, over a real socket to a broker process and in memory;
one that takes `memory` runs in memory only, because it moves the clock or looks at the log.
Uncompiled all run in memory: what is behind a socket has tests of its own (`tests/unit/server`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from harebell.base import impl
from harebell.wire.v09.methods import ExchangeDelete, QueueDelete
from tests.conformance.peers import peers_of, sites_in
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite, Site, SocketSite

Connect = Callable[[], Peer]
StartSite = Callable[[], SocketSite]


@pytest.fixture(scope="session")
def broker_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SocketSite]:
    """One broker process for all tests that want a socket."""
    site = SocketSite(tmp_path_factory.mktemp("broker"))
    yield site
    site.close()


@pytest.fixture(params=["memory", "socket"] if impl.chosen() == impl.NATIVE else ["memory"])
def site(request: pytest.FixtureRequest) -> Site:
    """The broker under test."""
    if request.param == "memory":
        return MemorySite()
    broker: SocketSite = request.getfixturevalue("broker_process")
    return broker


@pytest.fixture
def start_site(tmp_path: Path) -> Iterator[StartSite]:
    """Starts brokers on the same data, one after the other; none is left if the test fails."""
    yield from sites_in(tmp_path)


@pytest.fixture
def memory() -> MemorySite:
    """A broker in memory, whose clock and log the test holds."""
    return MemorySite()


def delete_declared(site: Site, peers: Sequence[Peer]) -> None:
    """Delete what peers have declared on a broker that other tests share."""
    if isinstance(site, SocketSite):
        _delete(site, set().union(*(peer.declared for peer in peers)))


def _delete(site: SocketSite, names: set[tuple[str, str]]) -> None:
    """Leave the shared broker as it was found."""
    if names:
        cleaner = Peer(site, site.connect()).open()
        for kind, name in sorted(names):
            cleaner.send(
                QueueDelete(queue=name, nowait=True)
                if kind == "queue"
                else ExchangeDelete(exchange=name, nowait=True)
            )
        cleaner.close()
        cleaner.done()


@pytest.fixture
def connect(site: Site) -> Iterator[Connect]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, Peer, partial(delete_declared, site))


@pytest.fixture
def connect_memory(memory: MemorySite) -> Iterator[Connect]:
    """The same, in memory."""
    yield from peers_of(memory, Peer)


@pytest.fixture
def peer(connect: Connect) -> Peer:
    """An open connection with channel 1 open; `connect` of the directory has its version."""
    return connect().open()


@pytest.fixture
def memory_peer(connect_memory: Connect) -> Peer:
    """The same, in memory."""
    return connect_memory().open()


@pytest.fixture
def peer08(connect08: Connect) -> Peer:
    """A peer that stages files and sends packets, with channel 1 open."""
    return connect08().open()


@pytest.fixture
def other08(connect08: Connect) -> Peer:
    """Another one."""
    return connect08().open()


@pytest.fixture
def name() -> str:
    """A name that no other test has: the broker behind the socket is shared."""
    return f"t-{uuid.uuid4().hex[:12]}"
