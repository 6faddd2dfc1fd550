"""The lean client of `bench.peer` in AMQP 1.0: one connection, one session, one link."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from bench.peer import BenchError, PeerSocket
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import AMQP, SASL, PerformativeScanner, PerformativeSink, encode_frame
from harebell.wire.v1.performatives import decode_performative, encode_composite
from harebell.wire.v1.sections import split

FRAME_MAX = 131_072
READ_BYTES = 65_536
"""Less than half of the credit in small messages: it is renewed between two reads."""
_SASL_HEADER = b"AMQP\3\1\0\0"
_AMQP_HEADER = b"AMQP\0\1\0\0"
_WINDOW = 2**31 - 1
_SETTLED, _UNSETTLED = 1, 0


class Peer1(PeerSocket, PerformativeSink):
    """One connection, session and link; the link has handle 0.

    Args:
        port: where the broker listens on loopback.
        name: of container and link.
        on_delivery: called with (name, delivery's number, body) for every delivery.
        user: who connects; the password is the same word.

    Attributes:
        limit: the delivery-count up to which the broker has given credit.
        settled: how many deliveries that were sent are settled, all of them accepted.
        received: how many deliveries have come.
    """

    def __init__(
        self,
        port: int,
        name: str,
        on_delivery: Callable[[str, int, bytes], None],
        user: str = "guest",
    ) -> None:
        self.limit = 0
        self.settled = 0
        self.received = 0
        self._credit = self._given = 0
        self._renews = False
        self._name = name
        self._on_delivery = on_delivery
        self._performatives: list[Any] = []
        self._parts: list[bytes] = []
        self._number = 0
        self._connect(port, READ_BYTES)
        self._exchange_headers(_SASL_HEADER)
        self._scanner = PerformativeScanner(self)
        self._await(c.SaslMechanisms)
        self.send(c.SaslInit("PLAIN", f"\0{user}\0{user}".encode()), 0, SASL)
        outcome = self._await(c.SaslOutcome)
        if outcome.code:
            raise BenchError(f"the login failed: {outcome!r}")
        self._exchange_headers(_AMQP_HEADER)
        self._scanner = PerformativeScanner(self)
        self._scanner.frame_max = FRAME_MAX
        self.send(c.Open(name, max_frame_size=FRAME_MAX), 0)
        self._await(c.Open)
        begin = c.Begin(next_outgoing_id=0, incoming_window=_WINDOW, outgoing_window=_WINDOW)
        self.send(begin)
        self._await(c.Begin)
        self._scanner.fast = True

    def _exchange_headers(self, header: bytes) -> None:
        self.socket.sendall(header)
        answer = self.socket.recv(len(header), socket.MSG_WAITALL)
        if answer != header:
            raise BenchError(f"the broker speaks no AMQP 1.0: {answer!r}")

    def attach(self, *, receives: bool, address: str, settled: bool) -> None:
        """Attach the link to a node, and wait for the answer."""
        self.send(
            c.Attach(
                self._name,
                0,
                receives,
                _SETTLED if settled else _UNSETTLED,
                source=c.Source(address) if receives else c.Source(),
                target=c.Target() if receives else c.Target(address),
                initial_delivery_count=None if receives else 0,
            )
        )
        self._await(c.Attach)

    def keep_credit(self, credit: int, *, by_itself: bool) -> None:
        """Give credit.

        Args:
            credit: how much.
            by_itself: whether it is renewed when half of it is used.
        """
        self._credit = credit
        self._renews = by_itself
        self.renew_credit()

    def renew_credit(self) -> None:
        """Give all of the credit beyond the deliveries that have come."""
        self._given = self.received + self._credit
        self.send(
            c.Flow(
                next_incoming_id=self.received,
                incoming_window=_WINDOW,
                next_outgoing_id=0,
                outgoing_window=_WINDOW,
                handle=0,
                delivery_count=self.received,
                link_credit=self._credit,
            )
        )

    def accept(self, first: int, last: int) -> None:
        """Accept and settle deliveries."""
        self.send(c.Disposition(True, first, last, True, c.Accepted()))

    def send(self, composite: Any, channel: int = 1, kind: int = AMQP) -> None:
        """Write a performative."""
        self.socket.sendall(encode_frame(encode_composite(composite), channel, kind))

    def _await(self, kind: type[Any]) -> Any:
        while not self._performatives:
            self.read()
        performative = self._performatives.pop(0)
        if not isinstance(performative, kind):
            raise BenchError(f"expected {kind.__name__}, got {performative!r}")
        return performative

    def read(self) -> None:
        """Wait for input and take it, then renew the credit."""
        super().read()
        if self._renews and self._given - self.received <= self._credit // 2:
            self.renew_credit()

    def close(self) -> None:
        """Say goodbye."""
        self.send(c.Close(), 0)
        self._await(c.Close)
        self.socket.close()

    # --- what the scanner calls -----------------------------------------------------------------

    def frame(self, channel: int, kind: int, body: bytes) -> int:
        """A single frame."""
        if body:
            performative, _ = decode_performative(body)
            if isinstance(performative, c.Detach | c.End):
                raise BenchError(f"the broker ended the link or session: {performative.error!r}")
            self._performatives.append(performative)
        return 0

    def transfer(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        properties: Any,
        body: bytes,
    ) -> int:
        """A whole delivery."""
        self.received += 1
        self._on_delivery(self._name, delivery_id, body)
        return 0

    def partial(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        state: bytes,
        payload: bytes,
    ) -> int:
        """A part of a delivery."""
        if not self._parts:
            self._number = delivery_id
        self._parts.append(payload)
        self._scanner.pending = flags >> 2 & 1
        if not self._scanner.pending:
            _, body, _ = split(b"".join(self._parts))
            self._parts = []
            self.received += 1
            self._on_delivery(self._name, self._number, body)
        return 0

    def disposition(
        self,
        channel: int,
        role: bool,
        first: int,
        last: int,
        settled: bool,
        outcome: int,
        state: bytes,
    ) -> int:
        """The broker has taken deliveries."""
        if outcome != c.Accepted.SPEC.code:
            raise BenchError(f"the broker did not accept a delivery: outcome {outcome:#x}")
        self.settled += last - first + 1
        return 0

    def flow(
        self,
        channel: int,
        next_incoming_id: int,
        incoming_window: int,
        next_outgoing_id: int,
        outgoing_window: int,
        handle: int,
        delivery_count: int,
        link_credit: int,
        available: int,
        flags: int,
    ) -> int:
        """Credit, unless it is the state of the session only."""
        if handle >= 0:
            self.limit = delivery_count + link_credit
        return 0
