"""Classes basic and tx of 0-8 and 0-9: what RabbitMQ leaves out of them is here."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from harebell.base.values import Long
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as old
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.plain_fields import is_plain
from tests.conformance.raw import Peer, start_ok
from tests.conformance.sites import MemorySite
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import QPID, Peer8

NOW = datetime(2007, 1, 1, tzinfo=UTC)

# --- qos ------------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#096")
def test_the_prefetch_count_is_the_channels(older: Peer8, name: str) -> None:
    older.ask(m.BasicQos(prefetch_count=1))
    for queue in (name, f"{name}-other"):
        older.queue(queue, exclusive=True)
        older.consume(queue)
    older.publish("", name, b"one")
    first = older.expect_delivery(b"one")
    older.publish("", f"{name}-other", b"two")
    older.expect_silence()
    older.send(m.BasicAck(first.method.delivery_tag))
    older.expect_delivery(b"two")


@pytest.mark.rule("0-8#095")
@pytest.mark.parametrize("early", [True, False])
def test_the_prefetch_size_limits_what_is_sent_ahead(older: Peer8, name: str, early: bool) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.BasicQos(prefetch_size=25))
    if early:
        older.consume(name)
    for body in (b"1" * 10, b"2" * 10, b"3" * 10, b"4" * 5):
        older.publish("", name, body)
    if not early:
        older.consume(name)
    older.expect_delivery(b"1" * 10)
    second = older.expect_delivery(b"2" * 10)
    older.expect_silence()
    older.send(m.BasicAck(second.method.delivery_tag, multiple=True))
    older.expect_delivery(b"3" * 10)
    older.expect_delivery(b"4" * 5)


def test_a_consumer_without_acknowledgements_has_no_window(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.BasicQos(prefetch_size=1, prefetch_count=1))
    older.consume(name, no_ack=True)
    for body in (b"one", b"two"):
        older.publish("", name, body)
        older.expect_delivery(body)


# --- consume --------------------------------------------------------------------------------------


def test_no_local_keeps_a_connections_own_messages_away(connect_older: Connect, name: str) -> None:
    own, other = connect_older().open(), connect_older().open()
    own.queue(name)
    own.consume(name, no_local=True, no_ack=True)
    own.publish("", name, b"mine")
    own.expect_silence()
    other.publish("", name, b"theirs")
    own.expect_delivery(b"theirs")
    own.ask(m.QueueDelete(name))


def test_the_published_layout_ends_before_the_arguments(peer: Peer8, name: str) -> None:
    peer.queue(name, exclusive=True)
    consume = b"\0\x3c\0\x14\0\0" + bytes((len(name),)) + name.encode() + b"\1t\0"
    peer.send_bytes(b"\1\0\1" + len(consume).to_bytes(4) + consume + b"\xce")
    assert peer.expect(m.BasicConsumeOk).consumer_tag == "t"
    qpids = consume.replace(b"\1t\0", b"\1u\0\0\0\0\0")
    peer.send_bytes(b"\1\0\1" + len(qpids).to_bytes(4) + qpids + b"\xce")
    assert peer.expect(m.BasicConsumeOk).consumer_tag == "u"


# --- publish --------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#107")
def test_a_mandatory_message_without_a_queue_comes_back(older: Peer8, name: str) -> None:
    older.publish("", name, b"lost", mandatory=True)
    back = older.expect_content(m.BasicReturn, reply_code=312, reply_text="NO_ROUTE")
    assert back.body == b"lost"


@pytest.mark.rule("0-8#108")
@pytest.mark.parametrize("together", [True, False])
def test_an_immediate_message_that_nobody_takes_comes_back(
    older: Peer8, name: str, together: bool
) -> None:
    older.queue(name, exclusive=True)
    if together:
        older.publish("", name, b"now", immediate=True)
    else:
        older.publish("", name, b"", immediate=True)
    back = older.expect_content(m.BasicReturn, reply_code=313, reply_text="NO_CONSUMERS")
    assert back.body == (b"now" if together else b"")
    assert older.count(name) == 0


@pytest.mark.rule("0-8#108")
def test_an_immediate_message_goes_to_a_consumer_that_has_room(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.BasicQos(prefetch_count=1))
    older.consume(name)
    older.publish("", name, b"first", immediate=True)
    first = older.expect_delivery(b"first")
    older.publish("", name, b"second", immediate=True)
    assert older.expect_content(m.BasicReturn, reply_code=313).body == b"second"
    older.send(m.BasicAck(first.method.delivery_tag))
    older.publish("", name, b"third", immediate=True)
    older.expect_delivery(b"third")


@pytest.mark.rule("0-8#108")
def test_an_immediate_message_goes_to_those_queues_that_deliver_it(older: Peer8, name: str) -> None:
    for queue in (name, f"{name}-idle"):
        older.queue(queue, exclusive=True)
        older.ask(m.QueueBind(queue, "amq.direct", name))
    older.consume(name, no_ack=True)
    older.publish("amq.direct", name, b"now", immediate=True)
    older.expect_delivery(b"now")
    assert older.count(f"{name}-idle") == 0


def test_an_immediate_message_in_a_transaction_is_looked_at_at_the_commit(
    older: Peer8, name: str
) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.TxSelect())
    older.publish("", name, b"early", immediate=True)
    older.expect_silence()
    older.send(m.TxCommit())
    assert older.expect_content(m.BasicReturn, reply_code=313).body == b"early"
    older.expect(m.TxCommitOk)


def test_0_9_1_still_refuses_immediate(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open()
    peer.publish("", "q", b"now", immediate=True)
    text = "NOT_IMPLEMENTED - immediate=true"
    peer.expect_connection_close(540, text, "basic.publish")


# --- order ----------------------------------------------------------------------------------------


# --- acknowledging --------------------------------------------------------------------------------


@pytest.mark.rule("0-8#114", "0-8#006")
def test_a_rejected_message_comes_back_marked(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.publish("", name, b"one")
    first = older.get(name, no_ack=False)
    assert not first.method.redelivered
    older.send(m.BasicReject(first.method.delivery_tag, requeue=True))
    assert older.get(name).method.redelivered


# --- recover --------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#117", "0-8#006")
@pytest.mark.parametrize("requeue", [False, True])
def test_much_that_is_out_comes_again_in_its_order(older: Peer8, name: str, requeue: bool) -> None:
    # More than what comes back at once.
    bodies = [b"%d" % number for number in range(200)]
    older.queue(name, exclusive=True)
    older.consume(name)
    for body in bodies:
        older.publish("", name, body)
    for body in bodies:
        assert not older.expect_delivery(body).method.redelivered
    kind = m.BasicRecover if older.SPEC.version == "0-8" else m.BasicRecoverAsync
    older.send(kind(requeue))
    for body in bodies:
        assert older.expect_delivery(body).method.redelivered
    older.expect_silence()


@pytest.mark.rule("0-8#006")
def test_without_requeue_the_consumer_that_had_a_message_gets_it_again(
    older: Peer8, name: str
) -> None:
    older.ask(m.ChannelOpen(), 2)
    older.queue(name, exclusive=True)
    older.consume(name, consumer_tag="first")
    older.publish("", name, b"one")
    older.expect_delivery(b"one", consumer_tag="first")
    older.consume(name, 2, consumer_tag="second")
    kind = m.BasicRecover if older.SPEC.version == "0-8" else m.BasicRecoverAsync
    for _ in range(3):
        older.send(kind(requeue=False))
        older.expect_delivery(b"one", consumer_tag="first", redelivered=True)
    older.expect_silence()


def test_qpids_recover_is_answered_before_what_comes_again(peer: Peer8, name: str) -> None:
    peer.queue(name, exclusive=True)
    # Arguments, even none in them, are Qpid's layout.
    peer.consume(name, arguments={})
    peer.publish("", name, b"one")
    peer.expect_delivery(b"one")
    for requeue in (False, True):
        peer.send(m.BasicRecover(requeue))
        peer.expect(m.BasicRecoverOk)
        peer.expect_delivery(b"one", redelivered=True)


def test_the_layout_of_a_consume_counts_for_more_than_the_clients_name(
    connect: Connect, name: str
) -> None:
    peer = connect()
    peer.greet()
    method = start_ok()
    method.client_properties = QPID
    peer.send(method)
    peer.expect(m.ConnectionTune)
    peer.send(m.ConnectionTuneOk(0, 0, 0))
    peer.ask(m.ConnectionOpen())
    peer.opened = True
    peer.ask(m.ChannelOpen())
    peer.queue(name, exclusive=True)
    peer.consume(name)
    peer.publish("", name, b"one")
    peer.expect_delivery(b"one")
    peer.send(m.BasicRecover(False))
    peer.expect_delivery(b"one", redelivered=True)
    peer.expect_silence()


def test_a_client_of_0_9_gets_types_of_values_back_that_it_has_sent(
    connect_0_9: Connect, name: str
) -> None:
    sender, other = connect_0_9().open(), connect_0_9().open()
    headers = {"l": Long(-(2**40)), "d": 1.5, "V": None, "T": NOW, "D": Decimal("1.5")}
    sent = {**headers, "S": "x", "I": 1, "F": {"l": Long(2**40), "d": 0.25}}
    sender.queue(name)
    for _ in range(2):
        sender.publish("", name, b"", BasicProperties(headers=sent))
    got = sender.get(name).properties.headers
    assert got == sent
    assert type(got["d"]) is float
    found = other.get(name).properties.headers
    assert (found["l"], found["d"], found["V"]) == (str(-(2**40)), "1.5", "")
    assert found["F"] == {"l": str(2**40), "d": "0.25"}


def test_the_answered_recovers_of_0_9(connect_0_9: Connect, name: str) -> None:
    peer = connect_0_9().open()
    peer.queue(name, exclusive=True)
    peer.consume(name)
    peer.publish("", name, b"one")
    peer.expect_delivery(b"one")
    peer.ask(old.BasicRecoverSync(False))
    peer.expect_delivery(b"one", redelivered=True)
    peer.ask(m.BasicRecover(True))
    peer.expect_delivery(b"one", redelivered=True)


def test_a_window_is_right_after_a_recover(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.BasicQos(prefetch_size=20, prefetch_count=2))
    older.consume(name)
    for body in (b"1" * 10, b"2" * 10, b"3" * 10):
        older.publish("", name, body)
    older.expect_delivery(b"1" * 10)
    older.expect_delivery(b"2" * 10)
    kind = m.BasicRecover if older.SPEC.version == "0-8" else m.BasicRecoverAsync
    older.send(kind(requeue=False))
    older.expect_delivery(b"1" * 10)
    second = older.expect_delivery(b"2" * 10)
    older.expect_silence()
    older.send(m.BasicAck(second.method.delivery_tag, multiple=True))
    older.expect_delivery(b"3" * 10)


# --- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["deliver", "get", "return"])
def test_headers_arrive_in_types_that_the_client_reads(memory: MemorySite, way: str) -> None:
    modern, old_one = Peer(memory, memory.connect()).open(), Peer8(memory, memory.connect()).open()
    headers = {"t": True, "l": 2**40, "a": [1, 2], "n": {"d": 0.5}, "s": "text"}
    properties = BasicProperties(content_type="text/plain", headers=headers, delivery_mode=2)
    old_one.queue("q")
    if way == "return":
        old_one.publish("", "nowhere", b"body", properties, mandatory=True)
        found = old_one.expect_content(m.BasicReturn)
    else:
        modern.publish("", "q", b"body", properties)
        if way == "get":
            found = old_one.get("q")
        else:
            old_one.consume("q", no_ack=True)
            found = old_one.expect_delivery(b"body")
    assert is_plain(found.raw, 2 + 1 + len("text/plain"))
    assert found.properties.headers == {
        "t": 1,
        "l": "1099511627776",
        "a": {"0": 1, "1": 2},
        "n": {"d": "0.5"},
        "s": "text",
    }
    assert found.properties.delivery_mode == 2


def test_headers_added_by_the_broker_arrive_in_such_types_too(memory: MemorySite) -> None:
    peer = Peer8(memory, memory.connect()).open()
    peer.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.queue("q", arguments=arguments)
    peer.publish("", "q", b"one")
    out = peer.get("q", no_ack=False)
    peer.send(m.BasicReject(out.method.delivery_tag, requeue=False))
    found = peer.get("dead")
    assert is_plain(found.raw, 2)
    headers = found.properties.headers
    assert headers is not None
    assert headers["x-death"]["0"]["queue"] == "q"
    assert headers["x-first-death-reason"] == "rejected"


# --- tx -------------------------------------------------------------------------------------------


def test_a_transaction_publishes_and_acknowledges_at_its_commit(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.TxSelect())
    older.publish("", name, b"one")
    assert older.count(name) == 0
    older.ask(m.TxRollback())
    assert older.count(name) == 0
    older.publish("", name, b"two")
    older.ask(m.TxCommit())
    assert older.get(name).body == b"two"


# --- too much -------------------------------------------------------------------------------------
