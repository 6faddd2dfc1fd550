"""A connection whose protocol header has not arrived yet.

AMQP 0 0 9 1       0-9-1                  the first eight bytes, and what follows them:
AMQP 1 1 0 9       0-9                    the connection of that version, which gets the
AMQP 1 1 8 0, ...  0-8                    rest of the bytes
anything else      the header of the best version that is served, and the end (AMQP 0-9-1 4.2.2)
"""

from __future__ import annotations

from typing import Any

from harebell.auth.users import Users
from harebell.base.counters import Traffic
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_log import log_accepted, log_ended
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.versions import OPENERS
from harebell.model.broker import Broker
from harebell.wire import HEADER_0_9_1, HEADER_BYTES, sniff


class _NoFrames:
    """The scanner of a connection that has no frames yet."""

    frame_max = 0
    fast = False
    stopped = False
    hold = False
    cut = False
    pending = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Drop input: the arrival collects its own."""

    def let_go(self) -> None:
        """Do nothing: it has no reference to the connection."""


class Arrival(BaseConnection):
    """A connection before its version is known.

    Args:
        broker, users, registry, settings, peer, now: as for `BaseConnection`.

    Attributes:
        successor: the connection that followed; None until then.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        settings: Settings,
        peer: Peer,
        now: float,
    ) -> None:
        super().__init__(broker, users, registry, settings, peer, now)
        self.scanner = _NoFrames()
        self.successor: BaseConnection | None = None
        self._first = b""
        registry.connections.add(self)
        registry.accepted += 1
        self.origin = registry.accepted
        registry.pending_logins.add(self.origin, peer.address)
        if registry.handshake_throttle.blocked(peer.address, now):
            self.cut()

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Collect the protocol header, and pass further input to the connection of its version."""
        self.now = now
        if self.closing:
            return
        self._first += bytes(data)
        sniffed = sniff(self._first, self.peer.dialect)
        if sniffed.incomplete:
            return
        opener = OPENERS.get(sniffed.version)
        if opener is None:
            self._refuse()
            return
        rest, self._first = self._first[HEADER_BYTES:], b""
        # The successor counts the rest.
        self.traffic.recv_oct += HEADER_BYTES
        self.traffic.recv_cnt += 0 if rest else 1
        self._succeed(opener(self.broker, self.users, self.registry, self.settings, self.peer, now))
        if self.successor is not None:
            self.successor.receive(rest, now)

    def _refuse(self) -> None:
        """Answer with the header of the version that serves most, and close."""
        shown = "".join(
            chr(each) if 0x20 <= each < 0x7F else f"\\{each:03o}"
            for each in self._first[:HEADER_BYTES]
        )
        log_ended(self, "error", f'{{bad_header,<<"{shown}">>}}')
        self.remember_failure()
        self.out.raw(HEADER_0_9_1)
        self.cut()

    def _succeed(self, successor: BaseConnection) -> None:
        """Replace the arrival by the connection of its version."""
        registry = self.registry
        registry.connections.discard(self)
        registry.connections.add(successor)
        successor.origin = self.origin
        successor.traffic, self.traffic = self.traffic, Traffic()
        successor.connected_at = self.connected_at
        successor.deadline = self.deadline
        successor.congested = self.congested
        self.successor = successor
        self.closing = True
        transport: Any = self.transport
        successor.transport, self.transport = transport, None
        if transport is not None:
            transport.succeed(successor)
        log_accepted(successor)
        successor.begin()

    def tick(self, now: float) -> None:
        """Check the deadline of the protocol header."""
        self.begins_in_time(now)

    def force_close(self, reason: str, now: float) -> None:
        """Close the socket: the version in which to send a reason is not known yet."""
        if not self.closing:
            self.cut()
