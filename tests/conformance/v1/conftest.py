"""Fixtures of the conformance tests of AMQP 1.0: peers that are looked after."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harebell.wire.v09.methods import QueueDeclare, QueueDeclareOk
from tests.conformance.peers import peers_of
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v1.raw import Peer1

Connect1 = Callable[[], Peer1]


@pytest.fixture
def connect1(site: Site) -> Iterator[Connect1]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, Peer1)


@pytest.fixture
def memory1(memory: MemorySite) -> Iterator[Connect1]:
    """The same, in memory."""
    yield from peers_of(memory, Peer1)


@pytest.fixture
def peer1(connect1: Connect1) -> Peer1:
    """An open connection with a session on channel 0."""
    return connect1().open().begin()


@pytest.fixture
def queue(peer: Peer, name: str) -> str:
    """The name of a queue that another version has declared."""
    peer.send(QueueDeclare(queue=name, durable=True))
    peer.expect(QueueDeclareOk)
    return name
