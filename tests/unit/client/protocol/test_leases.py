"""The client's verbs of leases, in octets."""

from __future__ import annotations

import pytest

from harebell.client.errors import ExtensionMissing, Fenced, LeaseLost
from harebell.client.protocol import leases
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.v09 import lease as wire
from harebell.wire.v09 import methods as m
from tests.unit.client.octets import Peer


def leasing() -> tuple[Peer, CoreChannel]:
    peer = Peer()
    peer.open()
    peer.core.server_properties["harebell"] = {"lease": wire.VERSION}
    return peer, peer.channel()


def test_opening_a_group_tells_what_it_has() -> None:
    peer, channel = leasing()
    call = leases.lease_open(channel, "q", "g", timeout=1.5)
    assert peer.methods() == [m.LeaseOpen("q", "g", 1500)]
    claim = wire.ClaimInfo(3, 10, 999, 20, 30)
    peer.send(m.LeaseOpenOk(7, "aa", 2, 3, 1, 1500, wire.encode_claims([claim])), channel=1)
    assert call.value() == leases.Lease(7, "aa", 2, 3, 1, 1.5, (claim,))


def test_the_time_of_a_group_is_left_as_it_is_unless_it_is_given() -> None:
    peer, channel = leasing()
    leases.lease_open(channel, "q", "g")
    leases.lease_open(channel, "q", "g", timeout=0.0001)
    assert [each.timeout for each in peer.methods()] == [0, 1]  # type: ignore[attr-defined]


def test_a_claim_of_nothing_is_none() -> None:
    peer, channel = leasing()
    first = leases.lease_claim(channel, "q", "g", 7, 100, 5000)
    second = leases.lease_claim(channel, "q", "g", 7, 100)
    assert peer.methods() == [
        m.LeaseClaim("q", "g", 7, 100, 5000), m.LeaseClaim("q", "g", 7, 100, 0)
    ]  # fmt: skip
    peer.send(m.LeaseClaimOk(4, 2, 50, 8, 10), channel=1)
    peer.send(m.LeaseClaimOk(), channel=1)
    assert first.value() == wire.ClaimInfo(4, 2, 50, 8, 10)
    assert second.value() is None


def test_the_other_verbs_answer_how_many_messages() -> None:
    peer, channel = leasing()
    commit = leases.lease_commit(channel, "q", "g", 7, 4)
    release = leases.lease_release(channel, "q", "g", 7)
    renew = leases.lease_renew(channel, "q", "g", 7)
    close = leases.lease_close(channel, "q", "g", 7, forget=True)
    assert peer.methods() == [
        m.LeaseCommit("q", "g", 7, 4),
        m.LeaseRelease("q", "g", 7, 0),
        m.LeaseRenew("q", "g", 7),
        m.LeaseClose("q", "g", 7, True),
    ]
    for reply in (
        m.LeaseCommitOk(4, 2), m.LeaseReleaseOk(3), m.LeaseRenewOk(), m.LeaseCloseOk(5)
    ):  # fmt: skip
        peer.send(reply, channel=1)
    assert (commit.value(), release.value(), close.value()) == (2, 3, 5)
    assert renew.done


@pytest.mark.parametrize(("code", "kind"), [(413, LeaseLost), (412, Fenced)])
def test_errors_that_only_leases_have_are_exceptions_of_their_own(
    code: int, kind: type[Exception]
) -> None:
    peer, channel = leasing()
    call = leases.lease_commit(channel, "q", "g", 7, 4)
    peer.methods()
    peer.send(m.ChannelClose(code, "FENCED - why", wire.CLASS_ID, 30), channel=1)
    with pytest.raises(kind, match="why"):
        call.value()


def test_a_broker_without_leases_is_not_even_asked() -> None:
    peer = Peer()
    peer.open()
    channel = peer.channel()
    with pytest.raises(ExtensionMissing, match="extension 'lease'"):
        leases.lease_open(channel, "q", "g")
    assert peer.methods() == []
