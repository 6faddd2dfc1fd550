"""Single frames: which may arrive when."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, frame, method_frame


@pytest.mark.parametrize(
    ("octets", "code", "words"),
    [
        (frame(7, 0, b""), 501, "unknown_frame"),
        (frame(8, 1, b""), 505, "heartbeat frame on channel 1"),
        (frame(8, 0, b"x"), 501, "unknown_frame"),
        (frame(2, 0, b""), 505, "content frame on channel 0"),
        (frame(3, 1, b"x"), 505, "expected method frame, got non method frame instead"),
        (frame(3, 9, b"x"), 504, "expected 'channel.open'"),
        (method_frame(m.QueueDeclare("q"), 9), 504, "expected 'channel.open'"),
        (method_frame(m.ChannelOpen(), 1), 504, "second 'channel.open' seen"),
        (method_frame(m.QueueDeclareOk("q"), 1), 503, ""),
        (frame(1, 1, b"\0\0\0\0"), 503, ""),
    ],
)
def test_frames_that_may_not_come_here_close_the_connection(
    octets: bytes, code: int, words: str
) -> None:
    peer = World().peer()
    peer.give(octets)
    close: Any = peer.methods()[-1]
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == code
    assert words in close.reply_text


def test_heartbeats_are_taken_and_not_answered() -> None:
    peer = World().peer()
    peer.give(frame(8, 0, b"") * 3)
    assert peer.frames() == []


def test_a_channel_before_the_connection_is_open_ends_it() -> None:
    peer = World().connect()
    peer.give(b"AMQP\x00\x00\x09\x01")
    peer.frames()
    peer.send(m.ChannelOpen())
    assert peer.connection.closing


def test_our_close_and_theirs_may_cross() -> None:
    world = World()
    peer = world.peer()
    peer.connection.force_close("shutdown", world.now)
    peer.frames()
    assert peer.ask(m.ConnectionClose(200, "bye"), channel=0) == m.ConnectionCloseOk()
    assert not peer.connection.closing
    peer.send(m.ConnectionCloseOk(), channel=0)
    assert peer.connection.closing


def test_a_close_that_crosses_ours_on_a_channel_is_answered() -> None:
    peer = World().peer()
    peer.ask(m.QueuePurge("no"))
    assert peer.ask(m.ChannelClose(200, "mine")) == m.ChannelCloseOk()
