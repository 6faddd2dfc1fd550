"""Class connection: rules that 0-8, 0-9, 0-9-1 and transitional 0-10 share."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.fields import encode_table
from tests.conformance.raw import Peer
from tests.conformance.shared.versions import IN_EACH_VERSION, Connect, do
from tests.conformance.sites import MemorySite

_GUEST = {"LOGIN": "guest", "PASSWORD": "guest"}
_RESPONSES = {"PLAIN": b"\0guest\0guest", "AMQPLAIN": encode_table(_GUEST)[4:]}


def logged_in(connect: Connect) -> Any:
    """A peer between tune-ok and connection.open."""
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(0, 0, 0))
    return peer


# --- start and login ------------------------------------------------------------------------------


@pytest.mark.rule("0-8#005", "0-8#010", "0-9-1r#004", "0-9-1r#005", "0-10t#012", "0-10t#013")
def test_start_offers_the_locale_en_us_and_says_what_the_broker_is(connect: Connect) -> None:
    start = connect().greet()
    assert b"en_US" in start.locales.split()
    about = ("host", "product", "version", "platform", "copyright", "information", "cluster_name")
    for key in about:
        assert isinstance(start.server_properties[key], str), key
        assert start.server_properties[key]


@pytest.mark.rule("0-10t#014", "0-10t#015")
@pytest.mark.parametrize("mechanism", _RESPONSES)
def test_both_mechanisms_that_are_offered_let_a_client_in(connect: Connect, mechanism: str) -> None:
    peer = connect()
    assert mechanism.encode() in peer.greet().mechanisms.split()
    peer.send(m.ConnectionStartOk({}, mechanism, _RESPONSES[mechanism], "en_US"))
    peer.expect(m.ConnectionTune)


@pytest.mark.rule("0-8#012", "0-9-1r#009", "0-10t#016")
def test_a_mechanism_that_was_not_offered_ends_the_connection_in_silence(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.send(m.ConnectionStartOk({}, "KERBEROS", b"", "en_US"))
    peer.expect_closed()


# --- open -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#004", "0-8#020", "0-10t#023", "0-10t#024")
@pytest.mark.parametrize("insist", [True, False])
def test_clients_are_never_redirected(connect: Connect, insist: bool) -> None:
    peer = logged_in(connect)
    assert peer.ask(m.ConnectionOpen("/", "", insist)).known_hosts == ""


@pytest.mark.rule("0-8#017", "0-8#019", "0-9-1#015", "0-9-1r#015", "0-9-1r#016", "0-10t#021")
@IN_EACH_VERSION
def test_virtual_hosts_share_nothing(memory: MemorySite, kind: type[Peer]) -> None:
    memory.broker.add_vhost("other")
    memory.users.add("alice", "secret", vhosts=("/", "other"))
    alice = {"user": "alice", "password": "secret"}
    here = kind(memory, memory.connect()).open("/", **alice)
    there = kind(memory, memory.connect()).open("other", **alice)
    here.queue("q")
    do(here, m.ExchangeDeclare("x", "fanout"), m.QueueBind("q", "x"))
    there.queue("q", auto_delete=True)
    do(there, m.ExchangeDeclare("x", "topic"))
    there.publish("x", "k", b"matches nothing there")
    there.publish("", "q", b"there")
    assert there.count("q") == 1
    assert here.count("q") == 0
    here.ask(m.QueueDelete(queue="q"))
    assert there.get("q").body == b"there"


@pytest.mark.rule("0-8#018", "0-9-1#016", "0-9-1r#017", "0-10t#022")
@IN_EACH_VERSION
def test_a_user_of_one_virtual_host_may_not_enter_another(
    memory: MemorySite, kind: type[Peer]
) -> None:
    memory.broker.add_vhost("other")
    memory.users.add("alice", "secret", vhosts=("other",))
    kind(memory, memory.connect()).open("other", user="alice", password="secret")
    for vhost, user, password in (("/", "alice", "secret"), ("other", "guest", "guest")):
        peer = kind(memory, memory.connect())
        peer.greet()
        peer.log_in(user=user, password=password)
        peer.send(m.ConnectionTuneOk(0, 0, 0))
        peer.send(m.ConnectionOpen(virtual_host=vhost))
        text = f"NOT_ALLOWED - access to vhost '{vhost}' refused for user '{user}'"
        Peer.expect_connection_close(peer, 530, text, "connection.open")


@pytest.mark.rule("0-8#018", "0-9-1r#017", "0-10t#022")
def test_a_virtual_host_that_does_not_exist_is_refused(connect: Connect) -> None:
    peer = logged_in(connect)
    peer.send(m.ConnectionOpen("nowhere"))
    # Transitional 0-10 has a code for names of virtual hosts that name none.
    code, text = 530, "NOT_ALLOWED - vhost nowhere not found"
    if peer.SPEC.version == "0-10t":
        code, text = 402, "INVALID_PATH - vhost nowhere not found"
    Peer.expect_connection_close(peer, code, text, "connection.open")


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#022", "0-10t#025")
def test_after_its_own_close_the_broker_ignores_all_but_a_close_and_close_ok(
    peer: Any, name: str
) -> None:
    peer.send(m.ChannelOpen())  # A second one on channel 1.
    peer.expect(m.ConnectionClose)
    peer.opened = False
    peer.send(m.ChannelOpen(), channel=2)
    peer.send(m.QueueDeclare(name))
    peer.send(m.ConnectionClose())
    peer.expect(m.ConnectionCloseOk)
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


def closed_by_the_broker(memory: MemorySite, kind: type[Peer]) -> Peer:
    """A peer that has got connection.close and has not answered it."""
    peer = kind(memory, memory.connect()).open()
    peer.send(m.ChannelOpen())  # A second one on channel 1.
    peer.expect(m.ConnectionClose)
    peer.opened = False
    return peer


@pytest.mark.rule("0-8#023", "0-9-1#011")
@IN_EACH_VERSION
def test_the_broker_waits_for_close_ok_but_not_for_ever(
    memory: MemorySite, kind: type[Peer]
) -> None:
    peer = closed_by_the_broker(memory, kind)
    memory.pass_time(9.5)
    peer.expect_silence()
    memory.pass_time(0.5)
    peer.expect_closed()


@pytest.mark.rule("0-8#025", "0-9-1r#020", "0-10t#026")
@IN_EACH_VERSION
def test_a_socket_lost_before_connection_close_ok_is_logged_as_an_error(
    memory: MemorySite, kind: type[Peer]
) -> None:
    peer = closed_by_the_broker(memory, kind)
    memory.log.clear()
    peer.wire.end()
    assert memory.log == [("error", "127.0.0.1:50000: lost before connection.close-ok")]


@pytest.mark.rule("0-8#032", "0-8#033", "0-9-1r#025", "0-10t#026", "0-10t#280")
@IN_EACH_VERSION
def test_a_socket_lost_before_channel_close_ok_is_logged_as_an_error(
    memory: MemorySite, kind: type[Peer]
) -> None:
    peer = kind(memory, memory.connect()).open()
    peer.send(m.QueueDeclare("missing", passive=True))
    peer.expect(m.ChannelClose)
    memory.log.clear()
    peer.wire.end()
    assert ("error", "127.0.0.1:50000: lost before channel.close-ok on channel 1") in memory.log
