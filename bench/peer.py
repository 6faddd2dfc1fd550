"""A lean AMQP client on one blocking socket: what a load generator needs and nothing more.

It answers connection.start and connection.tune, waits for replies, and otherwise leaves the bytes
to its user, so that the generator costs far less than a broker.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any

from harebell.kernels.frames import FrameScanner, FrameSink
from harebell.wire import HEADER_0_8, HEADER_0_9_1
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.frames import HEARTBEAT, METHOD, OutBuffer

FRAME_MAX = 131_072
READ_BYTES = 262_144
SECONDS = 30.0
_VERSIONS = {"0-8": (HEADER_0_8, AMQP_0_8), "0-9-1": (HEADER_0_9_1, AMQP_0_9_1)}


class BenchError(RuntimeError):
    """A run that cannot be counted: something was lost, refused or too slow."""


class PeerSocket:
    """The part of a client that reads; its `_scanner` takes what comes.

    Attributes:
        socket: a connection to the broker.
    """

    socket: socket.socket
    _scanner: Any

    def _connect(self, port: int, read_bytes: int = READ_BYTES) -> None:
        """Connect to the broker that listens on loopback."""
        self._buffer = memoryview(bytearray(read_bytes))
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self) -> None:
        """Wait for input and take it."""
        try:
            count = self.socket.recv_into(self._buffer)
        except TimeoutError:
            raise BenchError(f"nothing arrived for {SECONDS:g} seconds") from None
        if count == 0:
            raise BenchError("the broker closed the connection")
        self._scanner.feed(self._buffer[:count])

    def read_if_any(self) -> None:
        """Take input that is there already."""
        while select.select([self.socket], [], [], 0)[0]:
            self.read()


class Peer(PeerSocket, FrameSink):
    """One connection, mostly with channel 1 open.

    Args:
        port: where the broker listens on loopback.
        on_delivery: called with (consumer tag, delivery tag, body) for every delivery.
        version: of AMQP, 0-8 or 0-9-1.
        user: who connects; the password is the same word.
        heartbeat: seconds that are agreed; its user sends them. 0 for none.
        vhost: what it opens.
        channel: whether it opens channel 1.

    Attributes:
        confirmed: the highest delivery tag that the broker has acknowledged.
    """

    def __init__(
        self,
        port: int,
        on_delivery: Callable[[str, int, bytes], None],
        version: str = "0-9-1",
        user: str = "guest",
        heartbeat: int = 0,
        vhost: str = "/",
        *,
        channel: bool = True,
    ) -> None:
        self.confirmed = 0
        header, self._spec = _VERSIONS[version]
        self._on_delivery = on_delivery
        self._replies: list[Any] = []
        self._parts: list[bytes] = []
        self._delivery = m.BasicDeliver()
        self._missing = 0
        self._connect(port)
        self._scanner = FrameScanner(self)
        self._scanner.client = True
        self._scanner.frame_max = FRAME_MAX
        self.socket.sendall(header)
        self._await(m.ConnectionStart)
        start_ok = m.ConnectionStartOk({}, "PLAIN", f"\0{user}\0{user}".encode(), "en_US")
        tune = self.call(start_ok, m.ConnectionTune, 0)
        self.send(m.ConnectionTuneOk(tune.channel_max, FRAME_MAX, heartbeat), 0)
        self.call(m.ConnectionOpen(vhost), m.ConnectionOpenOk, 0)
        self._scanner.fast = True
        if channel:
            self.call(m.ChannelOpen(), m.ChannelOpenOk)

    def send(self, method: m.Method, channel: int = 1) -> None:
        """Write a method."""
        out = OutBuffer()
        out.frame(METHOD, channel, self._spec.encode(method))
        self.socket.sendall(out.take())

    def call(self, method: m.Method, reply: type[Any], channel: int = 1) -> Any:
        """Write a method and wait for its reply."""
        self.send(method, channel)
        return self._await(reply)

    def _await(self, reply: type[Any]) -> Any:
        while not self._replies:
            self.read()
        found = self._replies.pop(0)
        if not isinstance(found, reply):
            raise BenchError(f"expected {reply.NAME}, got {found!r}")
        return found

    def close(self) -> None:
        """Say goodbye."""
        self.call(m.ConnectionClose(200, "done"), m.ConnectionCloseOk, 0)
        self.socket.close()

    # --- what the scanner calls -----------------------------------------------------------------

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """A single frame: a reply, or part of a content that did not arrive in one piece."""
        if self._scanner.pending:
            self._content_frame(payload)
        elif kind == METHOD:
            method = self._spec.decode(payload)
            if isinstance(method, m.BasicDeliver):
                self._scanner.pending = 1
                self._parts = []
                self._delivery = method
                self._missing = -1
            else:
                self._replies.append(method)
        elif kind != HEARTBEAT:
            raise BenchError(f"unexpected frame of type {kind}")
        return 0

    def _content_frame(self, payload: bytes) -> None:
        if self._missing < 0:
            self._missing = int.from_bytes(payload[4:12])
        else:
            self._parts.append(payload)
            self._missing -= len(payload)
        if self._missing == 0:
            self._scanner.pending = 0
            method = self._delivery
            self._on_delivery(method.consumer_tag, method.delivery_tag, b"".join(self._parts))

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Any,
        body: bytes,
    ) -> int:
        """A whole delivery."""
        self._on_delivery(consumer_tag, tag, body)
        return 0

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """A confirm. Single ones come in order too, as nothing here is rejected."""
        self.confirmed = max(self.confirmed, tag)
        return 0
