"""Class access of 0-8 and 0-9: realms, and tickets that are checked when they are presented."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.sites import MemorySite
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import Peer8


@pytest.mark.rule("0-8#035")
@pytest.mark.parametrize("realm", ["/data", "/admin"])
def test_the_realms_data_and_admin_are_there(older: Peer8, realm: str) -> None:
    assert older.ticket("read", realm=realm) > 0


@pytest.mark.rule("0-8#034")
def test_a_realm_begins_with_data_or_admin(older: Peer8) -> None:
    older.send(m.AccessRequest("/other"))
    close = older.expect(m.ConnectionClose, reply_code=403)
    assert close.reply_text.startswith("ACCESS_REFUSED - there is no realm '/other'")
    older.opened = False


@pytest.mark.rule("0-8#036")
def test_an_unknown_realm_closes_the_channel_with_402(older: Peer8) -> None:
    older.send(m.AccessRequest("/data/unknown"))
    text = "INVALID_PATH - unknown realm '/data/unknown': there are /data and /admin"
    older.expect_channel_close(402, text, (30, 10))


@pytest.mark.rule("0-8#034")
def test_the_realm_admin_is_for_administrators(memory: MemorySite) -> None:
    memory.users.add("plain", "secret", vhosts=("/",))
    peer = Peer8(memory, memory.connect())
    peer.open(user="plain", password="secret")
    peer.send(m.AccessRequest("/admin"))
    text = "ACCESS_REFUSED - access to realm '/admin' refused for user 'plain'"
    peer.expect_connection_close(403, text, (30, 10))


def test_a_ticket_ends_with_its_channel(older: Peer8) -> None:
    ticket = older.ticket("active")
    older.ask(m.ChannelClose())
    older.ask(m.ChannelOpen())
    older.ticket("active")
    older.send(m.QueueDeclare("q", ticket=ticket))
    close = older.expect(m.ChannelClose, reply_code=403)
    older.send(m.ChannelCloseOk())
    assert "there is no ticket" in close.reply_text


def test_a_second_request_replaces_the_ticket(older: Peer8, name: str) -> None:
    first = older.ticket("active")
    second = older.ticket("active")
    older.ask(m.QueueDeclare(name, exclusive=True, ticket=second))
    older.send(m.QueueDeclare(name, ticket=first))
    older.expect(m.ChannelClose, reply_code=403)
    older.send(m.ChannelCloseOk())


def test_an_exclusive_ticket_is_not_granted_beside_others(memory: MemorySite) -> None:
    holder, other = (Peer8(memory, memory.connect()).open() for _ in range(2))
    holder.ticket("read")
    other.send(m.AccessRequest("/data", exclusive=True, read=True))
    text = "ACCESS_REFUSED - realm '/data' is in use"
    other.expect_channel_close(403, text, (30, 10))
    holder.ask(m.ChannelClose())
    other.ask(m.ChannelOpen())
    other.ask(m.AccessRequest("/data", exclusive=True, read=True))
    holder.ask(m.ChannelOpen())
    holder.send(m.AccessRequest("/data", read=True))
    holder.expect_channel_close(403, text, (30, 10))


@pytest.mark.parametrize("ticket", [0, 1, 777])
def test_a_client_that_never_asks_needs_no_ticket(older: Peer8, name: str, ticket: int) -> None:
    older.ask(m.QueueDeclare(name, exclusive=True, ticket=ticket))
    older.publish("", name, b"one", ticket=ticket)
    assert older.get(name).body == b"one"


@pytest.mark.rule("0-8#103")
@pytest.mark.parametrize("together", [True, False])
def test_a_publish_needs_a_ticket_that_lets_write(
    connect: Connect, name: str, together: bool
) -> None:
    peer = connect().open()
    peer.queue(name, exclusive=True)
    good = peer.ticket("write")
    for body in (b"one", b"two"):
        peer.publish("", name, body, ticket=good)
        assert peer.get(name).body == body
    bad = peer.ticket("read")
    if together:
        peer.publish("", name, b"three", ticket=bad)
    else:
        peer.send(m.BasicPublish("", name, ticket=bad))
    text = f"ACCESS_REFUSED - ticket {bad} for realm '/data' does not give write access"
    peer.expect_channel_close(403, text, (60, 40))
    peer.ask(m.ChannelOpen())
    peer.ticket("write")
    peer.publish("", name, b"four", ticket=good)
    text = f"ACCESS_REFUSED - there is no ticket {good}"
    peer.expect_channel_close(403, text, (60, 40))
