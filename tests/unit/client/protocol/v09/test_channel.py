"""The channel's half of the core, driven by octets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    ConnectionLost,
    ConsumerCancelled,
    NotFound,
    PreconditionFailed,
    PublishNacked,
    PublishReturned,
)
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ChannelPhase, Mode
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.frames import BODY, HEADER, FrameSink
from tests.unit.client.octets import Peer, content_frames, delivery, method_frame

EMPTY = Properties(b"\x00\x00")


def message(body: bytes = b"x", key: str = "q", exchange: str = "") -> WireMessage:
    return WireMessage(exchange, key, EMPTY, body)


class Ears:
    """A consumer that remembers what it was told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.tags: list[int] = []
        self.ends: list[AMQPError | None] = []

    def hear(
        self,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> None:
        self.bodies.append(body)
        self.tags.append(tag)


@pytest.fixture(params=[0, 1])
def peer(request: pytest.FixtureRequest) -> Peer:
    """An open connection, fed in one piece and octet by octet."""
    peer = Peer(step=request.param)
    peer.open()
    return peer


def subscribe(peer: Peer, channel: CoreChannel, ears: Ears, tag: str = "t", **options: Any) -> None:
    call = channel.consume("q", ears.hear, ears.ends.append, tag=tag, **options)
    peer.written()
    peer.send(m.BasicConsumeOk(tag), channel=channel.number)
    assert call.value().tag == tag


def test_every_verb_sends_its_method_and_takes_its_answer(peer: Peer) -> None:
    channel = peer.channel()
    table: list[tuple[Callable[[], Call[Any]], m.Method, m.Method, object]] = [
        (
            lambda: channel.declare_exchange("x", "topic", durable=True, arguments={"a": 1}),
            m.ExchangeDeclare("x", "topic", durable=True, arguments={"a": 1}),
            m.ExchangeDeclareOk(),
            None,
        ),
        (
            lambda: channel.delete_exchange("x", if_unused=True),
            m.ExchangeDelete("x", if_unused=True),
            m.ExchangeDeleteOk(),
            None,
        ),
        (
            lambda: channel.bind_exchange("d", "s", "k", {"b": 2}),
            m.ExchangeBind("d", "s", "k", arguments={"b": 2}),
            m.ExchangeBindOk(),
            None,
        ),
        (
            lambda: channel.unbind_exchange("d", "s", "k"),
            m.ExchangeUnbind("d", "s", "k"),
            m.ExchangeUnbindOk(),
            None,
        ),
        (
            lambda: channel.bind_queue("q", "x", "k"),
            m.QueueBind("q", "x", "k"),
            m.QueueBindOk(),
            None,
        ),
        (
            lambda: channel.unbind_queue("q", "x", "k"),
            m.QueueUnbind("q", "x", "k"),
            m.QueueUnbindOk(),
            None,
        ),
        (lambda: channel.purge_queue("q"), m.QueuePurge("q"), m.QueuePurgeOk(7), 7),
        (
            lambda: channel.delete_queue("q", if_empty=True),
            m.QueueDelete("q", if_empty=True),
            m.QueueDeleteOk(9),
            9,
        ),
        (lambda: channel.qos(10), m.BasicQos(0, 10, False), m.BasicQosOk(), None),
        (lambda: channel.qos(5, shared=True), m.BasicQos(0, 5, True), m.BasicQosOk(), None),
        (lambda: channel.recover(), m.BasicRecover(True), m.BasicRecoverOk(), None),
        (lambda: channel.commit(), m.TxCommit(), m.TxCommitOk(), None),
        (lambda: channel.rollback(), m.TxRollback(), m.TxRollbackOk(), None),
    ]
    for ask, sent, answer, result in table:
        call = ask()
        assert peer.methods() == [sent]
        assert not call.done
        peer.send(answer, channel=1)
        assert call.value() == result


def test_declaring_a_queue_tells_its_name_and_counts(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.declare_queue("", exclusive=True)
    assert peer.methods() == [m.QueueDeclare("", exclusive=True)]
    peer.send(m.QueueDeclareOk("amq.gen-1", 3, 2), channel=1)
    info = call.value()
    assert (info.name, info.message_count, info.consumer_count) == ("amq.gen-1", 3, 2)


def test_calls_may_overlap_and_are_answered_in_their_order(peer: Peer) -> None:
    channel = peer.channel()
    first, second = channel.purge_queue("a"), channel.purge_queue("b")
    peer.send(m.QueuePurgeOk(1), m.QueuePurgeOk(2), channel=1)
    assert (first.value(), second.value()) == (1, 2)


def test_answers_of_consumers_may_come_late_and_in_another_order(peer: Peer) -> None:
    channel = peer.channel()
    one, two = Ears(), Ears()
    first = channel.consume("q", one.hear, one.ends.append, tag="one")
    second = channel.consume("q", two.hear, two.ends.append, tag="two")
    purge = channel.purge_queue("q")
    peer.written()
    peer.send(m.QueuePurgeOk(4), m.BasicConsumeOk("two"), channel=1)
    assert (first.done, purge.value(), second.value().tag) == (False, 4, "two")
    cancel = channel.cancel("two")
    qos = channel.qos(1)
    peer.send(m.BasicQosOk(), m.BasicConsumeOk("one"), m.BasicCancelOk("two"), channel=1)
    assert first.value().tag == "one"
    assert qos.done
    assert cancel.done
    assert list(channel.consumers) == ["one"]


def test_an_answer_to_another_question_breaks_the_protocol(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.purge_queue("a")
    peer.written()
    peer.send(m.QueueBindOk(), channel=1)
    with pytest.raises(ConnectionLost, match=r"queue.bind-ok.*queue.purge"):
        call.value()


def test_an_answer_that_nobody_asked_for_breaks_the_protocol(peer: Peer) -> None:
    peer.channel()
    peer.send(m.QueueBindOk(), channel=1)
    with pytest.raises(ConnectionLost, match="broke the protocol"):
        peer.core.closed.value()


def test_a_channel_that_the_broker_closes_fails_everything_on_it_and_only_there(peer: Peer) -> None:
    channel, other = peer.channel(), peer.channel()
    ears = Ears()
    subscribe(peer, channel, ears)
    heard: list[AMQPError] = []
    channel.on_closed = heard.append
    call = channel.declare_queue("nope", passive=True)
    confirm = channel.publish_one(message(), 0)
    peer.written()
    peer.send(m.ChannelClose(404, "NOT_FOUND - no queue 'nope'", 50, 10), channel=1)
    (close_ok,) = peer.written()
    assert isinstance(close_ok.method, m.ChannelCloseOk)
    assert close_ok.channel == 1
    for waiting in (call, confirm):
        with pytest.raises(NotFound) as caught:
            waiting.value()
        assert caught.value.code == 404
        assert caught.value.text == "NOT_FOUND - no queue 'nope'"
        assert (caught.value.class_id, caught.value.method_id) == (50, 10)
    assert len(heard) == 1
    assert isinstance(ears.ends[0], NotFound)
    with pytest.raises(NotFound):
        channel.purge_queue("q")
    assert other.state is ChannelPhase.OPEN
    assert peer.channel().number == 1


def test_closing_a_channel_drops_what_is_on_its_way(peer: Peer) -> None:
    channel = peer.channel()
    ears = Ears()
    subscribe(peer, channel, ears)
    pending = channel.purge_queue("q")
    call = channel.close()
    peer.written()
    with pytest.raises(ClientClosed):
        pending.value()
    peer.feed(delivery(b"late", consumer_tag="t", tag=1))
    peer.feed(delivery(b"later" * 2000, consumer_tag="t", tag=2))
    peer.send(m.QueuePurgeOk(1), m.ChannelCloseOk(), channel=1)
    call.value()
    assert ears.bodies == []
    assert channel.state is ChannelPhase.CLOSED
    assert peer.core.scanner.pending == 0
    assert channel.close().done


def test_both_sides_may_close_a_channel_at_once(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.close()
    peer.written()
    peer.send(m.ChannelClose(406, "PRECONDITION_FAILED - x", 60, 80), channel=1)
    assert peer.methods() == [m.ChannelCloseOk()]
    assert not call.done
    peer.send(m.ChannelCloseOk(), channel=1)
    call.value()


def test_a_connection_that_breaks_while_a_channel_closes_has_closed_it(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.close()
    peer.core.eof()
    call.value()


# --- publishing ---------------------------------------------------------------------------------


def test_confirms_are_selected_with_the_first_publish_and_only_once(peer: Peer) -> None:
    channel = peer.channel()
    channel.publish_one(message(), 0)
    channel.publish_one(message(), 0)
    names = [method.NAME for method in peer.methods()]
    assert names == ["confirm.select", "basic.publish", "basic.publish"]
    assert channel.mode is Mode.CONFIRM


def test_a_publish_is_confirmed_alone_or_with_others(peer: Peer) -> None:
    channel = peer.channel()
    confirms = [channel.publish_one(message(), 0) for _ in range(5)]
    peer.send(m.ConfirmSelectOk(), m.BasicAck(2), channel=1)
    assert [confirm.done for confirm in confirms] == [False, True, False, False, False]
    peer.send(m.BasicAck(4, multiple=True), channel=1)
    assert [confirm.done for confirm in confirms] == [True, True, True, True, False]
    peer.send(m.BasicNack(5), channel=1)
    with pytest.raises(PublishNacked) as caught:
        confirms[4].value()
    assert caught.value.sequence == 5
    for confirm in confirms[:4]:
        confirm.value()


def test_a_returned_publish_fails_although_it_is_acknowledged(peer: Peer) -> None:
    channel = peer.channel()
    routed = channel.publish_one(message(b"a", "known"), 1)
    lost = channel.publish_one(message(b"b", "unknown"), 1)
    peer.send(m.ConfirmSelectOk(), channel=1)
    back = m.BasicReturn(312, "NO_ROUTE", "", "unknown")
    peer.feed(content_frames(back, b"b"))
    assert not lost.done
    peer.send(m.BasicAck(2, multiple=True), channel=1)
    routed.value()
    with pytest.raises(PublishReturned) as caught:
        lost.value()
    assert (caught.value.code, caught.value.text) == (312, "NO_ROUTE")
    assert caught.value.message.body == b"b"
    assert caught.value.message.routing_key == "unknown"


def test_a_return_without_confirms_goes_to_the_callback(peer: Peer) -> None:
    channel = peer.channel(confirms=False)
    heard: list[PublishReturned] = []
    channel.on_return = heard.append
    assert channel.publish_one(message(b"b", "unknown"), 1).done
    peer.feed(content_frames(m.BasicReturn(312, "NO_ROUTE", "", "unknown"), b"b"))
    assert [error.message.body for error in heard] == [b"b"]


def test_a_body_larger_than_a_frame_is_split_and_an_empty_one_has_no_body_frame(peer: Peer) -> None:
    channel = peer.channel(confirms=False)
    channel.publish_one(message(b"y" * 10_000), 0)
    channel.publish_one(message(b""), 0)
    frames = peer.written()
    sizes = [len(frame.payload) + 8 for frame in frames if frame.kind == BODY]
    assert sizes == [4096, 4096, 10_000 - 2 * 4088 + 8]
    assert sum(frame.kind == HEADER for frame in frames) == 2


def test_a_name_that_does_not_fit_is_refused_and_nothing_is_expected(peer: Peer) -> None:
    channel = peer.channel()
    with pytest.raises(ValueError, match="255"):
        channel.publish_one(message(key="k" * 256), 0)
    assert len(channel.confirms) == 0


def test_a_transactional_channel_confirms_nothing(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.select_transactions()
    peer.send(m.TxSelectOk(), channel=1)
    call.value()
    assert channel.publish_one(message(), 0).done
    confirming = peer.channel()
    confirming.publish_one(message(), 0)
    with pytest.raises(ValueError, match="channel of its own"):
        confirming.select_transactions()


def test_confirms_of_what_was_never_published_break_the_protocol(peer: Peer) -> None:
    peer.channel()
    peer.send(m.BasicAck(1), channel=1)
    with pytest.raises(ConnectionLost, match="publish 1"):
        peer.core.closed.value()


def test_flow_is_answered_and_told(peer: Peer) -> None:
    channel = peer.channel()
    heard: list[bool] = []
    channel.on_flow = heard.append
    peer.send(m.ChannelFlow(False), channel=1)
    assert peer.methods() == [m.ChannelFlowOk(False)]
    assert channel.flow_active is False
    peer.send(m.ChannelFlow(True), channel=1)
    assert peer.methods() == [m.ChannelFlowOk(True)]
    assert heard == [False, True]


# --- consuming ----------------------------------------------------------------------------------


def test_deliveries_reach_their_consumer_in_order_whole_or_in_pieces(peer: Peer) -> None:
    channel = peer.channel()
    one, two = Ears(), Ears()
    subscribe(peer, channel, one, "one")
    subscribe(peer, channel, two, "two")
    big = bytes(range(256)) * 100
    peer.feed(
        delivery(b"a", consumer_tag="one", tag=1)
        + delivery(big, consumer_tag="two", tag=2)
        + delivery(b"", consumer_tag="one", tag=3)
        + delivery(b"b", consumer_tag="two", tag=4)
    )
    assert one.bodies == [b"a", b""]
    assert two.bodies == [big, b"b"]
    assert (one.tags, two.tags) == ([1, 3], [2, 4])


def test_a_delivery_on_one_channel_may_interleave_with_frames_of_another(peer: Peer) -> None:
    channel, other = peer.channel(), peer.channel()
    ears, others = Ears(), Ears()
    subscribe(peer, channel, ears)
    subscribe(peer, other, others)
    first = content_frames(m.BasicDeliver("t", 1, False, "", "q"), b"z" * 9000, 1)
    second = content_frames(m.BasicDeliver("t", 1, False, "", "q"), b"w" * 9000, 2)
    cut_first, cut_second = _frames(first), _frames(second)
    mixed = [frame for pair in zip(cut_first, cut_second, strict=True) for frame in pair]
    peer.feed(b"".join(mixed) + delivery(b"after", consumer_tag="t", tag=2))
    assert ears.bodies == [b"z" * 9000, b"after"]
    assert others.bodies == [b"w" * 9000]
    assert peer.core.scanner.pending == 0


def _frames(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[3:7]) + 8
        found.append(data[:size])
        data = data[size:]
    return found


def test_a_method_in_the_middle_of_a_content_breaks_the_protocol(peer: Peer) -> None:
    channel = peer.channel()
    subscribe(peer, channel, Ears())
    peer.feed(_frames(delivery(b"x" * 9000, consumer_tag="t", tag=1))[0])
    peer.feed(method_frame(m.BasicCancel("t", True), 1))
    with pytest.raises(ConnectionLost, match="middle of a content"):
        peer.core.closed.value()


def test_content_without_a_method_breaks_the_protocol(peer: Peer) -> None:
    peer.channel()
    peer.feed(_frames(delivery(b"x", consumer_tag="t", tag=1))[1])
    with pytest.raises(ConnectionLost, match="method was expected"):
        peer.core.closed.value()


def test_a_delivery_for_nobody_breaks_the_protocol(peer: Peer) -> None:
    peer.channel()
    peer.feed(delivery(b"x", consumer_tag="stranger", tag=1))
    with pytest.raises(ConnectionLost, match="stranger"):
        peer.core.closed.value()


def test_a_consumer_tag_cannot_be_used_twice(peer: Peer) -> None:
    channel = peer.channel()
    subscribe(peer, channel, Ears())
    with pytest.raises(ValueError, match="'t' already"):
        channel.consume("q", Ears().hear, Ears().ends.append, tag="t")


def test_cancelling_still_delivers_until_the_answer(peer: Peer) -> None:
    channel = peer.channel()
    ears = Ears()
    subscribe(peer, channel, ears)
    call = channel.cancel("t")
    assert peer.methods() == [m.BasicCancel("t")]
    peer.feed(delivery(b"late", consumer_tag="t", tag=1) + method_frame(m.BasicCancelOk("t"), 1))
    call.value()
    assert ears.bodies == [b"late"]
    assert ears.ends == [None]


def test_a_broker_that_cancels_ends_the_consumer_with_an_error(peer: Peer) -> None:
    channel = peer.channel()
    ears = Ears()
    subscribe(peer, channel, ears)
    peer.send(m.BasicCancel("t", nowait=True), channel=1)
    assert peer.methods() == []
    assert isinstance(ears.ends[0], ConsumerCancelled)
    peer.send(m.BasicCancel("t", nowait=False), channel=1)
    assert peer.methods() == [m.BasicCancelOk("t")]


def test_an_abandoned_consumer_puts_back_what_still_comes(peer: Peer) -> None:
    channel = peer.channel()
    ears = Ears()
    subscribe(peer, channel, ears)
    channel.abandon("t")
    peer.written()
    peer.feed(delivery(b"late", consumer_tag="t", tag=5))
    assert peer.methods() == [m.BasicNack(5, multiple=False, requeue=True)]
    peer.send(m.BasicCancelOk("t"), channel=1)
    assert ears.bodies == []
    assert channel.consumers == {}


def test_an_abandoned_consumer_without_acknowledgements_acknowledges_nothing(peer: Peer) -> None:
    channel = peer.channel()
    subscribe(peer, channel, Ears(), no_ack=True)
    channel.abandon("t")
    peer.written()
    peer.feed(delivery(b"late", consumer_tag="t", tag=5))
    assert peer.methods() == []


def test_get_answers_with_a_message_or_with_none(peer: Peer) -> None:
    channel = peer.channel()
    call = channel.get("q", no_ack=True)
    assert peer.methods() == [m.BasicGet("q", no_ack=True)]
    properties = BasicProperties(content_type="text/plain")
    reply = m.BasicGetOk(7, True, "x", "k", 41)
    peer.feed(content_frames(reply, b"body" * 2000, properties=properties))
    got = call.value()
    assert got is not None
    assert (got.method.delivery_tag, got.method.redelivered, got.method.message_count) == (
        7,
        True,
        41,
    )
    assert got.body == b"body" * 2000
    call = channel.get("q")
    peer.send(m.BasicGetEmpty(), channel=1)
    assert call.value() is None


def test_acknowledgements_are_written_as_they_are_said(peer: Peer) -> None:
    channel = peer.channel()
    channel.ack(3)
    channel.ack(5, multiple=True)
    channel.nack(6, requeue=False)
    channel.nack(8, multiple=True)
    channel.reject(9)
    channel.reject(10, requeue=True)
    assert peer.methods() == [
        m.BasicAck(3, False),
        m.BasicAck(5, True),
        m.BasicNack(6, False, False),
        m.BasicNack(8, True, True),
        m.BasicReject(9, False),
        m.BasicReject(10, True),
    ]


class Sink(FrameSink):
    """A bulk sink that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, str, int, bytes]] = []

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        self.given.append((channel, consumer_tag, tag, body))
        return 0


def test_a_sink_gets_deliveries_whole_and_in_pieces_and_other_channels_are_not_disturbed(
    peer: Peer,
) -> None:
    channel, other = peer.channel(), peer.channel()
    sink, ears, ends = Sink(), Ears(), Ears()
    channel.set_sink(sink)
    channel.consume("q", None, ends.ends.append, tag="t")
    subscribe(peer, other, ears)
    peer.written()
    peer.send(m.BasicConsumeOk("t"), channel=1)
    peer.feed(
        delivery(b"a", consumer_tag="t", tag=1)
        + delivery(b"b", consumer_tag="t", tag=1, channel=2)
        + delivery(b"c" * 9000, consumer_tag="t", tag=2)
        + delivery(b"d", consumer_tag="t", tag=3)
    )
    assert sink.given == [(1, "t", 1, b"a"), (1, "t", 2, b"c" * 9000), (1, "t", 3, b"d")]
    assert ears.bodies == [b"b"]


def test_a_channel_with_a_sink_takes_no_ordinary_consumer_and_the_other_way_round(
    peer: Peer,
) -> None:
    channel = peer.channel()
    with pytest.raises(ValueError, match="sink"):
        channel.consume("q", None, Ears().ends.append, tag="t")
    channel.set_sink(Sink())
    with pytest.raises(ValueError, match="sink"):
        channel.consume("q", Ears().hear, Ears().ends.append, tag="t")


def test_an_error_of_one_call_does_not_carry_the_traceback_of_another(peer: Peer) -> None:
    channel = peer.channel()
    calls = [channel.purge_queue("q") for _ in range(2)]
    peer.send(m.ChannelClose(406, "PRECONDITION_FAILED - x", 0, 0), channel=1)
    depths = []
    for call in calls * 2:
        with pytest.raises(PreconditionFailed) as caught:
            call.value()
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1
