"""The header that says whose connection is passed on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.cluster.client_handover import header_of, peer_of
from harebell.cluster.link import LinkError
from harebell.front.common.peer import Peer, TlsSession

PLAIN = Peer("192.0.2.1", 4711, host="192.0.2.2", host_port=5672)
SECURED = Peer(
    "2001:db8::1",
    4711,
    tls=True,
    host="::1",
    host_port=5671,
    dialect="0-10t",
    certificate="CN=Jürgen",
    session=TlsSession("tlsv1.3", "any", "aes_256_gcm", "aead", "CN=Jürgen", "CN=ca", "now - then"),
    entropy=bytes(range(18)),
)


def sent(peer: Peer) -> dict[str, Any]:
    """A header after its way through JSON."""
    found: dict[str, Any] = json.loads(json.dumps(header_of(peer)))
    return found


@pytest.mark.parametrize("peer", [PLAIN, SECURED], ids=["plain", "tls"])
def test_the_owner_knows_of_the_client_what_the_other_broker_knows(peer: Peer) -> None:
    assert peer_of(sent(peer)) == replace(peer, replayed=True)


def test_members_that_only_a_newer_broker_sends_are_ignored() -> None:
    header = sent(SECURED)
    header["peer"]["mood"] = "good"
    assert peer_of(header) == replace(SECURED, replayed=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("address", None), ("address", 1), ("port", "4711"), ("tls", None), ("host", [])),
        *(("host_port", None), ("dialect", 10), ("certificate", None)),
        *(("session", "tlsv1.3"), ("session", ["tlsv1.3"]), ("session", [1] * 7)),
        *(("entropy", "xy"), ("entropy", 5), ("entropy", None)),
    ],
)
def test_a_header_that_does_not_describe_a_client_is_refused(name: str, value: object) -> None:
    header = sent(SECURED)
    header["peer"][name] = value
    with pytest.raises(LinkError):
        peer_of(header)


@pytest.mark.parametrize("peer", [None, [], "192.0.2.1"])
def test_a_header_without_a_client_is_refused(peer: object) -> None:
    with pytest.raises(LinkError, match="without the client"):
        peer_of({"service": "amqp", "peer": peer})


def test_no_broker_says_who_a_client_is_without_a_login() -> None:
    header = sent(PLAIN)
    assert "user" not in header["peer"]
    header["peer"]["user"] = {"name": "guest", "password_hash": ""}
    assert peer_of(header).user is None
