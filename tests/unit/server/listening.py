"""Brokers of the server layer in processes of their own, and a socket that speaks to them."""

from __future__ import annotations

import socket

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.frames import METHOD

HEADER = b"AMQP\x00\x00\x09\x01"
SECONDS = 60.0


def frame(method: m.Method, channel: int = 0) -> bytes:
    payload = AMQP_0_9_1.encode(method)
    return b"\x01" + channel.to_bytes(2) + len(payload).to_bytes(4) + payload + b"\xce"


class Talker:
    """One blocking connection, frame by frame.

    Args:
        sock: connected to a broker.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(SECONDS)
        self.sock = sock
        self._rest = b""

    def send(self, method: m.Method, channel: int = 0) -> None:
        self.sock.sendall(frame(method, channel))

    def next(self) -> m.Method | None:
        """The next method, or None when the broker has ended the connection."""
        while (found := self.frame()) is not None:
            kind, payload = found
            if kind == METHOD:
                return AMQP_0_9_1.decode(payload)
        return None

    def body(self) -> bytes:
        """The content that follows the method which came last."""
        found = self.frame()
        assert found is not None
        missing = int.from_bytes(found[1][4:12])
        parts: list[bytes] = []
        while missing > 0:
            found = self.frame()
            assert found is not None
            parts.append(found[1])
            missing -= len(found[1])
        return b"".join(parts)

    def frame(self) -> tuple[int, bytes] | None:
        """The next frame, its type and payload; None at the end of the connection."""
        while len(self._rest) < 7 or len(self._rest) < 8 + int.from_bytes(self._rest[3:7]):
            data = self.sock.recv(65536)
            if not data:
                assert self._rest == b"", "the broker ends at the end of a frame"
                return None
            self._rest += data
        size = int.from_bytes(self._rest[3:7])
        kind, payload, end = self._rest[0], self._rest[7 : 7 + size], self._rest[7 + size]
        assert end == 0xCE
        self._rest = self._rest[8 + size :]
        return kind, payload

    def log_in(self) -> Talker:
        self.sock.sendall(HEADER)
        assert isinstance(self.next(), m.ConnectionStart)
        self.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
        assert isinstance(self.next(), m.ConnectionTune)
        self.send(m.ConnectionTuneOk(0, 0, 0))
        self.send(m.ConnectionOpen("/"))
        assert isinstance(self.next(), m.ConnectionOpenOk)
        return self

    def open_channel(self) -> Talker:
        self.send(m.ChannelOpen(), 1)
        assert isinstance(self.next(), m.ChannelOpenOk)
        return self


def talk(port: int) -> Talker:
    """A plain connection that is logged in."""
    return Talker(socket.create_connection(("127.0.0.1", port), timeout=SECONDS)).log_in()
