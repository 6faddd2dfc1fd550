"""Class exchange of 0-8 and 0-9, and Qpid's exchange.bound."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as old
from tests.conformance.raw import start_ok
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import QPID, Peer8


@pytest.mark.rule("0-8#039", "0-8#040", "0-8#058", "0-8#104")
@pytest.mark.parametrize("exchange", ["amq.direct", "amq.fanout", "amq.topic", ""])
def test_the_standard_exchanges_are_there(older: Peer8, name: str, exchange: str) -> None:
    older.queue(name, exclusive=True)
    if exchange:
        older.ask(m.ExchangeDeclare(exchange, passive=True))
        older.ask(m.QueueBind(name, exchange, name))
    older.publish(exchange, name, b"routed")
    assert older.get(name).body == b"routed"


@pytest.mark.rule("0-8#042", "0-8#074")
def test_nothing_is_bound_to_the_default_exchange_by_hand(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.send(m.QueueBind(name, "", "other"))
    text = "NOT_ALLOWED - no queue may be bound to the default exchange, which is internal"
    older.expect_connection_close(530, text, (50, 20))


@pytest.mark.rule("0-8#074")
def test_a_bind_to_an_internal_exchange_ends_the_connection(peer: Peer8, name: str) -> None:
    peer.queue(name, exclusive=True)
    peer.ask(m.ExchangeDeclare(name, "direct", internal=True, auto_delete=True))
    peer.send(m.QueueBind(name, name, "k"))
    text = f"NOT_ALLOWED - no queue may be bound to '{name}', which is internal"
    peer.expect_connection_close(530, text, (50, 20))


@pytest.mark.rule("0-8#046")
def test_another_type_ends_the_connection_with_507_and_in_0_9_with_530(older: Peer8) -> None:
    older.send(m.ExchangeDeclare("amq.direct", "fanout"))
    text = "NOT_ALLOWED - exchange 'amq.direct' in vhost '/' is of type 'direct', not 'fanout'"
    code = 507 if older.SPEC.version == "0-8" else 530
    older.expect_connection_close(code, text, (40, 10))


def test_qpids_clients_get_530_for_another_type_as_from_qpid(connect_older: Connect) -> None:
    peer = connect_older()
    peer.greet()
    method = start_ok()
    method.client_properties = QPID
    peer.send(method)
    peer.expect(m.ConnectionTune)
    peer.send(m.ConnectionTuneOk(0, 0, 0))
    peer.ask(m.ConnectionOpen())
    peer.opened = True
    peer.ask(m.ChannelOpen())
    peer.send(m.ExchangeDeclare("amq.direct", "fanout"))
    text = "NOT_ALLOWED - exchange 'amq.direct' in vhost '/' is of type 'direct', not 'fanout'"
    peer.expect_connection_close(530, text, (40, 10))


@pytest.mark.rule("0-8#049", "0-8#050", "0-8#052")
@pytest.mark.parametrize("durable", [False, True])
def test_of_a_second_declare_only_the_type_counts(older: Peer8, name: str, durable: bool) -> None:
    older.ask(m.ExchangeDeclare(name, "topic", durable=durable))
    older.ask(m.ExchangeDeclare(name, "topic", durable=not durable, auto_delete=True))
    older.ask(m.ExchangeDelete(name))


@pytest.mark.rule("0-8#051")
def test_an_auto_delete_exchange_waits_for_its_first_binding(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.ExchangeDeclare(name, "direct", auto_delete=True))
    older.expect_silence()
    older.ask(m.QueueBind(name, name, "k"))
    older.publish(name, "k", b"routed")
    assert older.get(name).body == b"routed"


def test_bound_says_what_is_bound(older: Peer8, name: str) -> None:
    def bound(exchange: str, key: str = "", queue: str = "") -> int:
        answer: old.ExchangeBoundOk = older.ask(old.ExchangeBound(exchange, key, queue))
        assert bool(answer.reply_text) == bool(answer.reply_code)
        return answer.reply_code

    older.queue(name, exclusive=True)
    older.queue(f"{name}-other", exclusive=True)
    older.ask(m.ExchangeDeclare(name, "direct"))
    assert bound(f"{name}-missing") == 1
    assert bound(name, queue=f"{name}-missing") == 2
    assert bound(name) == 3
    older.ask(m.QueueBind(name, name, "k"))
    assert bound(name) == 0
    assert bound(name, queue=name) == 0
    assert bound(name, "k") == 0
    assert bound(name, "k", name) == 0
    assert bound(name, queue=f"{name}-other") == 4
    assert bound(name, "other") == 5
    assert bound(name, "other", name) == 6
    assert bound("", name, name) == 0
    assert bound("", name) == 0
    assert bound("", "other", name) == 6
    assert bound("", f"{name}-missing") == 5
    older.ask(m.ExchangeDelete(name))
