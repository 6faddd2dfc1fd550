"""Where errors become closes: which scope, which words, and what is in the log."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.front.common.errors import describe
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, World, frame, publish


def test_a_soft_error_closes_the_channel_and_leaves_the_others() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.ChannelOpen(), channel=2)
    answer = peer.ask(m.QueueDelete("q", if_empty=True)) and peer.ask(m.QueuePurge("no"))
    assert answer == m.ChannelClose(404, "NOT_FOUND - no queue 'no' in vhost '/'", 50, 30)
    assert peer.ask(m.BasicQos(0, 1), channel=2) == m.BasicQosOk()
    assert any(
        "channel 1: operation queue.purge caused a channel exception not_found: " in text
        for _, text in world.log
    )


def test_methods_that_arrive_before_the_peer_knows_are_dropped_until_close_ok() -> None:
    peer = World().peer()
    peer.ask(m.QueuePurge("no"))
    peer.give(publish(b"x", mandatory=True))
    peer.send(m.QueueDeclare("q"), m.BasicAck(99))
    assert peer.frames() == []
    peer.send(m.ChannelCloseOk())
    assert peer.ask(m.ChannelOpen()) == m.ChannelOpenOk()


def test_a_hard_error_closes_everything_and_close_ok_ends_it() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("mine", exclusive=True))
    answer = peer.ask(m.BasicQos(5, 0))
    assert isinstance(answer, m.ConnectionClose)
    assert world.broker.vhosts["/"].queues == {}
    peer.give(publish(b"x"))
    peer.send(m.QueueDeclare("q"))
    assert peer.frames() == []
    peer.send(m.ConnectionCloseOk(), channel=0)
    assert peer.connection.closing


def test_broken_frames_end_the_connection_without_waiting_for_an_answer() -> None:
    peer = World().peer()
    peer.give(frame(1, 1, b"abcd")[:-1] + b"\x00")
    (close,) = peer.methods()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 501
    assert peer.connection.closing


def test_an_error_before_the_connection_is_open_is_not_told() -> None:
    peer = World().connect()
    peer.give(HEADER_0_9_1)
    peer.frames()
    peer.send(m.ConnectionOpen("/"), channel=0)
    assert peer.frames() == []
    assert peer.connection.closing


@pytest.mark.parametrize(
    ("code", "capabilities", "gets_close"),
    [
        (403, set(), False),
        (403, {"authentication_failure_close"}, True),
        (530, set(), True),
        (503, {"authentication_failure_close"}, False),
    ],
)
def test_a_close_before_the_connection_is_open_depends_on_the_capability(
    code: int, capabilities: set[str], gets_close: bool
) -> None:
    peer = World().connect()
    peer.give(HEADER_0_9_1)
    peer.connection.capabilities = capabilities
    assert peer.connection.may_get_close(ProtocolError(code, "x")) is gets_close


def test_the_log_says_where_an_unexpected_error_happened() -> None:
    def inner() -> None:
        raise KeyError("lost")

    try:
        inner()
    except KeyError as error:
        text = describe(error)
    assert text.startswith("KeyError: 'lost' at ")
    assert text.count("test_connection_errors.py:") == 2
