"""The basic class: get, reject, nack, recover, cancel, qos."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def filled(count: int = 3) -> tuple[World, OctetPeer]:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(b"".join(publish(b"%d" % number) for number in range(count)))
    return world, peer


def get(peer: OctetPeer, no_ack: bool = False) -> tuple[bytes, bool, int] | None:
    peer.send(m.BasicGet("q", no_ack=no_ack))
    frames = peer.frames()
    if len(frames) == 1:
        return None
    redelivered = frames[0][2][12]
    return frames[2][2], bool(redelivered), int.from_bytes(frames[0][2][4:12])


def test_messages_are_got_in_order_with_growing_tags_until_there_are_none() -> None:
    _, peer = filled(2)
    assert get(peer) == (b"0", False, 1)
    assert get(peer, no_ack=True) == (b"1", False, 2)
    assert get(peer) is None


def test_a_rejected_message_comes_back_or_not() -> None:
    world, peer = filled(2)
    get(peer)
    peer.send(m.BasicReject(1, requeue=True))
    assert get(peer) == (b"0", True, 2)
    peer.send(m.BasicReject(2, requeue=False))
    assert get(peer) == (b"1", False, 3)
    assert world.broker.vhosts["/"].queues["q"].unacked == 1


def test_several_are_refused_at_once_and_keep_their_order() -> None:
    _, peer = filled(3)
    for _ in range(3):
        get(peer)
    peer.send(m.BasicNack(2, multiple=True, requeue=True))
    assert [get(peer), get(peer), get(peer)] == [(b"0", True, 4), (b"1", True, 5), None]


@pytest.mark.parametrize(
    ("method", "answer"),
    [(m.BasicRecover(requeue=True), [m.BasicRecoverOk()]), (m.BasicRecoverAsync(True), [])],
)
def test_recovering_puts_everything_back(method: m.Method, answer: list[m.Method]) -> None:
    _, peer = filled(2)
    get(peer)
    get(peer)
    peer.send(method)
    assert peer.methods() == answer
    assert get(peer) == (b"0", True, 3)


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (m.BasicAck(7), 406, "PRECONDITION_FAILED - unknown delivery tag 7"),
        (m.BasicReject(7), 406, "PRECONDITION_FAILED - unknown delivery tag 7"),
        (m.BasicGet("no"), 404, "NOT_FOUND - no queue 'no' in vhost '/'"),
        (
            m.BasicConsume("q", arguments={"x-priority": "high"}),
            406,
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': "
            '"expected integer, got longstr"',
        ),
    ],
)
def test_mistakes_close_the_channel(method: m.Method, code: int, text: str) -> None:
    _, peer = filled()
    answer = peer.ask(method)
    assert isinstance(answer, m.ChannelClose)
    assert (answer.reply_code, answer.reply_text) == (code, text)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (m.BasicQos(5, 0), "NOT_IMPLEMENTED - prefetch_size!=0 (5)"),
        (m.BasicRecover(requeue=False), "NOT_IMPLEMENTED - requeue=false"),
        (m.BasicRecoverAsync(requeue=False), "NOT_IMPLEMENTED - requeue=false"),
    ],
)
def test_a_missing_queue_or_exchange_closes_the_connection(method: m.Method, text: str) -> None:
    _, peer = filled()
    answer = peer.ask(method)
    assert isinstance(answer, m.ConnectionClose)
    assert (answer.reply_code, answer.reply_text) == (540, text)


def test_a_consumer_tag_is_made_up_and_may_not_be_used_twice() -> None:
    _, peer = filled(0)
    made_up: Any = peer.ask(m.BasicConsume("q"))
    assert made_up.consumer_tag.startswith("amq.ctag-")
    answer = peer.ask(m.BasicConsume("q", made_up.consumer_tag))
    assert isinstance(answer, m.ConnectionClose)
    assert answer.reply_code == 530


def test_after_cancelling_nothing_more_comes_and_what_is_out_can_be_acknowledged() -> None:
    world, peer = filled(0)
    peer.ask(m.BasicConsume("q", "c"))
    peer.give(publish(b"1"))
    assert peer.bodies() == [b"1"]
    assert peer.ask(m.BasicCancel("c")) == m.BasicCancelOk("c")
    peer.give(publish(b"2"))
    peer.send(m.BasicAck(1))
    assert peer.frames() == []
    queue = world.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (1, 0)
    assert peer.ask(m.BasicCancel("never was")) == m.BasicCancelOk("never was")


def test_a_global_prefetch_is_shared_by_the_consumers_of_a_channel() -> None:
    _, peer = filled(0)
    peer.ask(m.BasicQos(0, 3, True))
    peer.ask(m.BasicConsume("q", "a"))
    peer.ask(m.BasicConsume("q", "b"))
    peer.give(b"".join(publish(b"%d" % number) for number in range(5)))
    assert len(peer.bodies()) == 3
    peer.send(m.BasicAck(2, True))
    assert len(peer.bodies()) == 2
    assert peer.ask(m.BasicQos(0, 10, True)) == m.BasicQosOk()
