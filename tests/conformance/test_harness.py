"""The harness itself: it sees what a careless one would miss, and it works on both sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.wire.v09.methods import BasicGet, QueueDeclare, QueueDeclareOk
from tests.conformance.frames import Reader, frame
from tests.conformance.peers import peers_of, sites_in
from tests.conformance.raw import Peer, encoded
from tests.conformance.sites import MemorySite


def test_an_unexpected_frame_breaks_the_silence(peer: Peer) -> None:
    peer.queue("q")
    peer.send(BasicGet(queue="q"))
    with pytest.raises(AssertionError, match="BasicGetEmpty"):
        peer.expect_silence()
    peer.opened = False


def test_a_failed_test_leaves_no_connection_open(memory: MemorySite) -> None:
    finished: list[list[Peer]] = []
    making = peers_of(memory, Peer, finished.append)
    connect = next(making)
    hasty, other = connect().open(), connect().open()
    hasty.send(QueueDeclare(queue="q"))
    with pytest.raises(AssertionError, match="QueueDeclareOk"):
        next(making)
    assert finished == [[hasty, other]]
    assert not memory.registry.connections


def test_a_failed_test_leaves_no_broker_running(tmp_path: Path) -> None:
    starting = sites_in(tmp_path)
    site = next(starting)()
    assert site.process.poll() is None
    next(starting, None)
    assert site.process.poll() is not None


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
