"""The client's half of 0-10 believes nothing that a broker sends."""

from __future__ import annotations

import random

import pytest

from harebell.client.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ProtocolMismatch,
)
from harebell.client.protocol.life import ConnectionPhase
from harebell.client.protocol.v010.core import PROTOCOL_HEADER, CoreConnection010
from harebell.client.url import URL
from harebell.kernels.transfers import SegmentBuffer
from harebell.wire.v010 import controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Control

URL_0_10 = URL(version="0-10", connection_timeout=10.0)


def octets(*said: Control, channel: int = 0) -> bytes:
    """Controls as a broker sends them."""
    out = SegmentBuffer()
    for control in said:
        out.segments(0, channel, AMQP_0_10.encode(control), 65_535)
    return out.take()


START = controls.ConnectionStart(mechanisms=["PLAIN"], locales=["en_US"])
TUNE = controls.ConnectionTune(channel_max=100, max_frame_size=65_535, heartbeat_max=60)
OPENING = PROTOCOL_HEADER + octets(START, TUNE, controls.ConnectionOpenOk())


def opened() -> CoreConnection010:
    """An open connection."""
    core = CoreConnection010(URL_0_10, 0.0, nonce="n")
    core.receive(OPENING, 0.0)
    core.opened.value()
    return core


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_the_handshake_is_the_same_in_whatever_pieces_it_comes(pieces: int) -> None:
    core = CoreConnection010(URL_0_10, 0.0, nonce="n")
    for at in range(0, len(OPENING), pieces):
        core.receive(OPENING[at : at + pieces], 0.0)
    assert core.state is ConnectionPhase.OPEN
    assert core.heartbeat == 60
    assert core.channel_max == 100


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"AMQP\x00\x00\x09\x01", "answered with 0.0.9.1"),
        (b"HTTP/1.1 400 Bad Request\r\n", "does not speak AMQP 0-10"),
        (b"\x01\x00\x00\x00\x00\x00\x1c\x00", "does not speak AMQP 0-10"),
    ],
)
def test_another_protocol_is_named(answer: bytes, text: str) -> None:
    core = CoreConnection010(URL_0_10, 0.0)
    core.receive(answer, 0.0)
    with pytest.raises(ProtocolMismatch, match=text):
        core.opened.value()


def test_a_refused_login_is_told_apart() -> None:
    core = CoreConnection010(URL_0_10, 0.0)
    close = controls.ConnectionClose(reply_code=320, reply_text="login refused")
    core.receive(PROTOCOL_HEADER + octets(START, close), 0.0)
    with pytest.raises(AuthenticationFailed, match="320 login refused"):
        core.opened.value()


def test_a_broker_without_our_mechanism_is_told_what_we_have() -> None:
    core = CoreConnection010(URL_0_10, 0.0)
    start = controls.ConnectionStart(mechanisms=["EXTERNAL"], locales=["en_US"])
    core.receive(PROTOCOL_HEADER + octets(start), 0.0)
    with pytest.raises(AuthenticationFailed, match="'EXTERNAL', this client would use PLAIN"):
        core.opened.value()


def test_heartbeats_are_sent_and_missed() -> None:
    core = opened()
    core.take_output()
    core.tick(15.0)
    assert core.take_output() == b""
    core.tick(30.0)
    assert core.take_output() == octets(controls.ConnectionHeartbeat())
    core.tick(121.0)
    with pytest.raises(ConnectionLost, match="nothing came"):
        core.closed.value()


def test_a_session_is_attached_and_ended_by_either_side() -> None:
    core = opened()
    call = core.open_channel()
    core.receive(octets(controls.SessionAttached(name=b"n.1"), channel=1), 0.0)
    session = call.value()
    assert core.channels == {1: session}
    core.receive(octets(controls.SessionDetached(name=b"n.1", code=1), channel=1), 0.0)
    assert core.channels == {}
    assert session.error is not None
    assert core.state is ConnectionPhase.OPEN


def test_random_octets_end_the_connection_or_are_waited_for() -> None:
    entropy = random.Random(7)
    for _ in range(300):
        core = CoreConnection010(URL_0_10, 0.0)
        data = bytearray(OPENING + entropy.randbytes(80))
        for _ in range(entropy.randrange(6)):
            data[entropy.randrange(len(data))] = entropy.randrange(256)
        core.receive(bytes(data), 0.0)
        assert core.state in ConnectionPhase
