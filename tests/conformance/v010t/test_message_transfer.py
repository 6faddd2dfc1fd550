"""message.transfer from the client: where it goes, what becomes of its fields, what refuses it."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_transitional import (
    MessageEmpty,
    MessageGet,
    MessageRecover,
)
from harebell.wire.v09.typed_fields import FieldDialect
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import (
    consume,
    encoded,
    expect_reject,
    expect_transfer,
    transfer,
    transferred,
)
from tests.unit.model.queue.features.test_large_messages import SpilledLog, filled

FULL = {
    "priority": 5,
    "timestamp": 1_186_000_000,
    "delivery_mode": 2,
    "message_id": "m",
    "correlation_id": "c",
    "reply_to": "r",
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
    "transaction_id": "x",
    "security_token": b"\0secret",
    "application_headers": {"a": 1, "b": "two"},
}


def got(peer: Peer, queue: str, body: bytes, **fields: object):
    """What message.get transfers from a queue."""
    peer.send(MessageGet(queue=queue, destination="g", no_ack=True))
    return expect_transfer(peer, body, destination="g", **fields)


@pytest.mark.rule("0-10t#249")
def test_a_blank_destination_is_the_default_exchange(peer: Peer, name: str) -> None:
    peer.queue(name)
    transferred(peer, name, b"body")
    assert got(peer, name, b"body").transfer.exchange == ""


def test_a_destination_is_an_exchange(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.run(m.QueueBind(queue=name, exchange="amq.direct", routing_key=name))
    transferred(peer, name, b"body", destination="amq.direct")
    got(peer, name, b"body", exchange="amq.direct", routing_key=name)


def test_every_field_arrives_as_it_was_sent(peer: Peer, name: str) -> None:
    peer.queue(name)
    transferred(peer, name, b"body", **FULL)
    got(peer, name, b"body", redelivered=False, expiration=0, ttl=0, **FULL)


@pytest.mark.rule("0-10t#004")
def test_a_message_id_is_never_changed(peer: Peer, name: str) -> None:
    queues = (name, f"{name}-2")
    for queue in queues:
        peer.queue(queue)
        peer.run(m.QueueBind(queue=queue, exchange="amq.fanout"))
    transferred(peer, "", b"body", destination="amq.fanout", message_id="mine")
    for queue in queues:
        peer.send(MessageGet(queue=queue))
        expect_transfer(peer, b"body", message_id="mine", redelivered=False)
    peer.run(MessageRecover(requeue=True))
    for queue in queues:
        got(peer, queue, b"body", message_id="mine", redelivered=True)
        peer.run(m.QueueUnbind(queue=queue, exchange="amq.fanout"))


@pytest.mark.rule("0-10t#003")
def test_a_message_without_an_id_gets_one_that_no_other_has(peer: Peer, name: str) -> None:
    peer.queue(name)
    for _ in range(20):
        transfer(peer, name, b"same")
    ids = {got(peer, name, b"same").properties.message_id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(each) == 36 for each in ids)


def test_the_broker_sets_the_timestamp_that_is_missing(memory: MemorySite, memory_peer: Peer):
    memory_peer.queue("q")
    transfer(memory_peer, "q", b"body")
    seconds = memory.broker.clock.ms // 1000
    assert got(memory_peer, "q", b"body").properties.timestamp == seconds


@pytest.mark.rule("0-10t#252")
def test_the_expiration_is_the_time_of_arrival_and_the_ttl(peer: Peer, name: str) -> None:
    peer.queue(name)
    transfer(peer, name, b"body", ttl=60_000, timestamp=0)
    found = got(peer, name, b"body", ttl=60_000).properties
    assert found.expiration - found.timestamp in (60, 61)


def test_a_message_that_outlives_its_ttl_is_gone(memory: MemorySite, memory_peer: Peer) -> None:
    memory_peer.queue("q")
    transferred(memory_peer, "q", b"body", ttl=1_000)
    memory.pass_time(2.0)
    memory_peer.send(MessageGet(queue="q"))
    memory_peer.expect(MessageEmpty)


def test_a_ttl_beyond_ten_years_is_refused(peer: Peer, name: str) -> None:
    transfer(peer, name, b"", ttl=2**60)
    peer.expect_channel_close(406, "message.transfer", "ttl")


@pytest.mark.rule("0-10t#250")
def test_an_internal_exchange_refuses_transfers(peer: Peer) -> None:
    transfer(peer, "k", b"", destination="amq.rabbitmq.log")
    peer.expect_channel_close(403, "message.transfer", "internal exchange 'amq.rabbitmq.log'")


def test_an_exchange_that_there_is_not_closes_the_channel(peer: Peer, name: str) -> None:
    transfer(peer, "k", b"", destination=name)
    peer.expect_channel_close(404, "message.transfer", f"no exchange '{name}'")


@pytest.mark.rule("0-10t#247")
def test_a_transfer_is_complete_when_it_is_on_disk(memory: MemorySite, memory_peer: Peer) -> None:
    peer = memory_peer
    peer.queue("q", durable=True)
    number = transferred(peer, "q", b"body", delivery_mode=2)
    assert peer.sent() == number


@pytest.mark.rule("0-10t#248")
def test_a_ticket_without_write_access_refuses_a_transfer(peer: Peer, name: str) -> None:
    peer.queue(name)
    ticket = peer.ask(m.AccessRequest(realm="/data", active=False, write=False)).ticket
    transfer(peer, name, b"", ticket=ticket)
    peer.expect_channel_close(403, "message.transfer", "write")


def test_a_ticket_with_write_access_lets_a_transfer_pass(peer: Peer, name: str) -> None:
    peer.queue(name)
    ticket = peer.ask(m.AccessRequest(realm="/data", active=False, read=False)).ticket
    transferred(peer, name, b"body", ticket=ticket)
    got(peer, name, b"body")


def test_an_unroutable_transfer_is_complete_and_gone(peer: Peer, name: str) -> None:
    transferred(peer, name, b"body")
    peer.expect_silence()


def test_an_unroutable_transfer_is_rejected_when_its_publisher_asked_for_that(
    peer: Peer, name: str
) -> None:
    number = transfer(peer, name, b"body", reject_unroutable=True)
    expect_reject(peer, 0, "NO_ROUTE", f"transfer {number}", name)
    peer.settle()


@pytest.mark.rule("0-10t#007")
def test_an_immediate_transfer_is_rejected_with_1_when_nobody_takes_it(
    peer: Peer, name: str
) -> None:
    peer.queue(name)
    transfer(peer, name, b"body", immediate=True)
    expect_reject(peer, 1, "NO_CONSUMERS", name)
    transfer(peer, f"{name}-none", b"", reject_unroutable=True)
    expect_reject(peer, 0)
    peer.send(MessageGet(queue=name))
    peer.expect(MessageEmpty)


def test_an_immediate_transfer_that_nobody_takes_goes_to_the_alternate_exchange_of_its_queue(
    peer: Peer, name: str
) -> None:
    other = f"{name}-other"
    peer.run(m.ExchangeDeclare(exchange=name, type="fanout"))
    peer.queue(other)
    peer.run(m.QueueBind(queue=other, exchange=name))
    peer.queue(name, alternate_exchange=name)
    transferred(peer, name, b"body", immediate=True)
    got(peer, other, b"body")
    peer.send(MessageGet(queue=name))
    peer.expect(MessageEmpty)
    peer.ask(m.QueueDelete(queue=name))
    peer.run(m.ExchangeDelete(exchange=name))


def test_an_immediate_transfer_is_delivered_to_a_consumer_that_is_ready(
    peer: Peer, name: str
) -> None:
    peer.queue(name)
    consume(peer, name, no_ack=True)
    transfer(peer, name, b"body", immediate=True)
    expect_transfer(peer, b"body")


def test_a_full_queue_that_refuses_messages_rejects_the_transfer(peer: Peer, name: str) -> None:
    peer.queue(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    transfer(peer, name, b"one")
    transfer(peer, name, b"two")
    expect_reject(peer, 0, "full")
    got(peer, name, b"one")


def test_a_foreign_user_id_is_refused(peer: Peer, name: str) -> None:
    peer.queue(name)
    transfer(peer, name, b"", user_id="somebody")
    peer.expect_channel_close(406, "message.transfer", "user_id", "somebody")


def test_a_transfer_goes_to_the_further_keys_of_cc_too(peer: Peer, name: str) -> None:
    for queue in (name, f"{name}-2"):
        peer.queue(queue)
    headers = {"CC": [f"{name}-2"]}
    transfer(
        peer, name, b"body", application_headers=headers, dialect=FieldDialect.LETTERS, type="t"
    )
    got(peer, name, b"body", application_headers=headers, type="t")
    got(peer, f"{name}-2", b"body", application_headers=headers)


def test_headers_route_a_transfer(peer: Peer, name: str) -> None:
    peer.queue(name)
    arguments = {"x-match": "all", "colour": "blue"}
    peer.run(m.QueueBind(queue=name, exchange="amq.headers", arguments=arguments))
    for colour in ("red", "blue"):
        headers = {"colour": colour}
        transfer(peer, "", colour.encode(), destination="amq.headers", application_headers=headers)
    got(peer, name, b"blue")
    peer.run(m.QueueUnbind(queue=name, exchange="amq.headers", arguments=arguments))


def test_the_selector_of_a_binding_routes_a_transfer(peer: Peer, name: str) -> None:
    peer.queue(name)
    arguments = {"x-filter-jms-selector": "colour = 'blue'"}
    peer.run(m.QueueBind(queue=name, exchange="amq.fanout", arguments=arguments))
    for colour in ("red", "blue"):
        headers = {"colour": colour}
        transfer(peer, "", colour.encode(), destination="amq.fanout", application_headers=headers)
    got(peer, name, b"blue")


def test_headers_come_back_in_the_types_that_the_client_has_shown_to_know(
    peer: Peer, name: str
) -> None:
    peer.queue(name)
    headers = {"yes": True, "big": 2**40}
    transfer(peer, name, b"", application_headers=headers, dialect=FieldDialect.TYPED)
    found = got(peer, name, b"").properties.application_headers
    assert found == headers
    assert found.dialect is FieldDialect.TYPED


def test_a_malformed_transfer_closes_the_connection(peer: Peer) -> None:
    peer.payload(encoded("k", b"body") + b"more")
    peer.expect_connection_close(502, "message.transfer", "garbage")


def test_a_body_over_the_limit_closes_the_channel() -> None:
    site = MemorySite(message_max=100)
    peer = Peer(site, site.connect()).open()
    transfer(peer, "k", bytes(101))
    peer.expect_channel_close(311, "message.transfer", "101", "100")


@pytest.mark.rule("0-10t#251")
def test_no_destination_refuses_the_content_of_transfers(peer: Peer, name: str) -> None:
    peer.queue(name)
    for kind in ("direct", "fanout", "topic", "headers"):
        transferred(peer, name, b"body", destination=f"amq.{kind}")
    transferred(peer, name, b"body")
    got(peer, name, b"body")


def test_class_basic_gets_what_was_transferred(peer: Peer, name: str) -> None:
    peer.queue(name)
    transferred(peer, name, b"body", **FULL)
    peer.send(m.BasicGet(queue=name, no_ack=True))
    found = peer.expect_content(m.BasicGetOk)
    properties = found.properties
    assert found.body == b"body"
    assert (properties.message_id, properties.correlation_id) == ("m", "c")
    assert properties.headers == {
        "a": 1,
        "b": "two",
        "x-amqp-transaction-id": "x",
        "x-amqp-security-token": "\0secret",
    }


@pytest.mark.parametrize("mandatory", [True, False])
@pytest.mark.parametrize("is_there", [True, False], ids=["idle", "missing"])
def test_an_immediate_publish_of_class_basic_that_nobody_takes_is_rejected(
    peer: Peer, name: str, mandatory: bool, is_there: bool
) -> None:
    if is_there:
        peer.queue(name)
    number = peer.publish("", name, b"body", mandatory=mandatory, immediate=True)
    peer.expect(m.BasicReject, delivery_tag=number)
    peer.settle()


def test_a_large_message_on_disk_is_read_in_slices_before_message_get(
    memory: MemorySite, memory_peer: Peer
) -> None:
    log = SpilledLog(0)
    memory.broker.vhosts["/"].queues["q"] = filled(log)
    memory_peer.send(MessageGet(queue="q", destination="g", no_ack=True))
    memory_peer.send(MessageGet(queue="q", destination="g", no_ack=True))
    assert list(log.fetching) == [0]
    log.fetched(0)
    memory.registry.turns.next_turn()
    memory.turn()
    expect_transfer(memory_peer, b"0", destination="g")
    expect_transfer(memory_peer, b"1", destination="g")
