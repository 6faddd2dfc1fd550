"""Peers of 0-8 and 0-9, on both sites; see `tests.conformance.conftest`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.sites import MemorySite, Site
from tests.conformance.v08.peer import Peer8, Peer9

Connect = Callable[[], Peer8]


def _connector(site: Site, kind: type[Peer8]) -> Iterator[Connect]:
    peers: list[Peer8] = []

    def connect() -> Peer8:
        peers.append(kind(site, site.connect()))
        return peers[-1]

    yield connect
    for peer in peers:
        peer.done()


@pytest.fixture
def connect(site: Site) -> Iterator[Connect]:
    """Makes peers that have sent nothing yet."""
    yield from _connector(site, Peer8)


@pytest.fixture
def connect_memory(memory: MemorySite) -> Iterator[Connect]:
    """The same, in memory."""
    yield from _connector(memory, Peer8)


@pytest.fixture
def connect_0_9(site: Site) -> Iterator[Connect]:
    """The same for 0-9."""
    yield from _connector(site, Peer9)


@pytest.fixture(params=[Peer8, Peer9], ids=["0-8", "0-9"])
def connect_older(request: pytest.FixtureRequest, site: Site) -> Iterator[Connect]:
    """Peers of either version."""
    yield from _connector(site, request.param)


@pytest.fixture
def peer(connect: Connect) -> Peer8:
    """An open connection with channel 1 open."""
    return connect().open()


@pytest.fixture
def older(connect_older: Connect) -> Peer8:
    """The same, of either version."""
    return connect_older().open()


@pytest.fixture
def name() -> str:
    """A name that no other test has: the broker behind the socket is shared."""
    return f"t-{uuid.uuid4().hex[:12]}"
