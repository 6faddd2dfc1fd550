"""A connection whose protocol header has not arrived yet.

AMQP 0 0 9 1       0-9-1                  the first eight bytes, and what follows them:
AMQP 1 1 0 9       0-9                    the connection of that version, which gets the
AMQP 1 1 8 0, ...  0-8                    rest of the bytes
AMQP 0 1 0 0, ...  1.0
anything else      the header of the best version that is served, and the end (AMQP 0-9-1 4.2.2)
"""

from __future__ import annotations

from functools import partial
from typing import Any

from harebell.auth.users import Users
from harebell.base.c_types import C, Done
from harebell.base.counters import Traffic
from harebell.base.parts import import_next
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_log import log_accepted, log_ended
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.common.turns import Chore, Turns
from harebell.front.limits import ARRIVAL_UNITS
from harebell.front.loading import IMPORTED, PARTS, QUEUES
from harebell.front.versions import OPENERS, opener_of
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

    def break_cycle(self) -> None:
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
        registry.add(self)
        registry.accepted += 1
        self.origin = registry.accepted
        registry.pending_logins.add(self.origin, peer.address)
        # AMQP 0-9-1 4.10.2: clients that provoke many failures should be blocked.
        if registry.handshake_throttle.blocked(peer.address, now):
            self.cut()

    def receive(self, data: bytes | memoryview, now: float) -> C[None]:
        """Collect the protocol header, and pass further input to the connection of its version."""
        self.now = now
        if self.closing:
            return
        self._first += bytes(data)
        # The input is bounded: `held_back` stops the reading until the turn of this connection.
        if self.deferred:
            return
        turns: Turns = self.registry.turns
        if not turns.begin(self.account):
            self.scanner.hold = True
            self._put_off()
            return
        try:
            self._open()
        finally:
            turns.end()
        successor, rest = self.successor, self._first
        if successor is not None and rest:
            self._first = b""
            successor.receive(rest, now)

    def go_on(self) -> None:
        """Open the connection of the version in another turn; what follows the header waits."""
        self.deferred = self.scanner.hold = False
        if not self.closing and not self.departed:
            self._open()
        successor, rest = self.successor, self._first
        if successor is not None and rest:
            self._first = b""
            # Not `receive`: that would begin a turn within this one.
            successor.put_by(rest)
        if self.departed and not self.deferred:
            self.eof()

    def _open(self) -> None:
        """Open the connection of the version in the header, if the header is complete."""
        sniffed = sniff(self._first, self.peer.dialect)
        if sniffed.incomplete:
            return
        if sniffed.version not in OPENERS:
            self._refuse(sniffed.answer or HEADER_0_9_1)
            return
        if not self._imported(sniffed.version):
            return
        self._first = self._first[HEADER_BYTES:]
        # The successor counts the rest.
        self.traffic.recv_oct += HEADER_BYTES
        self.traffic.recv_cnt += 0 if self._first else 1
        self.broker.work.charge(ARRIVAL_UNITS)
        now = self.now
        opener = opener_of(sniffed)
        self._succeed(opener(self.broker, self.users, self.registry, self.settings, self.peer, now))

    def _imported(self, version: str) -> bool:
        """Return whether the code of a version is there; import a part of it if it is not."""
        turns = self.registry.turns
        if version in IMPORTED or not turns.limited:
            return True
        if import_next(PARTS[version]):
            # Other connections come first: the next part is for another pass of the loop.
            turns.rest()
            self.scanner.hold = True
            self._put_off()
            return False
        IMPORTED.add(version)
        turns.wait(turns.own, Chore(turns, turns.own, partial(_import_queues, turns)))
        return True

    def _refuse(self, answer: bytes) -> None:
        """Answer with a header that is served, and close (AMQP 0-9-1 4.2.2, 1.0 2.2)."""
        shown = "".join(
            chr(each) if 0x20 <= each < 0x7F else f"\\{each:03o}"
            for each in self._first[:HEADER_BYTES]
        )
        log_ended(self, "error", f'{{bad_header,<<"{shown}">>}}')
        self.remember_failure()
        self.out.raw(answer)
        self.cut()

    def _succeed(self, successor: BaseConnection) -> None:
        """Replace the arrival by the connection of its version."""
        registry = self.registry
        registry.remove(self)
        registry.add(successor)
        successor.origin = self.origin
        # Moved and not shared: the counters of an ended connection are added to the totals.
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

    def tick(self, now: float) -> Done:
        """Check the deadline of the protocol header."""
        self.begins_in_time(now)
        return 0

    def force_close(self, reason: str, now: float) -> None:
        """Close the socket: the version in which to send a reason is not known yet."""
        if not self.closing:
            self.cut()


def _import_queues(turns: Turns) -> bool:
    """Import a part of what the first queue needs; True if it is all there."""
    turns.rest()
    return not import_next(QUEUES)
