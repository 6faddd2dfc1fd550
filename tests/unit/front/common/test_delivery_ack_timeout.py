"""Deliveries that are not acknowledged in time: whose channel is closed, when, and with what."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.limits import CHANNEL_MAX
from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.front.limits import CHANNELS_PER_TICK, TIMEOUT_MARKS
from harebell.model.settings.policy import Policy
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

ARGUMENT = "x-consumer-timeout"


def text(timeout_ms: int, channel: int = 1) -> str:
    return (
        f"PRECONDITION_FAILED - delivery acknowledgement on channel {channel} timed out. Timeout "
        f"value used: {timeout_ms} ms. This timeout value can be configured, see consumers doc "
        "guide to learn more"
    )


def close(timeout_ms: int) -> m.ChannelClose:
    return m.ChannelClose(406, text(timeout_ms), 0, 0)


class Watched:
    """A peer that consumes, and the looks at it, at times counted from the first delivery."""

    def __init__(
        self,
        timeout_ms: int = 10_000,
        queue: dict[str, Any] | None = None,
        consumer: dict[str, Any] | None = None,
    ) -> None:
        self.world = World()
        self.overdue = DeliveryAckTimeout(self.world.registry, timeout_ms)
        self.peer = self.world.peer()
        self.peer.send(m.QueueDeclare("q", durable=True, arguments=queue or {}))
        self.peer.send(m.BasicConsume("q", "c", arguments=consumer or {}))
        self.peer.methods()

    def deliver(self) -> None:
        self.peer.give(publish(b"x"))
        assert self.peer.bodies() == [b"x"]

    def at(self, seconds: float) -> list[m.Method]:
        self.overdue.look(1000.0 + seconds)
        return self.peer.methods()


def test_a_channel_is_closed_when_its_delivery_is_not_acknowledged_in_time() -> None:
    watched = Watched()
    watched.deliver()
    assert watched.at(0) == []
    assert watched.at(9.9) == []
    assert watched.at(10) == [close(10_000)]
    assert any(
        "consumer 'c' of queue 'q' in vhost '/' on channel 1" in line
        and "delivery with tag 1 within 10000 ms" in line
        for _, line in watched.world.log
    )


def test_time_in_which_the_broker_stood_still_is_not_counted() -> None:
    watched = Watched()
    watched.deliver()
    assert watched.at(0) == []
    watched.overdue.excuse(60)
    assert watched.at(69.9) == []
    assert watched.at(70) == [close(10_000)]


def test_deliveries_held_by_the_closed_channel_come_back() -> None:
    watched = Watched()
    other: OctetPeer = watched.world.peer()
    watched.deliver()
    watched.at(0)
    watched.at(10)
    other.send(m.BasicGet("q"))
    (reply,) = other.methods()
    assert isinstance(reply, m.BasicGetOk)
    assert reply.redelivered


def test_the_other_channels_of_a_connection_go_on() -> None:
    watched = Watched()
    watched.peer.send(m.ChannelOpen(), channel=2)
    watched.deliver()
    watched.at(0)
    watched.at(10)
    assert watched.peer.ask(m.QueueDeclare("q", passive=True), channel=2)
    assert list(watched.peer.connection.channels) == [2]


def test_a_consumer_that_acknowledges_in_time_may_consume_for_any_time() -> None:
    watched = Watched()
    for second in range(0, 60, 6):
        watched.deliver()
        assert watched.at(second) == []
        assert watched.at(second + 5.5) == []
        watched.peer.send(m.BasicAck(multiple=True))
    assert watched.at(100) == []


def test_the_age_is_that_of_the_oldest_delivery_and_not_of_later_ones() -> None:
    watched = Watched()
    watched.deliver()
    watched.at(0)
    for second in range(1, 10):
        watched.deliver()
        assert watched.at(second) == []
    watched.peer.send(m.BasicAck(4, multiple=True))
    assert watched.at(13) == []
    assert watched.at(14) == [close(10_000)]


def test_a_busy_channel_has_few_marks_however_often_it_is_looked_at() -> None:
    watched = Watched()
    for moment in range(990):
        watched.deliver()
        assert watched.at(moment / 100) == []
    (marks,) = watched.overdue._marks.values()
    assert 2 < len(marks) <= TIMEOUT_MARKS
    watched.peer.connection.eof()
    watched.at(9.9)
    assert watched.overdue._marks == {}


def test_a_message_that_was_got_has_to_be_acknowledged_too() -> None:
    watched = Watched()
    watched.peer.send(m.BasicCancel("c"))
    watched.peer.give(publish(b"x"))
    watched.peer.send(m.BasicGet("q"))
    watched.peer.methods()
    watched.at(0)
    assert watched.at(10) == [close(10_000)]


def test_deliveries_that_need_no_acknowledgement_have_no_time_limit() -> None:
    watched = Watched()
    watched.peer.send(m.BasicCancel("c"), m.BasicConsume("q", "d", no_ack=True))
    watched.peer.methods()
    watched.deliver()
    watched.at(0)
    assert watched.at(1e9) == []


def test_zero_is_no_limit_for_the_broker() -> None:
    watched = Watched(timeout_ms=0)
    watched.deliver()
    watched.at(0)
    assert watched.at(1e9) == []


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("broker_ms", [0, 1_000, 10_000])
def test_a_queue_has_a_timeout_of_its_own(kind: str, broker_ms: int) -> None:
    watched = Watched(broker_ms, queue={ARGUMENT: 3_000, "x-queue-type": kind})
    watched.deliver()
    watched.at(0)
    assert watched.at(2.9) == []
    assert watched.at(3) == [close(3_000)]


def test_the_timeout_of_a_consumer_goes_before_that_of_its_queue() -> None:
    watched = Watched(queue={ARGUMENT: 3_000}, consumer={ARGUMENT: 5_000})
    watched.deliver()
    watched.at(0)
    assert watched.at(4.9) == []
    assert watched.at(5) == [close(5_000)]


@pytest.mark.parametrize(("policy_ms", "used_ms"), [(2_000, 2_000), (4_000, 3_000)])
def test_of_argument_and_policy_the_shorter_time_holds(policy_ms: int, used_ms: int) -> None:
    watched = Watched(queue={ARGUMENT: 3_000})
    vhost = watched.world.broker.vhosts["/"]
    vhost.policies.put(Policy("p", "^q$", "queues", 0, {"consumer-timeout": policy_ms}))
    watched.deliver()
    watched.at(0)
    assert watched.at(used_ms / 1_000 - 0.1) == []
    assert watched.at(used_ms / 1_000) == [close(used_ms)]


@pytest.mark.parametrize(
    "method",
    [
        m.QueueDeclare("other", arguments={ARGUMENT: -1}),
        m.BasicConsume("q", "d", arguments={ARGUMENT: -1}),
    ],
)
def test_a_negative_timeout_is_refused(method: m.Method) -> None:
    answer = Watched().peer.ask(method)
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_code == 406
    assert f"invalid arg '{ARGUMENT}'" in answer.reply_text
    assert answer.reply_text.endswith("{value_negative,-1}")


def test_very_many_channels_are_looked_at_in_several_ticks_and_none_is_forgotten() -> None:
    watched = Watched()
    watched.deliver()
    for _ in range(3 * CHANNELS_PER_TICK // CHANNEL_MAX):
        peer = watched.world.peer()
        for number in range(2, CHANNEL_MAX + 1):
            peer.send(m.ChannelOpen(), channel=number)
    watched.overdue.look(1000.0)
    assert list(watched.overdue._round), "one tick has not looked at all of them"
    ticks = 10
    for _ in range(ticks):
        watched.overdue.look(1000.0)
    assert [watched.at(10) for _ in range(ticks)].count([close(10_000)]) == 1
