"""A connection's thread and its heartbeat thread at one socket, in every order of their steps."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harebell.client.blocking import shared_socket as blocking_socket
from harebell.client.blocking import transport as blocking_link
from harebell.client.blocking.transport import BlockingTransport
from harebell.client.protocol.v09.core import CoreConnection
from harebell.client.url import URL
from tests.interleaving import Lock, explore, point

HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
MODULES = [blocking_link, blocking_socket]


def frame(text: bytes) -> bytes:
    """A frame of a body, which no heartbeat may interrupt."""
    return b"\x03\x00\x01" + len(text).to_bytes(4) + text + b"\xce"


END = frame(b"the end")


class Narrow(socket.socket):
    """A socket that takes few octets at a time, or nothing every other time.

    Threads may be interrupted around each system call, as they are by the interpreter.
    """

    limit = 1 << 20
    full_between = False

    def setup(self, limit: int, full_between: bool) -> None:
        self.limit, self.full_between = limit, full_between
        self.calls = 0
        self.used_closed = False

    def send(self, data: memoryview, flags: int = 0) -> int:  # type: ignore[override]
        point()
        self.calls += 1
        self.used_closed |= self.fileno() < 0
        if self.full_between and self.calls % 2:
            raise BlockingIOError
        sent = super().send(data[: self.limit])
        point()
        return sent


class Line:
    """A link to a peer of the test's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Lock", Lock)
            patch.setattr(blocking_link, "_connect", self._connect)
            # Its handshake never ends, and is not missed.
            self.core = CoreConnection(URL(connection_timeout=1e9), time.monotonic())
            self.core.take_output()
            self._address = listener.getsockname()
            self.link = BlockingTransport(self.core, URL())
        self.peer, _ = listener.accept()
        self.peer.settimeout(30.0)
        listener.close()
        self._left = b""

    def _connect(self, url: URL, context: object) -> socket.socket:
        plain = socket.create_connection(self._address)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.narrow = Narrow(fileno=plain.detach())
        self.narrow.setup(1 << 20, False)
        return self.narrow

    def write(self, *frames: bytes) -> None:
        """What the thread of the connection does."""
        for one in frames:
            self.core.out.raw(one)
            assert self.link.flush()
            assert not self.core.finished

    def arrived(self) -> tuple[bytes, int]:
        """What the peer got since the last time: without heartbeats, and how many of them."""
        self.write(END)
        while END not in self._left:
            self._left += self.peer.recv(1 << 16)
        data, _, self._left = self._left.partition(END)
        frames = re.findall(rb"\x08\0\0\0\0\0\0\xce|\x03\0\x01\0\0\0\x0a.{10}\xce", data, re.DOTALL)
        assert b"".join(frames) == data, f"a frame is interrupted: {data!r}"
        told = [one for one in frames if one != HEARTBEAT]
        return b"".join(told), len(frames) - len(told)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    line = Line(monkeypatch)
    yield line
    line.link.abort()
    line.peer.close()


@pytest.mark.parametrize(("limit", "full_between"), [(99, False), (99, True), (10, False)])
def test_no_order_of_a_heartbeat_and_a_write_loses_or_mixes_octets(
    line: Line, limit: int, full_between: bool
) -> None:
    one = frame(b"0123456789")
    line.narrow.setup(limit, full_between)

    def check() -> None:
        told, beats = line.arrived()
        assert told == one
        assert beats <= 1

    orders = explore(MODULES, lambda: [lambda: line.write(one), line.link.beat], check)
    assert orders > 100


def test_no_order_of_two_heartbeats_and_a_write_loses_or_mixes_octets(line: Line) -> None:
    one = frame(b"0123456789")

    def beat_twice() -> None:
        line.link.beat()
        line.link.beat()

    def programs() -> list[Callable[[], None]]:
        return [beat_twice, lambda: line.write(one)]

    def check() -> None:
        assert line.arrived() == (one, 2)

    assert explore(MODULES, programs, check) > 100


def test_no_order_of_a_heartbeat_and_a_close_uses_the_closed_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[Line] = []

    def programs() -> list[Callable[[], None]]:
        lines.append(Line(monkeypatch))
        return [lines[-1].link.abort, lines[-1].link.beat]

    def check() -> None:
        line = lines.pop()
        line.peer.close()
        assert not line.narrow.used_closed
        assert line.narrow.fileno() < 0

    assert explore(MODULES, programs, check) > 20


def test_a_heartbeat_goes_on_with_what_the_other_thread_left(line: Line) -> None:
    one = frame(b"0123456789")
    line.narrow.setup(7, full_between=True)
    line.core.out.raw(one)
    assert not line.link.flush(until=0.0)
    line.narrow.setup(1 << 20, full_between=False)
    line.link.beat()
    assert line.arrived() == (one, 0)


def test_a_heartbeat_on_a_broken_connection_is_silent(line: Line) -> None:
    line.peer.close()
    for _ in range(3):
        line.link.beat()
    line.link.pump(1.0)
    assert line.core.finished
