"""connection.open of a vhost that another broker has, and the handshake that is replayed there."""

from __future__ import annotations

import pytest

from harebell.front.arrival import Arrival
from harebell.front.common.handing_over import may_be_handed_over
from harebell.front.common.peer import Peer
from harebell.wire.v09 import methods as m
from harebell.wire.v09.states import ConnectionState
from tests.conformance.sites import MemorySite, MemoryWire
from tests.unit.server.listening import HEADER, frame

LOGIN = frame(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
TUNED = frame(m.ConnectionTuneOk(0, 0, 0))


def opening(vhost: str) -> bytes:
    return frame(m.ConnectionOpen(vhost))


@pytest.fixture
def site() -> MemorySite:
    return MemorySite(elsewhere=lambda name: name == "far")


def replayed(site: MemorySite) -> MemoryWire:
    peer = Peer("127.0.0.1", 50_000, replayed=True)
    about = (site.broker, site.users, site.registry, site.settings, peer, site.now)
    return MemoryWire(site, Arrival(*about))


def test_a_connection_for_another_broker_ends_without_a_word(site: MemorySite) -> None:
    wire = site.connect("127.0.0.1")
    wire.write(HEADER)
    wire.write(LOGIN)
    wire.write(TUNED)
    wire.arrived.clear()
    assert may_be_handed_over(wire.connection)
    # What follows at once is for the other broker, too.
    wire.write(opening("far") + frame(m.ChannelOpen(), 1))
    connection = wire.connection
    assert connection.handed_over == "far"
    assert may_be_handed_over(connection)
    assert connection.finished
    assert not wire.arrived
    assert len(site.registry.pending_logins) == 0
    assert len(site.registry.handshake_throttle) == 0
    assert site.broker.churn.connection_created == 0
    connection.eof()
    assert connection not in site.registry.connections
    assert site.broker.churn.connection_closed == 0
    assert not any(level in ("warning", "error") for level, _ in site.log)
    assert site.logged("user 'guest' is passed on to the owner of vhost 'far'")


@pytest.mark.parametrize("vhost", ["/", "nowhere"])
def test_other_vhosts_are_answered_here(site: MemorySite, vhost: str) -> None:
    wire = site.connect("127.0.0.1")
    wire.write(HEADER + LOGIN + TUNED + opening(vhost))
    assert wire.connection.handed_over == ""
    assert not may_be_handed_over(wire.connection)
    assert (wire.connection.state is ConnectionState.OPEN) is (vhost == "/")


def test_a_replayed_handshake_is_answered_from_connection_open(site: MemorySite) -> None:
    wire = replayed(site)
    wire.write(HEADER)
    wire.write(LOGIN)
    wire.write(TUNED)
    assert not wire.arrived
    wire.write(opening("/") + frame(m.ChannelOpen(), 1))
    assert wire.read(0) == frame(m.ConnectionOpenOk()) + frame(m.ChannelOpenOk(), 1)


def test_a_replayed_client_is_not_handed_over_again(site: MemorySite) -> None:
    wire = replayed(site)
    wire.write(HEADER + LOGIN + TUNED + opening("far"))
    assert wire.connection.handed_over == ""
    close = m.ConnectionClose(530, "NOT_ALLOWED - vhost far not found", 10, 40)
    assert wire.read(0) == frame(close)
