"""A connection lives and ends alike in every version of AMQP."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any

import pytest

from harebell.client.errors import ClientClosed, ConnectionFailed, ConnectionLost, ConnectTimeout
from harebell.client.protocol.life import ConnectionPhase, Life
from harebell.client.protocol.v010 import core as core010
from harebell.client.protocol.v09 import core
from harebell.client.url import URL
from harebell.wire.v010 import controls
from harebell.wire.v09 import methods as m
from tests.unit.client.octets import Peer, method_frame
from tests.unit.client.protocol.v010.test_core import START, octets

_BEGUN = 100.0
_URL = "amqp://broker.example?connection_timeout=2000"


class Version(ABC):
    """A connection of one version, and what its broker says."""

    BEAT: bytes

    def __init__(self) -> None:
        self.core: Life[Any] = self.made(_URL)

    @abstractmethod
    def made(self, url: str) -> Life[Any]:
        """A connection that has said nothing but its protocol header."""

    @abstractmethod
    def open(self, heartbeat: int = 0, channel_max: int = 8) -> None:
        """The whole handshake."""

    @abstractmethod
    def channel(self) -> Any:
        """Open a channel."""

    @abstractmethod
    def close_ok(self) -> bytes:
        """The broker's answer to a close."""


class Early(Version):
    """AMQP 0-9-1."""

    BEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"

    def made(self, url: str) -> Life[Any]:
        self.peer = Peer(url, now=_BEGUN)
        return self.peer.core

    def open(self, heartbeat: int = 0, channel_max: int = 8) -> None:
        self.peer.open(heartbeat=heartbeat, channel_max=channel_max)

    def channel(self) -> Any:
        return self.peer.channel()

    def close_ok(self) -> bytes:
        return method_frame(m.ConnectionCloseOk())


class Final(Version):
    """AMQP 0-10."""

    BEAT = octets(controls.ConnectionHeartbeat())

    def made(self, url: str) -> Life[Any]:
        self.connection = core010.CoreConnection010(URL.of(url, "0-10"), _BEGUN, nonce="n")
        return self.connection

    def open(self, heartbeat: int = 0, channel_max: int = 8) -> None:
        tune = controls.ConnectionTune(
            channel_max=channel_max, max_frame_size=65_535, heartbeat_max=heartbeat
        )
        said = octets(START, tune, controls.ConnectionOpenOk())
        self.core.receive(core010.PROTOCOL_HEADER + said, _BEGUN)
        self.core.opened.value()
        self.core.take_output()

    def channel(self) -> Any:
        others = set(self.core.channels)
        call = self.connection.open_channel()
        (number,) = set(self.core.channels) - others
        name = f"n.{self.connection._sessions}".encode()
        self.core.receive(octets(controls.SessionAttached(name=name), channel=number), _BEGUN)
        return call.value()

    def close_ok(self) -> bytes:
        return octets(controls.ConnectionCloseOk())


@pytest.fixture(params=[Early, Final], ids=["0-9-1", "0-10"])
def version(request: pytest.FixtureRequest) -> Version:
    return request.param()  # type: ignore[no-any-return]


def test_both_versions_are_what_the_client_uses() -> None:
    assert isinstance(Early().core, core.CoreConnection)
    assert isinstance(Final().core, core010.CoreConnection010)


def test_a_handshake_that_takes_too_long_is_given_up(version: Version) -> None:
    assert version.core.wake_at() == _BEGUN + 2
    version.core.tick(_BEGUN + 1.9)
    assert not version.core.finished
    version.core.tick(_BEGUN + 2)
    with pytest.raises(ConnectTimeout, match=r"broker\.example.*2 seconds \(state starting\)"):
        version.core.opened.value()


def test_an_open_connection_without_heartbeats_waits_for_no_clock(version: Version) -> None:
    version.open(heartbeat=0)
    assert version.core.wake_at() is None
    version.core.tick(1e9)
    assert version.core.state is ConnectionPhase.OPEN


def test_an_idle_connection_beats_at_least_twice_per_interval(version: Version) -> None:
    version.open(heartbeat=10)
    now, beats = _BEGUN, []
    while now < _BEGUN + 40:
        at = version.core.wake_at()
        assert at is not None
        now = at
        version.core.receive(version.BEAT, now)
        version.core.tick(now)
        written = version.core.take_output()
        assert written in (b"", version.BEAT)
        if written:
            beats.append(now)
    gaps = [later - earlier for earlier, later in itertools.pairwise(beats)]
    assert len(beats) >= 8
    assert max(gaps) <= 5.0


def test_a_connection_that_writes_needs_no_heartbeats(version: Version) -> None:
    version.open(heartbeat=10)
    for _ in range(8):
        at = version.core.wake_at()
        assert at is not None
        version.core.out.raw(b"anything")  # type: ignore[attr-defined]
        assert version.core.take_output() == b"anything"
        version.core.receive(version.BEAT, at)
        version.core.tick(at)
        assert version.core.take_output() == b""


def test_a_silent_broker_is_lost_after_two_intervals_and_not_before(version: Version) -> None:
    version.open(heartbeat=10)
    for seconds in (5, 10, 19):
        version.core.tick(_BEGUN + seconds)
        assert version.core.state is ConnectionPhase.OPEN
    version.core.tick(_BEGUN + 22.6)
    with pytest.raises(ConnectionLost, match=r"nothing came.*23 seconds, with heartbeats every 10"):
        version.core.closed.value()


def test_any_octet_of_the_broker_shows_that_it_lives(version: Version) -> None:
    version.open(heartbeat=10)
    version.core.receive(version.BEAT[:1], _BEGUN + 18)
    version.core.tick(_BEGUN + 22)
    assert version.core.state is ConnectionPhase.OPEN


def test_a_broker_is_not_lost_because_we_stopped_reading(version: Version) -> None:
    version.open(heartbeat=10)
    version.core.reading_paused = True
    version.core.tick(_BEGUN + 100)
    assert version.core.state is ConnectionPhase.OPEN


def test_closing_ends_with_the_brokers_answer(version: Version) -> None:
    version.open()
    channel = version.channel()
    call = version.core.close(_BEGUN)
    assert version.core.take_output()
    with pytest.raises(ClientClosed):
        channel.check_open()
    assert not call.done
    version.core.receive(version.close_ok(), _BEGUN)
    call.value()
    assert version.core.finished
    with pytest.raises(ClientClosed, match="the connection was closed"):
        version.core.check_open()


def test_a_broker_that_does_not_answer_close_is_left_after_a_while(version: Version) -> None:
    version.open()
    call = version.core.close(_BEGUN)
    at = version.core.wake_at()
    assert at is not None
    version.core.tick(at - 0.1)
    assert not call.done
    version.core.tick(at)
    call.value()
    assert version.core.finished


def test_a_broker_that_has_blocked_us_is_left_sooner(version: Version) -> None:
    version.open()
    version.core.blocked = "low on memory"
    version.core.close(_BEGUN)
    at = version.core.wake_at()
    assert at is not None
    assert at - _BEGUN <= 1.0


def test_a_broker_that_hangs_up_while_we_close_has_closed(version: Version) -> None:
    version.open()
    call = version.core.close(_BEGUN)
    version.core.eof()
    call.value()


def test_a_socket_that_ends_without_a_word_is_a_lost_connection(version: Version) -> None:
    version.open()
    version.core.eof("the connection broke: reset")
    with pytest.raises(ConnectionLost, match=r"reset.*broker\.example"):
        version.core.closed.value()


def test_a_socket_that_ends_before_the_handshake_is_no_connection(version: Version) -> None:
    version.core.eof()
    with pytest.raises(ConnectionFailed, match=r"without connection.close.*broker\.example"):
        version.core.opened.value()


def test_a_connection_closed_before_it_is_open_never_opens(version: Version) -> None:
    version.core.close(_BEGUN)
    assert version.core.finished
    with pytest.raises(ClientClosed):
        version.core.opened.value()


def test_input_and_time_after_the_end_are_ignored(version: Version) -> None:
    version.open(heartbeat=10)
    version.core.eof()
    version.core.take_output()
    version.core.receive(b"anything at all", _BEGUN)
    version.core.tick(1e9)
    version.core.eof("again")
    assert version.core.take_output() == b""
    assert version.core.wake_at() is None


def test_channels_take_the_lowest_free_number_up_to_the_limit(version: Version) -> None:
    version.open(channel_max=3)
    assert [version.channel().number for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ClientClosed, match="all 3 channels"):
        version.core.open_channel()  # type: ignore[attr-defined]
    version.core.forget(2)  # type: ignore[attr-defined]
    assert version.channel().number == 2
