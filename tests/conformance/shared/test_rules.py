"""Rules of channels, queues, exchanges and messages that 0-8, 0-9, 0-9-1 and 0-10t share."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer
from tests.conformance.shared.versions import WITHOUT_0_9_1, Connect, do
from tests.conformance.sites import MemorySite
from tests.conformance.v08.peer import Peer8, Peer9


def closes_channel(peer: Any, method: m.Method, code: int, text: str) -> None:
    """A method closes the channel with this reason; the channel is opened again."""
    peer.send(method)
    Peer.expect_channel_close(peer, code, text, method.NAME)
    peer.ask(m.ChannelOpen())


def missing(kind: str, name: str) -> str:
    """The text of a refusal for a queue or an exchange that does not exist."""
    return f"NOT_FOUND - no {kind} '{name}' in vhost '/'"


# --- channels -------------------------------------------------------------------------------------


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#118", "0-10t#139")
def test_recover_on_a_channel_with_transactions_closes_it(peer: Any) -> None:
    do(peer, m.TxSelect())
    kind = m.BasicRecoverAsync if peer.SPEC.version == "0-9" else m.BasicRecover
    peer.send(kind(True))
    text = "PRECONDITION_FAILED - basic.recover is not for channels with transactions"
    Peer.expect_channel_close(peer, 406, text, kind.NAME)


# --- queues ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#059", "0-9-1r#060", "0-9-1#025", "0-10t#063")
def test_a_virtual_host_has_room_for_600_queues(peer: Any) -> None:
    names = [peer.queue("", exclusive=True, auto_delete=True) for _ in range(600)]
    for name in names:
        peer.publish("", name, b"x")
    assert [peer.count(name) for name in names] == [1] * 600


@pytest.mark.rule("0-8#060", "0-9-1r#061", "0-10t#065")
def test_each_queue_without_a_name_gets_one_of_its_own(peer: Any) -> None:
    names = [peer.queue("", exclusive=True, auto_delete=True) for _ in range(50)]
    assert len(set(names)) == 50
    assert all(name.startswith("amq.gen-") for name in names)
    for name in names:
        peer.publish("", name, name.encode())
    assert [peer.get(name, no_ack=True).body.decode() for name in names] == names
    # From then on an empty name means the last one.
    peer.publish("", names[-1], b"last")
    assert peer.get("", no_ack=True).body == b"last"


@pytest.mark.rule("0-8#062", "0-9-1r#063", "0-10t#070")
def test_a_passive_declare_counts_and_makes_no_queue(peer: Any, name: str) -> None:
    for _ in range(2):
        closes_channel(peer, m.QueueDeclare(name, passive=True), 404, missing("queue", name))
    peer.queue(name, durable=True)
    peer.publish("", name, b"1")
    peer.publish("", name, b"2")
    # Flags and arguments of a passive declare count for nothing.
    peer.send(m.QueueDeclare(name, passive=True, exclusive=True, arguments={"x-max-length": 1}))
    peer.expect(m.QueueDeclareOk, queue=name, message_count=2, consumer_count=0)
    do(peer, m.QueueDelete(name))


@pytest.mark.rule("0-8#070", "0-9-1r#071", "0-10t#077")
def test_a_binding_made_twice_is_one(peer: Any, name: str) -> None:
    peer.queue(name)
    do(peer, *[m.QueueBind(name, "amq.direct", name)] * 3)
    peer.publish("amq.direct", name, b"once")
    assert peer.count(name) == 1
    do(peer, m.QueueUnbind(name, "amq.direct", name))
    peer.publish("amq.direct", name, b"nowhere")
    assert peer.count(name) == 1


@pytest.mark.rule("0-8#075", "0-9-1r#075", "0-9-1#025", "0-10t#082")
def test_a_queue_has_room_for_200_bindings(peer: Any, name: str) -> None:
    peer.queue(name)
    keys = [f"{name}-{number}" for number in range(200)]
    do(peer, *(m.QueueBind(name, "amq.direct", key) for key in keys))
    for key in keys:
        peer.publish("amq.direct", key, b"x")
    assert peer.count(name) == 200


@pytest.mark.rule("0-8#077", "0-8#078", "0-9-1r#076", "0-10t#086", "0-10t#087")
@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_the_queue_and_the_exchange_of_a_binding_have_to_exist(
    peer: Any, name: str, kind: str
) -> None:
    peer.queue(name)
    none = f"{name}-none"
    ends = (none, "amq.direct") if kind == "queue" else (name, none)
    closes_channel(peer, m.QueueBind(*ends, "k"), 404, missing(kind, none))


@pytest.mark.rule("0-8#079", "0-10t#095")
def test_a_purged_queue_is_empty(peer: Any, name: str) -> None:
    peer.queue(name)
    for _ in range(3):
        peer.publish("", name, b"x")
    assert peer.ask(m.QueuePurge(name)).message_count == 3
    assert peer.count(name) == 0


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#084", "0-8#087", "0-10t#100", "0-10t#104")
@pytest.mark.parametrize("kind", [m.QueuePurge, m.QueueDelete])
def test_a_missing_queue_can_be_neither_purged_nor_deleted(
    peer: Any, name: str, kind: type[m.QueuePurge | m.QueueDelete]
) -> None:
    closes_channel(peer, kind(name), 404, missing("queue", name))


@pytest.mark.rule("0-8#088", "0-9-1r#085", "0-10t#105")
def test_if_unused_keeps_a_queue_with_consumers(peer: Any, name: str) -> None:
    peer.queue(name)
    peer.ask(m.ChannelOpen(), 2)
    tag = peer.consume(name, 2)
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use"
    closes_channel(peer, m.QueueDelete(name, if_unused=True), 406, text)
    peer.publish("", name, b"still consumed")
    peer.expect_delivery(b"still consumed", 2, consumer_tag=tag)
    peer.ask(m.BasicCancel(tag), 2)
    do(peer, m.QueueDelete(name, if_unused=True))


@pytest.mark.rule("0-9-1r#086", "0-10t#106")
def test_if_empty_keeps_a_queue_with_messages(peer: Any, name: str) -> None:
    peer.queue(name)
    peer.publish("", name, b"kept")
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty"
    closes_channel(peer, m.QueueDelete(name, if_empty=True), 406, text)
    assert peer.get(name, no_ack=True).body == b"kept"
    do(peer, m.QueueDelete(name, if_empty=True))


# --- exchanges ------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#043", "0-9-1r#032", "0-9-1#025", "0-10t#044")
def test_a_virtual_host_has_room_for_200_exchanges(peer: Any, name: str) -> None:
    names = [f"{name}-{number}" for number in range(200)]
    do(peer, *(m.ExchangeDeclare(each, "fanout") for each in names))
    do(peer, *(m.ExchangeDeclare(each, passive=True) for each in names))
    do(peer, *(m.ExchangeDelete(each) for each in names))


@pytest.mark.rule("0-8#045", "0-9-1#024", "0-10t#046")
def test_names_of_exchanges_that_begin_with_amq_are_reserved(peer: Any) -> None:
    text = "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"
    closes_channel(peer, m.ExchangeDeclare("amq.mine", "direct"), 403, text)


@pytest.mark.rule("0-8#048", "0-9-1r#036", "0-10t#053")
def test_a_passive_declare_asks_for_an_exchange_and_makes_none(peer: Any, name: str) -> None:
    for _ in range(2):
        method = m.ExchangeDeclare(name, "direct", passive=True)
        closes_channel(peer, method, 404, missing("exchange", name))
    do(peer, m.ExchangeDeclare(name, "direct"))
    do(peer, m.ExchangeDeclare(name, "no matter", passive=True), m.ExchangeDelete(name))


@pytest.mark.rule("0-8#055", "0-8#056", "0-9-1r#045")
def test_if_unused_keeps_an_exchange_with_bindings(peer: Any, name: str) -> None:
    peer.queue(name)
    do(peer, m.ExchangeDeclare(name, "direct"), m.QueueBind(name, name, "k"))
    text = f"PRECONDITION_FAILED - exchange '{name}' in vhost '/' in use"
    closes_channel(peer, m.ExchangeDelete(name, if_unused=True), 406, text)
    peer.publish(name, "k", b"still there")
    assert peer.get(name, no_ack=True).body == b"still there"
    do(peer, m.QueueUnbind(name, name, "k"), m.ExchangeDelete(name, if_unused=True))


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#054", "0-10t#058")
def test_a_missing_exchange_cannot_be_deleted(peer: Any, name: str) -> None:
    closes_channel(peer, m.ExchangeDelete(name), 404, missing("exchange", name))


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#047", "0-10t#049")
def test_an_unknown_type_of_exchange_ends_the_connection(peer: Any, name: str) -> None:
    peer.send(m.ExchangeDeclare(name, "x-no-such-type"))
    text = "COMMAND_INVALID - unknown exchange type 'x-no-such-type'"
    Peer.expect_connection_close(peer, 503, text, "exchange.declare")


@pytest.mark.rule("0-8#105", "0-9-1r#101", "0-10t#128")
def test_a_publish_to_an_internal_exchange_closes_the_channel(peer: Any) -> None:
    peer.publish("amq.rabbitmq.trace", "k", b"refused")
    text = "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"
    Peer.expect_channel_close(peer, 403, text, "basic.publish")


# --- contents -------------------------------------------------------------------------------------


@pytest.mark.rule("0-8#093", "0-9-1r#091")
def test_order_does_not_depend_on_persistence(peer: Any, name: str) -> None:
    peer.queue(name, durable=True)
    bodies = [b"%d" % number for number in range(20)]
    for number, body in enumerate(bodies):
        peer.publish("", name, body, BasicProperties(delivery_mode=1 + number % 2, priority=3))
    peer.consume(name, no_ack=True)
    assert [peer.expect_delivery().body for _ in bodies] == bodies
    do(peer, m.QueueDelete(name))


@pytest.mark.rule("0-8#096", "0-9-1r#096", "0-10t#118")
@pytest.mark.parametrize("prefetch", [1, 2, 7])
def test_no_more_is_sent_ahead_than_the_prefetch_allows(
    peer: Any, name: str, prefetch: int
) -> None:
    peer.queue(name)
    do(peer, m.BasicQos(prefetch_count=prefetch))
    peer.consume(name)
    bodies = [b"%d" % number for number in range(20)]
    for body in bodies:
        peer.publish("", name, body)
    got = [peer.expect_delivery().body for _ in range(prefetch)]
    peer.expect_silence()
    for tag in range(1, 20 - prefetch + 1):
        peer.send(m.BasicAck(tag))
        got.append(peer.expect_delivery().body)
        peer.expect_silence()
    assert got == bodies


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#095", "0-10t#117", "0-10t#118")
def test_a_message_beyond_the_prefetch_size_is_sent_alone(peer: Any, name: str) -> None:
    peer.queue(name)
    do(peer, m.BasicQos(prefetch_size=10, prefetch_count=5))
    for body in (b"x" * 100, b"y" * 100, b"z"):
        peer.publish("", name, body)
    peer.consume(name)
    for tag, body in enumerate((b"x" * 100, b"y" * 100, b"z"), start=1):
        peer.expect_delivery(body, delivery_tag=tag)
        peer.expect_silence()
        peer.send(m.BasicAck(tag))


@pytest.mark.rule("0-8#094", "0-8#097", "0-9-1r#097", "0-9-1#025", "0-10t#119")
def test_100_consumers_share_a_queue_in_turn(peer: Any, name: str) -> None:
    peer.queue(name)
    tags = [peer.consume(name, no_ack=True) for _ in range(100)]
    assert len(set(tags)) == 100
    for number in range(200):
        peer.publish("", name, b"%d" % number)
    served = [peer.expect_delivery(b"%d" % number) for number in range(200)]
    assert [each.method.consumer_tag for each in served] == tags * 2


@pytest.mark.rule("0-8#100", "0-10t#122")
def test_a_consumer_tag_in_use_ends_the_connection(peer: Any, name: str) -> None:
    peer.queue(name)
    peer.consume(name, consumer_tag="tag")
    peer.send(m.BasicConsume(name, "tag"))
    text = "NOT_ALLOWED - attempt to reuse consumer tag 'tag'"
    Peer.expect_connection_close(peer, 530, text, "basic.consume")


@pytest.mark.rule("0-8#101", "0-10t#124")
def test_exclusive_consumption_is_refused_beside_other_consumers(
    connect: Connect, name: str
) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    peer.consume(name)
    text = f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use"
    closes_channel(other, m.BasicConsume(name, exclusive=True), 403, text)


@pytest.mark.rule("0-8#102", "0-9-1r#098", "0-10t#125")
def test_a_consumer_may_be_cancelled_when_its_queue_is_gone(connect: Connect, name: str) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    tag = peer.consume(name)
    do(other, m.QueueDelete(name))
    assert peer.ask(m.BasicCancel(tag)).consumer_tag == tag
    assert peer.ask(m.BasicCancel("never there")).consumer_tag == "never there"


@pytest.mark.rule("0-8#003", "0-10t#002")
def test_delivery_tags_begin_with_one(peer: Any, name: str) -> None:
    peer.queue(name)
    for _ in range(3):
        peer.publish("", name, b"x")
    tags = [peer.get(name, no_ack=False).method.delivery_tag for _ in range(3)]
    assert tags == [1, 2, 3]


@WITHOUT_0_9_1
@pytest.mark.rule("0-8#117", "0-8#006", "0-10t#138")
@pytest.mark.parametrize("requeue", [False, True])
def test_recover_sends_everything_again_without_an_answer(
    peer: Any, name: str, requeue: bool
) -> None:
    peer.queue(name)
    peer.consume(name)
    for body in (b"one", b"two"):
        peer.publish("", name, body)
        peer.expect_delivery(body, redelivered=False)
    kind = m.BasicRecoverAsync if peer.SPEC.version == "0-9" else m.BasicRecover
    peer.send(kind(requeue))
    for body in (b"one", b"two"):
        again = peer.expect_delivery(body, redelivered=True)
        peer.send(m.BasicAck(again.method.delivery_tag))
    peer.expect_silence()
    assert peer.count(name) == 0


@pytest.mark.rule("0-8#112", "0-9-1r#106", "0-10t#133")
@pytest.mark.parametrize("multiple", [True, False])
def test_a_tag_that_was_never_delivered_closes_the_channel(peer: Any, multiple: bool) -> None:
    text = "PRECONDITION_FAILED - unknown delivery tag 7"
    closes_channel(peer, m.BasicAck(7, multiple), 406, text)


@pytest.mark.rule("0-8#001", "0-8#002", "0-9-1r#106", "0-10t#001")
def test_a_delivery_is_acknowledged_on_its_own_channel(peer: Any, name: str) -> None:
    peer.ask(m.ChannelOpen(), 2)
    peer.queue(name)
    peer.publish("", name, b"x")
    tag = peer.get(name, no_ack=False).method.delivery_tag
    peer.send(m.BasicAck(tag), channel=2)
    text = f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    Peer.expect_channel_close(peer, 406, text, "basic.ack", 2)
    peer.send(m.BasicAck(tag))
    peer.expect_silence()


@pytest.mark.rule("0-8#026", "0-9-1r#021")
def test_an_open_channel_is_not_opened_again(peer: Any) -> None:
    peer.send(m.ChannelOpen())
    text = "CHANNEL_ERROR - second 'channel.open' seen"
    Peer.expect_connection_close(peer, 504, text, "channel.open")


@pytest.mark.rule("0-8#090", "0-9-1r#088")
@pytest.mark.parametrize("kind", [Peer8, Peer9, Peer])
@pytest.mark.parametrize("announced", [True, False])
def test_a_full_memory_holds_publishers_back_and_throws_nothing_away(
    kind: type[Peer], announced: bool
) -> None:
    site = MemorySite(memory_high=100_000)
    capabilities = ["connection.blocked"] if announced else []
    writer = kind(site, site.connect()).open(capabilities=capabilities)
    reader = kind(site, site.connect()).open()
    reader.queue("q", durable=True)
    wire: Any = writer.wire
    sent = 0
    while not wire.connection.paused:
        writer.publish("", "q", b"%05d" % sent * 200, BasicProperties(delivery_mode=2))
        sent += 1
    blocked = announced and kind is Peer
    if blocked:
        writer.expect(m.ConnectionBlocked, reason="low on memory")
    assert reader.count("q") == sent
    for number in range(sent):
        assert reader.get("q").body == b"%05d" % number * 200
    assert not wire.connection.paused
    if blocked:
        writer.expect(m.ConnectionUnblocked)
    writer.publish("", "q", b"on it goes")
    assert reader.get("q").body == b"on it goes"
    writer.done()
