"""Peers of 0-8 and 0-9, on both sites; see `tests.conformance.conftest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.conformance.conftest import delete_declared
from tests.conformance.peers import peers_of
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v08.contents import Connect08, Peer08
from tests.conformance.v08.peer import Peer8, Peer9

Connect = Callable[[], Peer8]


@pytest.fixture
def connect(site: Site) -> Iterator[Connect]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, Peer8)


@pytest.fixture
def connect_memory(memory: MemorySite) -> Iterator[Connect]:
    """The same, in memory."""
    yield from peers_of(memory, Peer8)


@pytest.fixture
def connect_0_9(site: Site) -> Iterator[Connect]:
    """The same for 0-9."""
    yield from peers_of(site, Peer9)


@pytest.fixture(params=[Peer8, Peer9], ids=["0-8", "0-9"])
def connect_older(request: pytest.FixtureRequest, site: Site) -> Iterator[Connect]:
    """Peers of either version."""
    yield from peers_of(site, request.param)


@pytest.fixture
def older(connect_older: Connect) -> Peer8:
    """The same, of either version."""
    return connect_older().open()


@pytest.fixture
def connect08(site: Site) -> Iterator[Connect08]:
    """Makes peers that stage files and send packets, and have sent nothing yet."""
    yield from peers_of(site, Peer08, partial(delete_declared, site))


@pytest.fixture
def connect08_memory(memory: MemorySite) -> Iterator[Connect08]:
    """The same, with a broker in memory whose clock the test moves."""
    yield from peers_of(memory, Peer08)
