"""The class access: tickets are checked when they are presented (class 30)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_session as s
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


@pytest.mark.rule("0-10t#037")
def test_a_ticket_of_another_session_ends_the_connection(peer: Peer):
    number = ticket(peer, "active")
    peer.ask(m.ChannelOpen(), 2)
    peer.send(m.QueueDeclare("q", ticket=number), 2)
    peer.expect_connection_close(530, "queue.declare", "another session")


METHODS = [
    pytest.param(m.ExchangeDeclare("e", "direct"), "active", marks=pytest.mark.rule("0-10t#045")),
    pytest.param(
        m.ExchangeDeclare("amq.direct", passive=True),
        "passive",
        marks=pytest.mark.rule("0-10t#045"),
    ),
    pytest.param(m.ExchangeDelete("e"), "active", marks=pytest.mark.rule("0-10t#057")),
    pytest.param(s.ExchangeQuery("e"), "passive", marks=pytest.mark.rule("0-10t#060")),
    pytest.param(m.QueueDeclare("q"), "active", marks=pytest.mark.rule("0-10t#064")),
    pytest.param(
        m.QueueBind("q", "amq.direct", "ticket"), "active", marks=pytest.mark.rule("0-10t#084")
    ),
    pytest.param(
        m.QueueUnbind("q", "amq.direct", "b"), "active", marks=pytest.mark.rule("0-10t#091")
    ),
    pytest.param(m.QueuePurge("q"), "read", marks=pytest.mark.rule("0-10t#098")),
    pytest.param(m.QueueDelete("q"), "active", marks=pytest.mark.rule("0-10t#102")),
    pytest.param(m.BasicConsume("q"), "read", marks=pytest.mark.rule("0-10t#120")),
    pytest.param(m.BasicPublish("", "q"), "write", marks=pytest.mark.rule("0-10t#126")),
    pytest.param(m.BasicGet("q"), "read", marks=pytest.mark.rule("0-10t#131")),
    pytest.param(s.BindingQuery("amq.direct", "q"), "passive", marks=pytest.mark.rule("0-10t#272")),
]


def prepared(peer: Peer, method: m.Method, number: int) -> m.Method:
    """A method that presents a ticket, where it would succeed without."""
    peer.queue("q")
    peer.run(m.QueueBind("q", "amq.direct", "b"))
    if not isinstance(method, m.ExchangeDeclare):
        peer.run(m.ExchangeDeclare("e", "direct"))
    fields = {name: getattr(method, name) for name in method.__struct_fields__}
    return type(method)(**{**fields, "ticket": number})


@pytest.mark.parametrize(("method", "right"), METHODS)
def test_a_ticket_without_the_right_closes_the_channel(peer: Peer, method: m.Method, right: str):
    number = ticket(peer, *(each for each in RIGHTS if each != right))
    peer.send(prepared(peer, method, number))
    peer.expect_channel_close(403, method.NAME, f"does not give {right} access")


@pytest.mark.parametrize(("method", "right"), METHODS)
def test_a_number_that_was_never_granted_closes_the_channel(
    peer: Peer, method: m.Method, right: str
):
    peer.send(prepared(peer, method, 4711))
    peer.expect_channel_close(403, method.NAME, "there is no ticket 4711")


@pytest.mark.parametrize(("method", "right"), METHODS)
def test_a_ticket_with_the_right_is_taken(peer: Peer, method: m.Method, right: str):
    asked = prepared(peer, method, ticket(peer, right))
    if isinstance(asked, m.BasicPublish):
        peer.publish("", "q", b"x", ticket=asked.ticket)
        peer.settle()
    elif isinstance(asked, m.BasicGet):
        peer.send(asked)
        peer.expect(m.BasicGetEmpty)
    elif type(asked).__name__ in ("ExchangeDeclare", "ExchangeDelete", "QueueBind", "QueueUnbind"):
        peer.run(asked)
    else:
        peer.ask(asked)
