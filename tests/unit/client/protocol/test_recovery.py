"""Coming back: delays, and the order in which things are restored."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ClientClosed,
    ConnectionLost,
    NotFound,
    closed_connection,
)
from harebell.client.protocol.channel_parts import CoreConsumer
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
    recoverable,
    recovery_of,
    replay,
    resend,
)
from harebell.client.protocol.topology import Topology
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.verbs import QueueInfo
from harebell.wire.v09 import methods as m
from tests.unit.client.octets import Peer


class Fixed:
    """Entropy that always says the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(Recovery(first_seconds=1, most_seconds=10), Fixed(1.0))
    assert [backoff.delay() for _ in range(6)] == pytest.approx([1, 2, 4, 8, 10, 10])


def test_jitter_spreads_the_delays_and_never_makes_them_vanish() -> None:
    options = Recovery(first_seconds=4, most_seconds=4)
    delays = [Backoff(options, random.Random(seed)).delay() for seed in range(200)]
    assert min(delays) >= 0.4
    assert max(delays) <= 4.0
    assert max(delays) - min(delays) > 2.0


def test_attempts_on_an_absent_broker_end_only_if_asked_to() -> None:
    patient = Backoff(Recovery(), Fixed(0.0))
    brief = Backoff(Recovery(attempts=2), Fixed(0.0))
    going_on = []
    for _ in range(50):
        patient.delay()
        assert patient.failed(refused=False)
    for _ in range(2):
        brief.delay()
        going_on.append(brief.failed(refused=False))
    assert going_on == [True, False]


def test_a_broker_that_refuses_is_not_asked_for_ever() -> None:
    backoff = Backoff(Recovery(restore_attempts=3), Fixed(0.0))
    assert [backoff.failed(refused=refused) for refused in (True, False, True, False, True)] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_wrong_delays_are_refused() -> None:
    for wrong in ({"first_seconds": 0.0}, {"first_seconds": 5.0, "most_seconds": 1.0}):
        with pytest.raises(ValueError, match="first_seconds"):
            Recovery(**wrong)


def test_recovery_is_off_on_or_as_described() -> None:
    described = Recovery(resend=True)
    assert recovery_of(False) is None
    assert recovery_of(True) == Recovery()
    assert recovery_of(described) is described


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        (ConnectionLost("x"), True),
        (closed_connection(320, "CONNECTION_FORCED - shutdown"), True),
        (closed_connection(541, "INTERNAL_ERROR"), True),
        (closed_connection(530, "NOT_ALLOWED"), False),
        (closed_connection(501, "FRAME_ERROR"), False),
        (AuthenticationFailed("x"), False),
        (ClientClosed("x"), False),
        (NotFound(404, "x"), False),
        (None, False),
    ],
)
def test_connecting_again_helps_only_where_nobody_refused_us(
    error: AMQPError | None, helps: bool
) -> None:
    assert recoverable(error) is helps


def recorded() -> tuple[Topology, QueueInfo, CoreConsumer]:
    topology = Topology()
    info = QueueInfo("amq.gen-old", 0, 0)
    consumer = CoreConsumer("t", False, lambda *rest: None, lambda error: None)
    topology.observe(1, m.ExchangeDeclare("x", "fanout"), None)
    topology.observe(1, m.QueueDeclare("", exclusive=True), info)
    topology.observe(1, m.QueueBind("amq.gen-old", "x", ""), None)
    topology.observe(1, m.BasicQos(0, 5, False), None)
    topology.observe(1, m.BasicConsume("amq.gen-old", "t"), consumer)
    topology.observe(1, m.BasicQos(0, 7, False), None)
    topology.observe(1, m.ConfirmSelect(), None)
    topology.observe(3, m.TxSelect(), None)
    return topology, info, consumer


def lost_channel(number: int = 1, keep: bool = False) -> CoreChannel:
    """A channel of a connection that broke with two publishes unconfirmed."""
    peer = Peer()
    peer.open()
    for _ in range(number):
        channel = peer.channel(keep=keep)
    return channel


def test_everything_is_restored_in_the_order_that_it_depends_on() -> None:
    topology, info, consumer = recorded()
    old = {1: lost_channel(1), 3: lost_channel(3)}
    peer = Peer()
    peer.open()
    answers: dict[type[m.Method], m.Method] = {
        m.ChannelOpen: m.ChannelOpenOk(),
        m.ExchangeDeclare: m.ExchangeDeclareOk(),
        m.QueueDeclare: m.QueueDeclareOk("amq.gen-new"),
        m.QueueBind: m.QueueBindOk(),
        m.ConfirmSelect: m.ConfirmSelectOk(),
        m.TxSelect: m.TxSelectOk(),
        m.BasicQos: m.BasicQosOk(),
        m.BasicConsume: m.BasicConsumeOk("t"),
    }
    sent: list[tuple[int, m.Method]] = []
    steps = replay(peer.core, topology, old)
    try:
        call = next(steps)
        while True:
            for frame in peer.written():
                sent.append((frame.channel, frame.method))
                peer.send(answers[type(frame.method)], channel=frame.channel)
            assert call.done
            call = steps.send(None)
    except StopIteration as end:
        channels = end.value
    assert [(number, type(method)) for number, method in sent] == [
        (1, m.ChannelOpen),
        (3, m.ChannelOpen),
        (1, m.ExchangeDeclare),
        (1, m.QueueDeclare),
        (1, m.QueueBind),
        (1, m.ConfirmSelect),
        (1, m.BasicQos),
        (1, m.BasicConsume),
        (1, m.BasicQos),
        (3, m.TxSelect),
    ]
    methods = [method for _, method in sent]
    assert m.QueueDeclare("", exclusive=True) in methods
    assert m.QueueBind("amq.gen-new", "x", "") in methods
    assert m.BasicConsume("amq.gen-new", "t") in methods
    prefetches = [method.prefetch_count for method in methods if isinstance(method, m.BasicQos)]
    assert prefetches == [5, 7]
    assert info.name == "amq.gen-new"
    assert sorted(channels) == [1, 3]
    assert channels[1].consumers == {"t": consumer}
    assert peer.core.recorder is topology


def test_a_refusal_while_restoring_is_raised_where_it_happened() -> None:
    topology, _, _ = recorded()
    peer = Peer()
    peer.open()
    steps = replay(peer.core, topology, {1: lost_channel()})
    call: Any = next(steps)
    peer.send(m.ChannelOpenOk(), channel=1)
    call = steps.send(None)
    peer.send(m.ChannelClose(404, "NOT_FOUND - x", 40, 10), channel=1)
    with pytest.raises(NotFound):
        steps.throw(call.error)


def test_a_connection_without_channels_still_restores_what_was_declared() -> None:
    topology = Topology()
    topology.observe(1, m.ExchangeDeclare("x"), None)
    peer = Peer()
    peer.open()
    sent: list[m.Method] = []
    steps = replay(peer.core, topology, {})
    replies = [m.ChannelOpenOk(), m.ExchangeDeclareOk(), m.ChannelCloseOk()]
    call: Any = next(steps)
    for reply in replies:
        sent += peer.methods()
        peer.send(reply, channel=1)
        assert call.done
        call = next(steps, None)
    assert call is None
    assert [type(method) for method in sent] == [m.ChannelOpen, m.ExchangeDeclare, m.ChannelClose]


def test_unconfirmed_publishes_are_sent_again_only_if_they_were_kept() -> None:
    for keep in (False, True):
        old = lost_channel(keep=keep)
        confirms = [
            old.publish_one(WireMessage("x", "k", Properties(b"\0\0"), body), 0)
            for body in (b"1", b"2", b"3")
        ]
        old.confirms.settle(2, False, taken=True)
        old.end(ConnectionLost("gone"))
        assert [confirm.done for confirm in confirms] == [not keep, True, not keep]
        peer = Peer()
        peer.open()
        new = peer.channel(keep=keep)
        resend(old, new)
        bodies = [frame.payload for frame in peer.written() if frame.kind == 3]
        assert bodies == ([b"1", b"3"] if keep else [])
        if keep:
            peer.send(m.ConfirmSelectOk(), m.BasicAck(2, multiple=True), channel=1)
            assert all(confirm.done and confirm.error is None for confirm in confirms)


def test_a_channel_that_the_broker_closed_fails_its_publishes_even_if_they_were_kept() -> None:
    channel = lost_channel(keep=True)
    confirm = channel.publish_one(WireMessage("x", "k", Properties(b"\0\0"), b""), 0)
    channel.end(NotFound(404, "NOT_FOUND - no exchange 'x'"))
    assert isinstance(confirm.error, NotFound)
