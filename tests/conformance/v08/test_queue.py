"""Class queue of 0-8 and 0-9."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import Peer8

NO_NAME = "NOT_ALLOWED - no previously declared queue"


@pytest.mark.rule("0-8#061")
def test_names_that_begin_with_amq_end_the_connection(older: Peer8) -> None:
    older.send(m.QueueDeclare("amq.mine"))
    text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    older.expect_connection_close(403, text, (50, 10))


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
