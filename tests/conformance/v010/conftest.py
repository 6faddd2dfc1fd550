"""Fixtures of the conformance tests of AMQP 0-10: peers that are looked after."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harebell.wire.v010.commands import QueueDeclare
from tests.conformance.peers import peers_of
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v010.raw import Peer010
from tests.conformance.v010.talk import Talk, begin

Connect010 = Callable[[], Peer010]


@pytest.fixture
def connect010(site: Site) -> Iterator[Connect010]:
    """Makes peers that have sent nothing yet."""
    yield from peers_of(site, Peer010)


@pytest.fixture
def memory010(memory: MemorySite) -> Iterator[Connect010]:
    """The same, in memory."""
    yield from peers_of(memory, Peer010)


@pytest.fixture
def peer010(connect010: Connect010) -> Peer010:
    """An open connection with a session on channel 1."""
    return connect010().open().attach()


@pytest.fixture
def talk(connect010: Connect010) -> Talk:
    """A session with the queue `q`, which is its own."""
    talk = begin(connect010())[0]
    talk.do(QueueDeclare("q", exclusive=True, auto_delete=True))
    return talk
