"""Logging in to the versions whose mechanisms have one response: what is offered, and who gets in.

PLAIN and AMQPLAIN are in `test_connection`, EXTERNAL in `v010/test_external`, for it needs TLS.
"""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer as Transitional
from tests.conformance.v08.peer import Peer8, Peer9

AnyPeer = Peer | Transitional
PEERS = pytest.mark.parametrize("kind", [Peer, Peer8, Peer9, Transitional])
REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism ANONYMOUS. For details "
    "see the broker logfile."
)


def start_ok(mechanism: str, response: bytes = b"", **capabilities: bool) -> m.ConnectionStartOk:
    table = {"capabilities": capabilities} if capabilities else {}
    return m.ConnectionStartOk(table, mechanism, response, "en_US")


def connected(kind: type[AnyPeer], **settings: Any) -> tuple[MemorySite, AnyPeer]:
    site = MemorySite(**settings)
    return site, kind(site, site.connect())


@PEERS
def test_anonymous_clients_are_the_user_that_the_settings_name(kind: type[AnyPeer]) -> None:
    site, peer = connected(kind, anonymous_user="guest")
    assert peer.greet().mechanisms == b"PLAIN AMQPLAIN ANONYMOUS"
    peer.send(start_ok("ANONYMOUS", b"somebody@example.org"))
    peer.expect(m.ConnectionTune)
    assert [link.user.name for link in site.registry.connections] == ["guest"]


def test_anonymous_logins_are_refused_unless_the_settings_name_a_user(
    connect_memory: Connect,
) -> None:
    peer = connect_memory()
    assert b"ANONYMOUS" not in peer.greet().mechanisms.split()
    peer.send(start_ok("ANONYMOUS"))
    peer.expect_closed()


def test_an_anonymous_user_of_this_machine_is_refused_elsewhere() -> None:
    site = MemorySite(anonymous_user="guest")
    peer = Peer(site, site.connect("10.0.0.1"))
    peer.greet()
    peer.send(start_ok("ANONYMOUS", authentication_failure_close=True))
    peer.expect_connection_close(403, REFUSED)


@PEERS
def test_mechanisms_that_the_settings_do_not_name_are_not_offered(kind: type[AnyPeer]) -> None:
    _, peer = connected(kind, anonymous_user="guest", mechanisms=("AMQPLAIN", "ANONYMOUS"))
    assert peer.greet().mechanisms == b"AMQPLAIN ANONYMOUS"
    peer.send(start_ok("PLAIN", b"\0guest\0guest"))
    peer.expect_closed()


@PEERS
def test_mechanisms_with_challenges_are_not_offered(kind: type[AnyPeer]) -> None:
    _, peer = connected(kind, mechanisms=("SCRAM-SHA-256", "PLAIN"))
    assert peer.greet().mechanisms == b"PLAIN"


@PEERS
def test_a_login_to_act_for_another_user_is_refused(kind: type[AnyPeer]) -> None:
    site, peer = connected(kind)
    peer.greet()
    peer.send(start_ok("PLAIN", b"other\0guest\0guest"))
    assert [link.user.name for link in site.registry.connections] == [""]
    assert site.logged("127.0.0.1", "leave the authorization identity empty")
    same, other = connected(kind)
    other.greet()
    other.send(start_ok("PLAIN", b"guest\0guest\0guest"))
    other.expect(m.ConnectionTune)
    assert [link.user.name for link in same.registry.connections] == ["guest"]
