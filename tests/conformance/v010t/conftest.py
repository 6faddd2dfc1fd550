"""Peers of transitional 0-10, on both sites; see `tests.conformance.conftest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.peers import peers_of
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


@pytest.fixture
def connect(site: Site) -> Iterator[Connect]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, Peer)


@pytest.fixture
def connect_memory(memory: MemorySite) -> Iterator[Connect]:
    """The same, in memory."""
    yield from peers_of(memory, Peer)
