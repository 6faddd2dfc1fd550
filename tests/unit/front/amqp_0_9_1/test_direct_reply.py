"""Direct reply-to on channels: what may be asked in which order, and where replies go."""

from __future__ import annotations

import pytest

from harebell.auth.permissions import Permissions
from harebell.front.amqp_0_9_1 import direct_reply
from harebell.front.limits import REPLIES_UNSENT_BYTES
from harebell.model.queue.reply import REPLY_PREFIX, REPLY_TO
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, decode_properties
from harebell.wire.v09.frames import HEADER
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

CONSUME = m.BasicConsume(REPLY_TO, consumer_tag="t", no_ack=True)
ASKING = BasicProperties(reply_to=REPLY_TO)


def requester(world: World) -> OctetPeer:
    peer = world.peer()
    assert peer.ask(CONSUME) == m.BasicConsumeOk("t")
    return peer


def way_back(world: World, peer: OctetPeer) -> str:
    """The reply-to that a responder sees."""
    other = world.peer()
    other.send(m.QueueDeclare("requests"), m.BasicConsume("requests", no_ack=True))
    other.frames()
    peer.give(publish(b"?", "requests", properties=ASKING))
    (header,) = [load for kind, _, load in other.frames() if kind == HEADER]
    name = decode_properties(header[12:]).reply_to
    assert isinstance(name, str)
    return name


def refused(peer: OctetPeer, *methods: m.Method) -> str:
    peer.send(*methods)
    close = peer.methods()[-1]
    assert isinstance(close, m.ChannelClose)
    return close.reply_text


def test_a_reply_comes_back_to_the_channel_that_asked() -> None:
    world = World()
    asking, idle = requester(world), requester(world)
    name = way_back(world, asking)
    assert name.startswith(REPLY_PREFIX)
    world.peer().give(publish(b"!", name))
    assert asking.methods() == [m.BasicDeliver("t", 1, False, "", name)]
    assert idle.frames() == []


def test_two_replies_are_two_deliveries_in_order() -> None:
    world = World()
    asking = requester(world)
    name = way_back(world, asking)
    responder = world.peer()
    responder.give(publish(b"1", name) + publish(b"2", name, mandatory=True))
    assert responder.frames() == []
    frames = asking.frames()
    assert [load for kind, _, load in frames if kind == 3] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ((m.BasicConsume(REPLY_TO),), "reply consumer cannot acknowledge"),
        ((CONSUME, m.BasicConsume(REPLY_TO, no_ack=True)), "reply consumer already set"),
        ((CONSUME, CONSUME), "reply consumer already set"),
    ],
)
def test_the_pseudo_queue_is_consumed_once_and_without_acknowledgement(
    before: tuple[m.Method, ...], text: str
) -> None:
    assert refused(World().peer(), *before) == f"PRECONDITION_FAILED - {text}"


def test_asking_before_consuming_is_refused_and_so_is_asking_after_a_cancel() -> None:
    text = "PRECONDITION_FAILED - fast reply consumer does not exist"
    world = World()
    early = world.peer()
    early.give(publish(b"?", "requests", properties=ASKING))
    (close,) = early.methods()
    assert isinstance(close, m.ChannelClose)
    assert (close.reply_code, close.reply_text) == (406, text)
    late = requester(world)
    assert late.ask(m.BasicCancel("t")) == m.BasicCancelOk("t")
    late.give(publish(b"?", "requests", properties=ASKING))
    (close,) = late.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text == text


def test_a_cancelled_requester_may_consume_again_under_another_name() -> None:
    world = World()
    peer = requester(world)
    first = way_back(world, peer)
    peer.ask(m.BasicCancel("t"))
    assert peer.ask(CONSUME) == m.BasicConsumeOk("t")
    (second,) = world.broker.vhosts["/"].router.replies
    assert second != first


def test_another_consumers_tag_cannot_be_used() -> None:
    peer = World().peer()
    peer.send(m.QueueDeclare("q"), m.BasicConsume("q", consumer_tag="t"), CONSUME)
    close = peer.methods()[-1]
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 't'"


def test_declaring_tells_whether_the_requester_is_there() -> None:
    world = World()
    asking, peer = requester(world), world.peer()
    name = way_back(world, asking)
    assert peer.ask(m.QueueDeclare(REPLY_TO)) == m.QueueDeclareOk(REPLY_TO, 0, 1)
    assert peer.ask(m.QueueDeclare(name, passive=True)) == m.QueueDeclareOk(name, 0, 1)
    assert asking.ask(m.ChannelClose()) == m.ChannelCloseOk()
    assert refused(peer, m.QueueDeclare(name)) == f"NOT_FOUND - no queue '{name}' in vhost '/'"


@pytest.mark.parametrize("end", [m.ChannelClose(), None])
def test_a_late_reply_is_dropped_confirmed_and_not_returned(end: m.Method | None) -> None:
    world = World()
    asking = requester(world)
    name = way_back(world, asking)
    if end is None:
        asking.connection.eof()
    else:
        asking.ask(end)
    responder = world.peer()
    responder.ask(m.ConfirmSelect())
    responder.give(publish(b"!", name, mandatory=True))
    assert responder.methods() == [m.BasicAck(1)]
    assert asking.frames() == []


@pytest.mark.parametrize("binding", [m.QueueBind, m.QueueUnbind])
def test_the_way_back_cannot_be_bound(binding: type[m.QueueBind | m.QueueUnbind]) -> None:
    assert refused(World().peer(), binding(REPLY_TO, "amq.direct", "k")) == (
        "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue"
    )


def test_consuming_replies_needs_no_permission() -> None:
    world = World()
    user = world.users.get("guest")
    assert user is not None
    user.permissions["/"] = Permissions("^$", "^$", "^$")
    assert world.peer().ask(CONSUME) == m.BasicConsumeOk("t")


def test_replies_to_a_requester_that_reads_nothing_are_dropped_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 1_048_576
    assert limit < REPLIES_UNSENT_BYTES
    monkeypatch.setattr(direct_reply, "REPLIES_UNSENT_BYTES", limit)
    world = World()
    asking = requester(world)
    name = way_back(world, asking)
    responder = world.peer()
    body = bytes(limit // 4)
    for _ in range(8):
        responder.give(publish(body, name))
    assert limit // 2 < asking.connection.out.size < limit + 2 * len(body)
