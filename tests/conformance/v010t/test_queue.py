"""The class queue: declare, bind, unbind, purge, delete (class 50)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


@pytest.mark.rule("0-10t#062")
def test_a_new_queue_is_bound_to_the_default_exchange_by_its_name(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"hello")
    assert peer.get(name, no_ack=True).body == b"hello"


@pytest.mark.rule("0-10t#066")
def test_a_reserved_name_ends_the_connection(peer: Peer):
    peer.send(m.QueueDeclare("amq.mine"))
    peer.expect_connection_close(530, "queue.declare", "amq.mine")


@pytest.mark.rule("0-10t#066")
def test_a_reserved_name_may_be_asked_for_passively(peer: Peer):
    made = peer.queue(exclusive=True, auto_delete=True)
    assert made.startswith("amq.")
    assert peer.queue(made, passive=True) == made


@pytest.mark.rule("0-10t#068")
def test_another_alternate_exchange_is_an_error_of_the_channel(peer: Peer, name: str):
    peer.queue(name, alternate_exchange="amq.fanout")
    peer.queue(name, alternate_exchange="amq.fanout")
    peer.queue(name)
    peer.send(m.QueueDeclare(name, alternate_exchange="amq.topic"))
    peer.expect_channel_close(504, "queue.declare", "amq.fanout")


@pytest.mark.rule("0-10t#069")
def test_an_exchange_that_is_a_queues_alternate_is_not_deleted(peer: Peer, name: str):
    peer.run(m.ExchangeDeclare(name, "fanout"))
    peer.queue(name, alternate_exchange=name)
    peer.send(m.ExchangeDelete(name))
    peer.expect_channel_close(504, "exchange.delete", "alternate exchange", name)
    peer.ask(m.ChannelOpen())
    peer.ask(m.QueueDelete(name))
    peer.run(m.ExchangeDelete(name))


@pytest.mark.rule("0-10t#101")
def test_messages_left_in_a_deleted_queue_go_to_its_alternate_exchange(peer: Peer, name: str):
    other = f"{name}-other"
    peer.run(m.ExchangeDeclare(name, "fanout"))
    peer.queue(other)
    peer.run(m.QueueBind(other, name))
    peer.queue(name, alternate_exchange=name)
    for body in (b"one", b"two"):
        peer.publish("", name, body)
    peer.ask(m.QueueDelete(name))
    assert [peer.get(other, no_ack=True).body for _ in range(2)] == [b"one", b"two"]


@pytest.mark.rule("0-10t#067")
def test_without_an_alternate_exchange_what_is_left_is_dropped(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"one")
    assert peer.ask(m.QueueDelete(name)).message_count == 1
    peer.expect_silence()


@pytest.mark.rule("0-10t#072", "0-10t#073", "0-10t#076")
@pytest.mark.parametrize("durable", [True, False])
def test_durable_and_auto_delete_of_an_existing_queue_do_not_count(
    peer: Peer, name: str, durable: bool
):
    peer.queue(name, durable=durable, auto_delete=durable)
    assert peer.queue(name, durable=not durable, auto_delete=not durable) == name
    tag = peer.consume(name)
    peer.ask(m.BasicCancel(tag))
    if durable:
        peer.send(m.QueueDeclare(name, passive=True))
        peer.expect_channel_close(404, "queue.declare")
    else:
        assert peer.queue(name, passive=True) == name


@pytest.mark.rule("0-10t#074", "0-10t#075")
@pytest.mark.parametrize(
    "method",
    [m.QueueDeclare(), m.QueueBind(exchange="amq.direct"), m.BasicConsume(), m.BasicGet()],
    ids=lambda method: method.NAME,
)
def test_an_exclusive_queue_is_locked_for_other_connections(
    connect: Connect, name: str, method: m.Method
):
    peer, other = connect().open(), connect().open()
    peer.queue(name, exclusive=True, auto_delete=True)
    asked = type(method)(**{f: getattr(method, f) for f in method.__struct_fields__})
    asked.queue = name  # type: ignore[attr-defined]
    other.send(asked)
    other.expect_channel_close(405, method.NAME, name)
    assert peer.queue(name, exclusive=True, auto_delete=True) == name


def test_an_exclusive_queue_goes_with_its_connection_when_it_is_auto_delete(
    connect: Connect, name: str
):
    peer, other = connect().open(), connect().open()
    peer.queue(name, exclusive=True, auto_delete=True)
    peer.close()
    other.send(m.QueueDeclare(name, passive=True))
    other.expect_channel_close(404, "queue.declare")


def test_an_exclusive_queue_that_is_not_auto_delete_is_free_after_its_connection(
    connect: Connect, name: str
):
    peer, other = connect().open(), connect().open()
    peer.queue(name, exclusive=True)
    peer.publish("", name, b"kept")
    peer.settle()
    peer.close()
    assert other.get(name, no_ack=True).body == b"kept"


@pytest.mark.rule("0-10t#078", "0-10t#079")
def test_a_durable_queue_is_not_bound_to_a_transient_exchange(peer: Peer, name: str):
    peer.queue(name, durable=True)
    peer.run(m.ExchangeDeclare(name, "direct"))
    peer.send(m.QueueBind(name, name, "k"))
    peer.expect_connection_close(530, "queue.bind", "transient")


@pytest.mark.rule("0-10t#078", "0-10t#081")
def test_a_bind_to_an_internal_exchange_is_refused(peer: Peer, name: str):
    peer.queue(name)
    peer.send(m.QueueBind(name, "amq.rabbitmq.trace", "k"))
    peer.expect_connection_close(530, "queue.bind", "internal")


@pytest.mark.rule("0-10t#082")
def test_a_queue_may_have_many_bindings(peer: Peer, name: str):
    peer.queue(name)
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        peer.run(m.QueueBind(name, exchange, name))


@pytest.mark.rule("0-10t#083")
def test_a_message_comes_once_however_many_bindings_match(peer: Peer, name: str):
    peer.queue(name)
    for key in ("animals.*", "animals.dogs.*", "animals.dogs.chihuahua", "animals.#"):
        peer.run(m.QueueBind(name, "amq.topic", f"{name}.{key}"))
    peer.publish("amq.topic", f"{name}.animals.dogs.chihuahua", b"once")
    assert peer.get(name, no_ack=True).body == b"once"
    peer.send(m.BasicGet(name))
    peer.expect(m.BasicGetEmpty)


@pytest.mark.rule("0-10t#078", "0-10t#085")
def test_no_name_and_no_queue_declared_before_ends_the_connection(peer: Peer):
    peer.send(m.QueueBind("", "amq.direct", "k"))
    peer.expect_connection_close(530, "queue.bind", "name of the queue is empty")


def test_no_name_means_the_queue_declared_last_which_is_its_key_too(peer: Peer, name: str):
    peer.queue(name)
    peer.run(m.QueueBind("", "amq.direct", ""))
    peer.publish("amq.direct", name, b"there")
    assert peer.get("", no_ack=True).body == b"there"


@pytest.mark.rule("0-10t#042", "0-10t#078", "0-10t#088")
def test_a_bind_to_the_default_exchange_is_refused(peer: Peer, name: str):
    peer.queue(name)
    peer.send(m.QueueBind(name, "", "k"))
    peer.expect_connection_close(530, "queue.bind", "name of the exchange is empty")


@pytest.mark.rule("0-10t#089")
def test_a_direct_exchange_passes_a_message_on_when_the_keys_are_equal(peer: Peer, name: str):
    peer.queue(name)
    peer.run(m.QueueBind(name, "amq.direct", name))
    peer.publish("amq.direct", f"{name}x", b"no")
    peer.publish("amq.direct", name, b"yes")
    assert peer.get(name, no_ack=True).body == b"yes"


@pytest.mark.rule("0-10t#090")
def test_undoing_a_binding_that_there_is_not_ends_the_connection(peer: Peer, name: str):
    peer.queue(name)
    peer.send(m.QueueUnbind(name, "amq.direct", "k"))
    peer.expect_connection_close(530, "queue.unbind", "not bound")


@pytest.mark.rule("0-10t#092")
def test_unbinding_a_queue_that_there_is_not_closes_the_channel(peer: Peer, name: str):
    peer.send(m.QueueUnbind(name, "amq.direct", "k"))
    peer.expect_channel_close(404, "queue.unbind", name)


@pytest.mark.rule("0-10t#093")
def test_unbinding_from_an_exchange_that_there_is_not_closes_the_channel(peer: Peer, name: str):
    peer.queue(name)
    peer.send(m.QueueUnbind(name, f"{name}-none", "k"))
    peer.expect_channel_close(404, "queue.unbind", f"{name}-none")


@pytest.mark.rule("0-10t#042", "0-10t#094")
def test_an_unbind_from_the_default_exchange_is_refused(peer: Peer, name: str):
    peer.queue(name)
    peer.send(m.QueueUnbind(name, "", name))
    peer.expect_connection_close(530, "queue.unbind", "name of the exchange is empty")


@pytest.mark.rule("0-10t#096")
def test_a_purge_leaves_what_is_delivered_and_not_acknowledged(peer: Peer, name: str):
    peer.run(m.TxSelect())
    peer.queue(name)
    peer.publish("", name, b"out")
    peer.run(m.TxCommit())
    out = peer.get(name)
    assert peer.ask(m.QueuePurge(name)).message_count == 0
    peer.run(m.BasicReject(out.method.delivery_tag, requeue=True))
    peer.run(m.TxRollback())


@pytest.mark.rule("0-10t#099", "0-10t#103")
@pytest.mark.parametrize("method", [m.QueuePurge(), m.QueueDelete()], ids=lambda each: each.NAME)
def test_purge_and_delete_need_a_name_or_a_queue_declared_before(peer: Peer, method: m.Method):
    peer.send(method)
    peer.expect_connection_close(530, method.NAME, "name of the queue is empty")


@pytest.mark.parametrize(
    "method",
    [m.QueueDeclare(nowait=True), m.QueuePurge(nowait=True), m.QueueDelete(nowait=True)],
    ids=lambda each: each.NAME,
)
def test_with_nowait_completion_is_the_only_answer(peer: Peer, name: str, method: m.Method):
    peer.queue(name)
    asked = type(method)(name, nowait=True)  # type: ignore[call-arg]
    peer.run(asked)
    assert peer.received() == 1


@pytest.mark.rule("0-10t#074", "0-10t#075")
def test_an_exclusive_queue_is_the_next_connections_when_its_owner_closed(
    connect: Connect, name: str
):
    first, second, third = connect().open(), connect().open(), connect().open()
    first.queue(name, exclusive=True)
    first.publish("", name, b"kept")
    first.settle()
    second.send(m.QueueDeclare(name, exclusive=True))
    second.expect_channel_close(405, "queue.declare", name)
    first.close()
    third.queue(name, exclusive=True)
    third.queue(name, exclusive=True)
    assert third.get(name, no_ack=True).body == b"kept"
    fourth = connect().open()
    fourth.send(m.QueueDeclare(name, exclusive=True))
    fourth.expect_channel_close(405, "queue.declare", name)
    third.close()
    connect().open().queue(name, exclusive=True)


def test_a_queue_that_others_consume_from_cannot_be_made_exclusive(connect: Connect, name: str):
    first, second = connect().open(), connect().open()
    first.queue(name)
    first.consume(name)
    second.send(m.QueueDeclare(name, exclusive=True))
    second.expect_channel_close(405, "queue.declare", "is used by others")
    first.queue(name, exclusive=True)


@pytest.mark.parametrize("how", ["close", "auto-delete", "delete"])
def test_outstanding_messages_go_to_the_alternate_exchange_when_the_queue_goes(
    connect: Connect, name: str, how: str
):
    first, second = connect().open(), connect().open()
    letters = second.queue(exclusive=True)
    second.run(m.QueueBind(letters, "amq.fanout"))
    first.queue(name, alternate_exchange="amq.fanout", exclusive=True, auto_delete=how != "delete")
    for body in (b"1", b"2", b"3"):
        first.publish("", name, body)
    for _ in range(2):
        first.get(name)
    if how == "close":
        first.close()
    elif how == "delete":
        first.ask(m.QueueDelete(name))
    else:
        tag = first.consume(name, no_ack=True)
        first.expect_content(m.BasicDeliver)
        first.ask(m.BasicCancel(tag))
    found = [second.get(letters, no_ack=True).body for _ in range(2 + (how != "auto-delete"))]
    assert found == [b"1", b"2", b"3"][: len(found)]
