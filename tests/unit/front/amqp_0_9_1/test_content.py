"""Contents that arrive frame by frame, and what breaks them."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, frame, method_frame, publish

METHOD = method_frame(m.BasicPublish(routing_key="q"))


def header(size: int, class_id: int = 60, weight: int = 0) -> bytes:
    fixed = class_id.to_bytes(2) + weight.to_bytes(2) + size.to_bytes(8)
    return frame(2, 1, fixed + b"\0\0")


def test_a_body_of_many_frames_is_put_together() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    for piece in (METHOD, header(6), frame(3, 1, b"ab"), frame(3, 1, b""), frame(3, 1, b"cdef")):
        peer.give(piece)
    assert peer.connection.scanner.pending == 0
    peer.send(m.BasicGet("q", no_ack=True))
    assert peer.bodies() == [b"abcdef"]


def test_contents_of_two_channels_may_be_mixed() -> None:
    peer = World().peer()
    peer.ask(m.ChannelOpen(), channel=2)
    peer.ask(m.QueueDeclare("q"))
    peer.give(METHOD)
    peer.give(publish(b"whole", channel=2))
    peer.give(header(1) + frame(3, 1, b"x"))
    for expected in (b"whole", b"x"):
        peer.send(m.BasicGet("q", no_ack=True))
        assert peer.bodies() == [expected]


@pytest.mark.parametrize(
    ("octets", "code", "words"),
    [
        (METHOD + METHOD, 505, "expected content header for class 60, got non content header"),
        (METHOD + frame(3, 1, b"x"), 505, "expected content header for class 60"),
        (METHOD + frame(2, 1, b"\0\x3c"), 505, "content header is too short"),
        (METHOD + header(1, 50), 505, "got one for class 50 instead"),
        (METHOD + header(1, 60, 3), 505, "got one for class 60 with weight 3 instead"),
        (METHOD + header(2) + METHOD, 505, "expected content body, got non content body"),
        (METHOD + header(2) + frame(3, 1, b"abc"), 501, "exceeds remaining content size"),
        (METHOD + header(2**40), 501, "exceeds maximum allowed size"),
    ],
)
def test_frames_out_of_order_close_the_connection(octets: bytes, code: int, words: str) -> None:
    peer = World().peer()
    peer.give(octets)
    close = peer.methods()[-1]
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == code
    assert words in close.reply_text


def test_a_channel_that_closes_in_the_middle_forgets_its_content() -> None:
    peer = World().peer()
    peer.give(METHOD)
    assert peer.connection.scanner.pending == 1
    peer.connection.drop_channel(peer.connection.channels[1])
    assert peer.connection.scanner.pending == 0


def test_an_unfinished_body_counts_as_memory_until_its_channel_is_gone() -> None:
    world = World()
    peer = world.peer()
    gauge = world.registry.gauge
    peer.give(METHOD + header(10_000) + frame(3, 1, b"x" * 4_000) + frame(3, 1, b"y" * 2_000))
    assert gauge.used == 6_000
    assert isinstance(peer.ask(m.ChannelOpen(), channel=2), m.ChannelOpenOk)
    peer.connection.eof()
    assert gauge.used == 0


def test_a_finished_body_is_counted_once() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(METHOD + header(6) + frame(3, 1, b"abc") + frame(3, 1, b"def"))
    in_pieces = world.registry.gauge.used
    peer.ask(m.QueuePurge("q"))
    assert world.registry.gauge.used == 0
    peer.give(publish(b"abcdef"))
    assert world.registry.gauge.used == in_pieces
