"""The class exchange: declare, delete, query (class 40), and what exchanges have to do."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.v010t.peer import Peer

KINDS = ("direct", "fanout", "topic", "headers")


@pytest.mark.rule("0-10t#038", "0-10t#039", "0-10t#043")
@pytest.mark.parametrize("kind", [*KINDS, "x-consistent-hash"])
def test_each_type_of_exchange_can_be_declared(peer: Peer, name: str, kind: str):
    peer.run(m.ExchangeDeclare(name, kind))
    assert peer.ask(s.ExchangeQuery(name)).type == kind


@pytest.mark.rule("0-10t#040")
@pytest.mark.parametrize("kind", KINDS)
def test_there_is_an_exchange_of_each_type_from_the_beginning(peer: Peer, name: str, kind: str):
    queue = peer.queue(exclusive=True, auto_delete=True)
    peer.run(m.QueueBind(queue, f"amq.{kind}", name))
    assert peer.ask(s.ExchangeQuery(f"amq.{kind}")).type == kind


@pytest.mark.rule("0-10t#040", "0-10t#041", "0-10t#127")
def test_the_default_exchange_routes_by_the_names_of_queues(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"there")
    assert peer.get(name, no_ack=True).body == b"there"
    assert peer.ask(s.ExchangeQuery("")).type == "direct"


@pytest.mark.rule("0-10t#042", "0-10t#047", "0-10t#059")
@pytest.mark.parametrize("method", [m.ExchangeDeclare(""), m.ExchangeDelete("")])
def test_the_default_exchange_is_neither_declared_nor_deleted(peer: Peer, method: m.Method):
    peer.send(method)
    peer.expect_connection_close(530, method.NAME, "name of the exchange is empty")


@pytest.mark.rule("0-10t#048")
def test_another_type_ends_the_connection(peer: Peer, name: str):
    peer.run(m.ExchangeDeclare(name, "direct"))
    peer.send(m.ExchangeDeclare(name, "fanout"))
    peer.expect_connection_close(530, "exchange.declare", "'direct'", "'fanout'")


@pytest.mark.rule("0-10t#050")
def test_without_an_alternate_what_finds_no_queue_is_dropped(peer: Peer, name: str):
    peer.run(m.ExchangeDeclare(name, "direct"))
    peer.publish(name, "nobody", b"lost")
    peer.settle()
    peer.expect_silence()


def test_a_message_without_a_queue_goes_to_the_alternate_exchange(peer: Peer, name: str):
    peer.run(m.ExchangeDeclare(f"{name}-ae", "fanout"))
    peer.queue(name)
    peer.run(m.QueueBind(name, f"{name}-ae"))
    peer.run(m.ExchangeDeclare(name, "direct", alternate_exchange=f"{name}-ae"))
    peer.publish(name, "nobody", b"found")
    assert peer.get(name, no_ack=True).body == b"found"


@pytest.mark.rule("0-10t#051")
def test_another_alternate_exchange_is_an_error_of_the_channel(peer: Peer, name: str):
    peer.run(m.ExchangeDeclare(name, "direct", alternate_exchange="amq.fanout"))
    peer.run(m.ExchangeDeclare(name, "direct", alternate_exchange="amq.fanout"))
    peer.run(m.ExchangeDeclare(name, "direct"))
    peer.send(m.ExchangeDeclare(name, "direct", alternate_exchange="amq.topic"))
    peer.expect_channel_close(504, "exchange.declare", "amq.fanout")


@pytest.mark.rule("0-10t#052")
def test_a_message_that_the_alternate_exchange_cannot_route_is_dropped(peer: Peer, name: str):
    last, middle = f"{name}-last", f"{name}-middle"
    peer.queue(name)
    peer.run(m.ExchangeDeclare(last, "fanout"))
    peer.run(m.QueueBind(name, last))
    peer.run(m.ExchangeDeclare(middle, "direct", alternate_exchange=last))
    peer.run(m.ExchangeDeclare(name, "direct", alternate_exchange=middle))
    peer.publish(name, "nobody", b"dropped")
    peer.publish(middle, "nobody", b"kept")
    assert peer.get(name, no_ack=True).body == b"kept"
    peer.send(m.BasicGet(name))
    peer.expect(m.BasicGetEmpty)


@pytest.mark.rule("0-10t#054", "0-10t#055", "0-10t#056")
@pytest.mark.parametrize("durable", [True, False])
def test_durable_and_auto_delete_of_an_existing_exchange_do_not_count(
    peer: Peer, name: str, durable: bool
):
    peer.run(m.ExchangeDeclare(name, "direct", durable=durable, auto_delete=durable))
    peer.run(m.ExchangeDeclare(name, "direct", durable=not durable, auto_delete=not durable))
    assert peer.ask(s.ExchangeQuery(name)).durable == durable
    peer.queue(name)
    peer.run(m.QueueBind(name, name, "k"))
    peer.run(m.QueueUnbind(name, name, "k"))
    assert peer.ask(s.ExchangeQuery(name)).not_found == durable


def test_query_tells_what_an_exchange_is(peer: Peer, name: str):
    arguments = {"hash-header": "h"}
    method = m.ExchangeDeclare(name, "x-consistent-hash", durable=True, arguments=arguments)
    peer.run(method)
    found = peer.ask(s.ExchangeQuery(name))
    assert found == s.ExchangeQueryOk("x-consistent-hash", True, False, arguments)


def test_query_tells_that_there_is_no_such_exchange(peer: Peer, name: str):
    assert peer.ask(s.ExchangeQuery(name)) == s.ExchangeQueryOk(not_found=True)
