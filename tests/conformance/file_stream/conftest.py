"""Peers of both versions that stage files and send packets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.conformance.conftest import delete_declared
from tests.conformance.file_stream.versions import Peer10t
from tests.conformance.peers import peers_of
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v08.contents import Connect08, Peer08


@pytest.fixture(params=[Peer08, Peer10t], ids=["0-8", "0-10t"])
def peer_type(request: pytest.FixtureRequest) -> type[Peer08]:
    """The peer of either version."""
    found: type[Peer08] = request.param
    return found


@pytest.fixture
def connect08(site: Site, peer_type: type[Peer08]) -> Iterator[Connect08]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, peer_type, partial(delete_declared, site))


@pytest.fixture
def connect08_memory(memory: MemorySite, peer_type: type[Peer08]) -> Iterator[Connect08]:
    """The same, with a broker in memory whose clock the test moves."""
    yield from peers_of(memory, peer_type)
