"""The queue class: declaring, binding, purging, deleting, and who may do what with whose queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.conformance.raw import Peer

Connect = Callable[[], Peer]


@pytest.mark.rule("0-9-1r#065")
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("auto_delete", [True, False])
@pytest.mark.parametrize("exclusive", [True, False])
def test_an_equal_declaration_is_fine_and_any_other_flag_is_not(
    peer: Peer, durable: bool, auto_delete: bool, exclusive: bool
) -> None:
    flags = {"durable": durable, "auto_delete": auto_delete, "exclusive": exclusive}
    peer.queue("q", **flags)
    peer.publish("", "q", b"one")
    peer.send(m.QueueDeclare(queue="q", **flags))
    peer.expect(m.QueueDeclareOk, queue="q", message_count=1, consumer_count=0)
    for flag in flags:
        if flag == "durable" and exclusive:
            # An exclusive queue goes with its connection whatever was asked for.
            peer.queue("q", **(flags | {flag: not flags[flag]}))
            continue
        peer.send(m.QueueDeclare(queue="q", **(flags | {flag: not flags[flag]})))
        close = peer.expect(m.ChannelClose, reply_code=405 if flag == "exclusive" else 406)
        assert f"'{flag}'" in close.reply_text or flag == "exclusive"
        peer.send(m.ChannelCloseOk())
        peer.ask(m.ChannelOpen())
    assert peer.count("q") == 1


@pytest.mark.rule("0-9-1r#067")
@pytest.mark.parametrize("durable", [True, False])
def test_queues_may_be_durable_or_transient(peer: Peer, durable: bool) -> None:
    peer.queue("q", durable=durable)
    peer.publish("", "q", b"body")
    assert peer.get("q").body == b"body"
    peer.send(m.QueueDeclare(queue="q", durable=not durable))
    assert "'durable'" in peer.expect(m.ChannelClose, reply_code=406).reply_text
    peer.send(m.ChannelCloseOk())


@pytest.mark.rule("0-9-1r#068", "0-9-1r#069")
def test_an_exclusive_queue_ends_with_its_connection_and_a_shared_one_does_not(
    connect: Connect,
) -> None:
    owner, other = connect().open(), connect().open()
    owner.queue("mine", exclusive=True)
    owner.queue("ours")
    other.publish("", "ours", b"shared").expect_silence()
    assert owner.get("ours").body == b"shared"
    other.send(m.BasicGet(queue="mine"))
    assert other.expect(m.ChannelClose, reply_code=405)
    other.send(m.ChannelCloseOk())
    other.ask(m.ChannelOpen())
    owner.close()
    assert other.count("ours") == 0
    other.send(m.QueueDeclare(queue="mine", passive=True))
    text = "NOT_FOUND - no queue 'mine' in vhost '/'"
    other.expect_channel_close(404, text, "queue.declare")


def test_a_name_of_the_brokers_may_only_be_declared_passively(peer: Peer) -> None:
    name = peer.queue("", exclusive=True)
    assert peer.ask(m.QueueDeclare(queue=name, passive=True)).queue == name
    peer.send(m.QueueDeclare(queue=name, exclusive=True))
    text = f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'"
    peer.expect_channel_close(403, text, "queue.declare")
    peer.ask(m.ChannelOpen())
    peer.send(m.QueueDeclare(queue="amq.gen-none", passive=True))
    text = "NOT_FOUND - no queue 'amq.gen-none' in vhost '/'"
    peer.expect_channel_close(404, text, "queue.declare")


@pytest.mark.rule("0-9-1r#072")
@pytest.mark.parametrize("exchange", ["amq.topic", "amq.fanout", "amq.headers"])
def test_a_queue_with_several_matching_bindings_gets_one_copy(peer: Peer, exchange: str) -> None:
    peer.queue("q")
    for key in ("a.b", "a.*", "#", "*.b"):
        peer.ask(m.QueueBind("q", exchange, key))
    peer.publish(exchange, "a.b", b"once")
    assert peer.count("q") == 1


@pytest.mark.rule("0-9-1r#073")
def test_a_durable_queue_may_be_bound_to_a_transient_exchange(peer: Peer) -> None:
    peer.queue("q", durable=True)
    peer.ask(m.ExchangeDeclare("x", "direct", durable=False))
    peer.ask(m.QueueBind("q", "x", "k"))
    peer.publish("x", "k", b"body")
    assert peer.get("q").body == b"body"


@pytest.mark.rule("0-9-1r#058")
def test_a_message_reaches_a_queue_through_its_bindings_alone(peer: Peer) -> None:
    peer.queue("q")
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers"):
        peer.publish(exchange, "q", b"not bound")
    assert peer.count("q") == 0
    peer.ask(m.QueueBind("q", "amq.direct", "q"))
    peer.publish("amq.direct", "q", b"bound")
    assert peer.get("q").body == b"bound"


def test_an_empty_name_means_the_queue_declared_last_on_the_channel(peer: Peer) -> None:
    peer.ask(m.ChannelOpen(), 2)
    peer.queue("first")
    peer.ask(m.QueueDeclare(queue="other"), 2)
    name = peer.queue("", exclusive=True)
    peer.ask(m.QueueBind("", "amq.direct", ""))
    peer.publish("amq.direct", name, b"body")
    peer.send(m.BasicGet())
    assert peer.expect_content(m.BasicGetOk).body == b"body"
    assert peer.ask(m.QueueDelete()).message_count == 0
    peer.send(m.QueueDeclare(queue=name, passive=True))
    peer.expect(m.ChannelClose, reply_code=404)
    peer.send(m.ChannelCloseOk())


@pytest.mark.rule("0-9-1r#082")
def test_a_purge_leaves_what_is_out_for_acknowledgement(peer: Peer) -> None:
    peer.queue("q")
    for number in range(5):
        peer.publish("", "q", b"%d" % number)
    tags = [peer.get("q", no_ack=False).method.delivery_tag for _ in range(2)]
    peer.send(m.QueuePurge(queue="q"))
    peer.expect(m.QueuePurgeOk, message_count=3)
    assert peer.count("q") == 0
    peer.send(m.BasicNack(tags[-1], multiple=True, requeue=True))
    assert [peer.get("q").body, peer.get("q").body] == [b"0", b"1"]


def test_a_deleted_queue_takes_its_messages_and_bindings_along(peer: Peer) -> None:
    peer.queue("q")
    peer.ask(m.QueueBind("q", "amq.direct", "gone"))
    peer.publish("", "q", b"1").publish("amq.direct", "gone", b"2")
    assert peer.ask(m.QueueDelete(queue="q")).message_count == 2
    peer.queue("q")
    peer.publish("amq.direct", "gone", b"3", mandatory=True)
    assert peer.expect_content(m.BasicReturn).body == b"3"
    assert peer.count("q") == 0


def test_an_auto_delete_queue_goes_with_its_last_consumer(peer: Peer) -> None:
    peer.queue("q", auto_delete=True)
    peer.publish("", "q", b"x")
    peer.get("q")
    tags = [peer.consume("q") for _ in range(2)]
    peer.ask(m.BasicCancel(tags[0]))
    assert peer.ask(m.QueueDeclare("q", passive=True)).consumer_count == 1
    peer.ask(m.BasicCancel(tags[1]))
    peer.send(m.QueueDeclare("q", passive=True))
    peer.expect(m.ChannelClose, reply_code=404)
    peer.send(m.ChannelCloseOk())


NOWAIT: list[m.Method] = [
    m.QueueDeclare("q", nowait=True),
    m.QueueBind("q", "amq.direct", "k", nowait=True),
    m.QueuePurge("q", nowait=True),
    m.ExchangeDeclare("x", "direct", nowait=True),
    m.ExchangeBind("x", "amq.direct", "k", nowait=True),
    m.ExchangeUnbind("x", "amq.direct", "k", nowait=True),
    m.ExchangeDelete("x", nowait=True),
    m.BasicConsume("q", "t", nowait=True),
    m.BasicCancel("t", nowait=True),
    m.QueueDelete("q", nowait=True),
    m.ConfirmSelect(nowait=True),
]


@pytest.mark.rule("0-9-1r#126")
def test_methods_sent_with_no_wait_get_no_reply_but_take_effect(peer: Peer) -> None:
    types = {spec.type for spec in AMQP_0_9_1.methods}
    with_nowait = {kind for kind in types if "nowait" in kind.__struct_fields__}
    assert with_nowait == {type(method) for method in NOWAIT}
    for method in NOWAIT:
        peer.send(method)
        peer.expect_silence()
        if isinstance(method, m.QueueBind):
            peer.publish("amq.direct", "k", b"x")
            assert peer.get("q").body == b"x"
    peer.publish("", "nowhere", b"confirmed")
    peer.expect(m.BasicAck, delivery_tag=1)


def test_a_mistake_with_no_wait_is_told_all_the_same(peer: Peer) -> None:
    peer.send(m.QueueBind("none", "amq.direct", "k", nowait=True))
    peer.expect_channel_close(404, "NOT_FOUND - no queue 'none' in vhost '/'", "queue.bind")
