"""The class access: tickets are checked when they are presented (class 30)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]
RIGHTS = ("passive", "active", "write", "read")


def ticket(peer: Peer, *rights: str, realm: str = "/data", channel: int = 1) -> int:
    """A ticket with just these rights."""
    asked = m.AccessRequest(realm, **{right: right in rights for right in RIGHTS})
    granted: m.AccessRequestOk = peer.ask(asked, channel)
    assert granted.ticket
    return granted.ticket


@pytest.fixture
def peer(memory_peer: Peer) -> Peer:
    """Realms are shared by all, so each test has a broker of its own."""
    return memory_peer


@pytest.mark.rule("0-10t#035")
def test_a_realm_that_there_is_not_ends_the_connection(peer: Peer):
    peer.send(m.AccessRequest("/nowhere"))
    peer.expect_connection_close(403, "access.request", "access to realm '/nowhere' refused")


@pytest.mark.rule("0-10t#035")
def test_a_realm_that_nobody_may_enter_is_answered_alike(
    memory: MemorySite, connect_memory: Connect
):
    memory.users.add("plain", "secret", vhosts=("/",))
    peer = connect_memory().open(user="plain", password="secret")
    peer.send(m.AccessRequest("/admin"))
    peer.expect_connection_close(403, "access.request", "access to realm '/admin' refused")


def test_an_administrator_gets_a_ticket_for_the_realm_of_administration(peer: Peer):
    assert ticket(peer, "passive", realm="/admin")


@pytest.mark.rule("0-10t#036")
def test_an_exclusive_ticket_is_refused_while_others_have_one(connect_memory: Connect):
    peer, other = connect_memory().open(), connect_memory().open()
    ticket(peer, "read")
    other.send(m.AccessRequest("/data", exclusive=True))
    other.expect_connection_close(403, "access.request", "in use")


@pytest.mark.rule("0-10t#036")
def test_the_only_holder_may_ask_for_an_exclusive_one_and_gives_it_back(peer: Peer):
    first = ticket(peer, "read")
    second = peer.ask(m.AccessRequest("/data", exclusive=True)).ticket
    assert second != first
    peer.ask(m.ChannelClose())
    peer.ask(m.ChannelOpen(), 2)
    assert peer.ask(m.AccessRequest("/data", exclusive=True), 2).ticket


def test_a_number_that_was_never_granted_closes_the_channel_of_any_client(peer: Peer):
    peer.send(m.QueueDeclare("q", ticket=4711))
    peer.expect_channel_close(403, "queue.declare", "there is no ticket 4711")
