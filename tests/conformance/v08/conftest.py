"""Peers of 0-8 that stage files and send packets; see `contents`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harebell.wire.v09.methods import ExchangeDelete, QueueDelete
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite, Site, SocketSite
from tests.conformance.v08.contents import Connect08, Peer08


def _connector(site: Site) -> Iterator[Connect08]:
    peers: list[Peer08] = []

    def connect() -> Peer08:
        peers.append(Peer08(site, site.connect()))
        return peers[-1]

    yield connect
    for each in peers:
        each.done()
    if isinstance(site, SocketSite):
        names = set().union(*(each.declared for each in peers))
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
def connect08(site: Site) -> Iterator[Connect08]:
    """Makes peers of 0-8 that have sent nothing yet."""
    yield from _connector(site)


@pytest.fixture
def connect08_memory(memory: MemorySite) -> Iterator[Connect08]:
    """The same, with a broker in memory whose clock the test moves."""
    yield from _connector(memory)


@pytest.fixture
def peer08(connect08: Connect08) -> Peer08:
    """An open connection with channel 1 open."""
    return connect08().open()


@pytest.fixture
def other08(connect08: Connect08) -> Peer08:
    """Another one."""
    return connect08().open()
