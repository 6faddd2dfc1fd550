"""Fixtures of the conformance tests of AMQP 0-10: peers that are looked after."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.sites import MemorySite, Site
from tests.conformance.v010.raw import Peer010

Connect010 = Callable[[], Peer010]


def _connector(site: Site) -> Iterator[Connect010]:
    peers: list[Peer010] = []

    def connect() -> Peer010:
        peers.append(Peer010(site, site.connect()))
        return peers[-1]

    yield connect
    for peer in peers:
        peer.done()


@pytest.fixture
def connect010(site: Site) -> Iterator[Connect010]:
    """Makes peers that have sent nothing yet."""
    yield from _connector(site)


@pytest.fixture
def memory010(memory: MemorySite) -> Iterator[Connect010]:
    """The same, in memory."""
    yield from _connector(memory)


@pytest.fixture
def peer010(connect010: Connect010) -> Peer010:
    """An open connection with a session on channel 1."""
    return connect010().open().attach()
