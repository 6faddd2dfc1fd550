"""Class access: rules of tickets that 0-8, 0-9 and transitional 0-10 share; 0-9-1 has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.raw import Peer
from tests.conformance.shared.versions import VERSIONS, do
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer as PeerT

RIGHTS = ("passive", "active", "write", "read")


@pytest.fixture(params=["0-8", "0-9", "0-10t"])
def peer(request: pytest.FixtureRequest, memory: MemorySite) -> Any:
    """An open connection; realms are shared by all, so each test has a broker of its own."""
    return VERSIONS[request.param](memory, memory.connect()).open()


def ticket(peer: Any, *rights: str) -> int:
    """A ticket for the realm /data with these rights alone."""
    request = m.AccessRequest("/data", **{right: right in rights for right in RIGHTS})
    granted: m.AccessRequestOk = peer.ask(request)
    assert granted.ticket
    return granted.ticket


USES: list[tuple[m.Method, str, pytest.MarkDecorator]] = [
    (m.ExchangeDeclare("e", "direct"), "active", pytest.mark.rule("0-8#044", "0-10t#045")),
    (
        m.ExchangeDeclare("amq.direct", passive=True),
        "passive",
        pytest.mark.rule("0-8#044", "0-10t#045"),
    ),
    (m.ExchangeDelete("e"), "active", pytest.mark.rule("0-8#053", "0-10t#057")),
    (s.ExchangeQuery("e"), "passive", pytest.mark.rule("0-10t#060")),
    (m.QueueDeclare("q"), "active", pytest.mark.rule("0-10t#064")),
    (m.QueueDeclare("q", passive=True), "passive", pytest.mark.rule("0-10t#064")),
    (m.QueueBind("q", "amq.direct", "ticket"), "active", pytest.mark.rule("0-10t#084")),
    (m.QueueUnbind("q", "amq.direct", "b"), "active", pytest.mark.rule("0-10t#091")),
    (m.QueuePurge("q"), "read", pytest.mark.rule("0-8#082", "0-10t#098")),
    (m.QueueDelete("q"), "active", pytest.mark.rule("0-10t#102")),
    (m.BasicConsume("q"), "read", pytest.mark.rule("0-8#098", "0-10t#120")),
    (m.BasicPublish("", "q"), "write", pytest.mark.rule("0-8#103", "0-10t#126")),
    (m.BasicGet("q"), "read", pytest.mark.rule("0-8#110", "0-10t#131")),
    (s.BindingQuery("amq.direct", "q"), "passive", pytest.mark.rule("0-10t#272")),
]
"""Methods that present a ticket, the right that each needs, and the rules about it."""


def cases() -> Iterator[Any]:
    """Yield each method in each version that has it, with the version's own rules."""
    for version in ("0-8", "0-9", "0-10t"):
        document = "0-8" if version == "0-9" else version
        for method, right, rules in USES:
            if VERSIONS[version].SPEC.knows(method):
                own = [rule for rule in rules.args if rule.startswith(f"{document}#")]
                marks = [pytest.mark.rule(*own)] if own else []
                case = f"{version}-{method.NAME}-{right}"
                yield pytest.param(version, method, right, marks=marks, id=case)


IN_EACH_CASE = pytest.mark.parametrize(
    ("peer", "method", "right"), list(cases()), indirect=["peer"]
)


def prepared(peer: Any, method: m.Method, number: int) -> m.Method:
    """A method that presents a ticket, where it would succeed without one."""
    peer.queue("q")
    do(peer, m.QueueBind("q", "amq.direct", "b"))
    if not isinstance(method, m.ExchangeDeclare):
        do(peer, m.ExchangeDeclare("e", "direct"))
    fields = {name: getattr(method, name) for name in method.__struct_fields__}
    return type(method)(**{**fields, "ticket": number})


@IN_EACH_CASE
def test_a_ticket_without_the_right_closes_the_channel(
    peer: Any, method: m.Method, right: str
) -> None:
    number = ticket(peer, *(each for each in RIGHTS if each != right))
    peer.send(prepared(peer, method, number))
    text = f"ACCESS_REFUSED - ticket {number} for realm '/data' does not give {right} access"
    Peer.expect_channel_close(peer, 403, text, method.NAME)


@IN_EACH_CASE
def test_a_ticket_with_the_right_is_taken(peer: Any, method: m.Method, right: str) -> None:
    number = ticket(peer, right)
    request = prepared(peer, method, number)
    if isinstance(request, m.BasicPublish):
        peer.publish("", "q", b"x", ticket=number)
        assert peer.count("q") == 1
    elif isinstance(request, m.BasicGet):
        peer.send(request)
        peer.expect(m.BasicGetEmpty)
    else:
        do(peer, request)


@IN_EACH_CASE
def test_a_number_that_was_never_granted_closes_the_channel_of_a_client_with_tickets(
    peer: Any, method: m.Method, right: str
) -> None:
    ticket(peer, right)
    peer.send(prepared(peer, method, 4711))
    Peer.expect_channel_close(peer, 403, "ACCESS_REFUSED - there is no ticket 4711", method.NAME)


@pytest.mark.rule("0-8#037", "0-8#038", "0-10t#037")
def test_a_ticket_of_another_channel_ends_the_connection(peer: Any) -> None:
    number = ticket(peer, "active")
    peer.ask(m.ChannelOpen(), 2)
    peer.send(m.QueueDeclare("q", ticket=number), channel=2)
    owner = "session" if isinstance(peer, PeerT) else "channel"
    text = f"NOT_ALLOWED - ticket {number} was granted to another {owner}"
    Peer.expect_connection_close(peer, 530, text, "queue.declare")
