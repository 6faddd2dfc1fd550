"""The harness itself: it sees what a careless one would miss, and it works on both sites."""

from __future__ import annotations

import pytest

from harebell.wire.v09.methods import BasicGet, QueueDeclareOk
from tests.conformance.frames import Reader, frame
from tests.conformance.raw import Peer, encoded


def test_an_unexpected_frame_breaks_the_silence(peer: Peer) -> None:
    peer.queue("q")
    peer.send(BasicGet(queue="q"))
    with pytest.raises(AssertionError, match="BasicGetEmpty"):
        peer.expect_silence()
    peer.opened = False


@pytest.mark.parametrize(
    ("octets", "complaint"),
    [
        (frame(1, 1, b"\0\x32\0\x0b", end=0xCD), "ends in 0xcd"),
        (frame(7, 1, b"x"), "unknown type"),
        (frame(8, 1), "wrong channel"),
        (frame(8, 0, b"x"), "no payload"),
        (frame(2, 0, b"x"), "wrong channel"),
        (encoded(QueueDeclareOk("q", 0, 0), channel=0), "wrong channel"),
        (frame(1, 1, b"\0\x0a\0\x33"), "wrong channel"),
        (frame(3, 1, bytes(4_089)), "4096 were agreed on"),
    ],
)
def test_a_broker_that_breaks_the_framing_fails_every_test(octets: bytes, complaint: str) -> None:
    reader = Reader()
    reader.frame_max = 4_096
    reader.data += octets
    with pytest.raises(AssertionError, match=complaint):
        reader.next()
