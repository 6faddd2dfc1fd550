"""Class queue of 0-8 and 0-9."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import Peer8

NO_NAME = "NOT_ALLOWED - no previously declared queue"


@pytest.mark.rule("0-8#059")
def test_many_queues_fit_in_a_virtual_host(peer: Peer8, name: str) -> None:
    for number in range(300):
        peer.queue(f"{name}-{number}", exclusive=True)
    assert peer.count(f"{name}-0") == peer.count(f"{name}-299") == 0


@pytest.mark.rule("0-8#060")
def test_a_queue_without_a_name_gets_one_of_its_own(older: Peer8) -> None:
    first, second = older.queue("", exclusive=True), older.queue("", exclusive=True)
    assert first
    assert second
    assert first != second
    # From then on an empty name means the last one.
    older.publish("", second, b"one")
    assert older.get("").body == b"one"


@pytest.mark.rule("0-8#061")
def test_names_that_begin_with_amq_end_the_connection(older: Peer8) -> None:
    older.send(m.QueueDeclare("amq.mine"))
    text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    older.expect_connection_close(403, text, (50, 10))


@pytest.mark.rule("0-8#062")
def test_a_passive_declare_of_a_missing_queue_closes_the_channel(older: Peer8, name: str) -> None:
    older.send(m.QueueDeclare(name, passive=True))
    older.expect_channel_close(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", (50, 10))


@pytest.mark.rule("0-8#064", "0-8#065", "0-8#069")
@pytest.mark.parametrize("durable", [False, True])
def test_a_queue_that_is_there_is_taken_as_it_is(older: Peer8, name: str, durable: bool) -> None:
    older.queue(name, durable=durable)
    older.publish("", name, b"one")
    again = older.ask(m.QueueDeclare(name, durable=not durable, auto_delete=True))
    assert again.message_count == 1
    older.consume(name, consumer_tag="t", no_ack=True)
    older.expect_delivery(b"one")
    older.ask(m.BasicCancel("t"))
    # It did not become one that goes with its last consumer.
    assert older.count(name) == 0
    older.ask(m.QueueDelete(name))


def test_arguments_of_another_version_stay_in_the_way_of_no_0_8_client(
    older: Peer8, name: str
) -> None:
    older.queue(name, arguments={"x-max-length": 5})
    older.queue(name)
    older.send(m.QueueDeclare(name, arguments={"x-max-length": 6}))
    older.expect(m.ChannelClose, reply_code=406)
    older.send(m.ChannelCloseOk())
    older.ask(m.ChannelOpen())
    older.ask(m.QueueDelete(name))


@pytest.mark.rule("0-8#066", "0-8#067")
def test_an_exclusive_queue_is_its_connections_alone(connect_older: Connect, name: str) -> None:
    owner, other = connect_older().open(), connect_older().open()
    owner.queue(name, exclusive=True)
    other.send(m.QueueDeclare(name, exclusive=True))
    close = other.expect(m.ChannelClose, reply_code=405)
    assert close.reply_text.startswith("RESOURCE_LOCKED - ")
    other.send(m.ChannelCloseOk())
    owner.close()
    other.ask(m.ChannelOpen())
    other.queue(name, exclusive=True)


@pytest.mark.rule("0-8#070")
def test_the_same_binding_twice_counts_once(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    for _ in range(2):
        older.ask(m.QueueBind(name, "amq.direct", name))
    older.publish("amq.direct", name, b"one")
    assert older.count(name) == 1


@pytest.mark.rule("0-8#071")
def test_a_bind_that_makes_no_sense_ends_the_connection(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    arguments = {"x-match": "some"}
    older.send(m.QueueBind(name, "amq.headers", "", arguments=arguments))
    close = older.expect(m.ConnectionClose, reply_code=530)
    assert (close.class_id, close.method_id) == (50, 20)
    older.opened = False


@pytest.mark.rule("0-8#072")
def test_a_durable_queue_is_not_bound_to_a_transient_exchange(older: Peer8, name: str) -> None:
    older.queue(name, durable=True)
    older.ask(m.ExchangeDeclare(name, "direct"))
    older.send(m.QueueBind(name, name, "k"))
    text = (
        f"PRECONDITION_FAILED - queue '{name}' in vhost '/' is durable and exchange '{name}' is not"
    )
    older.expect_channel_close(406, text, (50, 20))
    older.ask(m.ChannelOpen())
    older.ask(m.QueueDelete(name))
    older.ask(m.ExchangeDelete(name))


@pytest.mark.rule("0-8#075")
def test_many_bindings_fit_on_a_queue(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    keys = [f"{name}-{number}" for number in range(20)]
    for key in keys:
        older.ask(m.QueueBind(name, "amq.direct", key))
    for key in keys:
        older.publish("amq.direct", key)
    assert older.count(name) == len(keys)


@pytest.mark.rule("0-8#076", "0-8#083", "0-8#086", "0-8#099", "0-8#111")
@pytest.mark.parametrize(
    "method",
    [
        m.QueueBind("", "amq.direct", "k"),
        m.QueuePurge(""),
        m.QueueDelete(""),
        m.BasicConsume(""),
        m.BasicGet(""),
    ],
    ids=lambda method: method.NAME,
)
def test_no_name_means_the_last_queue_and_nothing_without_one(
    older: Peer8, method: m.Method
) -> None:
    older.send(method)
    older.expect_connection_close(530, NO_NAME, method.NAME)


@pytest.mark.rule("0-8#077", "0-8#078")
@pytest.mark.parametrize("missing", ["queue", "exchange"])
def test_what_is_bound_has_to_be_there(older: Peer8, name: str, missing: str) -> None:
    older.queue(name, exclusive=True)
    queue, exchange = (
        (f"{name}-missing", "amq.direct") if missing == "queue" else (name, f"{name}-missing")
    )
    older.send(m.QueueBind(queue, exchange, "k"))
    text = f"NOT_FOUND - no {missing} '{name}-missing' in vhost '/'"
    older.expect_channel_close(404, text, (50, 20))


def test_a_binding_can_be_taken_away(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.QueueBind(name, "amq.direct", name))
    older.ask(m.QueueUnbind(name, "amq.direct", name))
    older.publish("amq.direct", name, b"nowhere")
    assert older.count(name) == 0


@pytest.mark.rule("0-8#079")
def test_a_queue_is_empty_once_it_is_purged(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    for body in (b"one", b"two"):
        older.publish("", name, body)
    assert older.ask(m.QueuePurge(name)).message_count == 2
    assert older.count(name) == 0


@pytest.mark.rule("0-8#080")
def test_a_purge_spares_what_is_out(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.ask(m.TxSelect())
    older.publish("", name, b"out").publish("", name, b"ready")
    older.ask(m.TxCommit())
    out = older.get(name, no_ack=False)
    assert older.ask(m.QueuePurge(name)).message_count == 1
    older.send(m.BasicReject(out.method.delivery_tag, requeue=True))
    older.ask(m.TxCommit())
    assert older.get(name).body == b"out"


@pytest.mark.rule("0-8#084", "0-8#087")
@pytest.mark.parametrize("kind", [m.QueuePurge, m.QueueDelete])
def test_a_missing_queue_can_be_neither_purged_nor_deleted(
    older: Peer8, name: str, kind: type[m.QueuePurge] | type[m.QueueDelete]
) -> None:
    older.send(kind(name))
    text = f"NOT_FOUND - no queue '{name}' in vhost '/'"
    older.expect_channel_close(404, text, kind.NAME)


@pytest.mark.rule("0-8#088")
def test_a_queue_with_consumers_stays_if_unused_is_asked_for(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.consume(name, consumer_tag="t")
    older.send(m.QueueDelete(name, if_unused=True))
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use"
    older.expect_channel_close(406, text, (50, 40))
    older.ask(m.ChannelOpen())
    assert older.count(name) == 0
    older.ask(m.QueueDelete(name, if_unused=True))


def test_a_queue_with_messages_stays_if_empty_is_asked_for(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.publish("", name, b"one")
    older.send(m.QueueDelete(name, if_empty=True))
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty"
    older.expect_channel_close(406, text, (50, 40))
