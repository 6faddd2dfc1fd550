"""The lean client of `bench.peer` in AMQP 0-10: one connection, one session."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from bench.peer import BenchError, PeerSocket
from harebell.kernels.segments import COMMAND, CONTROL, SegmentScanner, SegmentSink
from harebell.kernels.transfers import SegmentBuffer
from harebell.wire import HEADER_0_10
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import ExecutionException, ExecutionSync
from harebell.wire.v010.composites import Command, Control

FRAME_MAX = 65_535


class Peer010(PeerSocket, SegmentSink):
    """One connection with a session on channel 1.

    Args:
        port: where the broker listens on loopback.
        name: of the session.
        on_delivery: called with (subscription, delivery's number, body) for every delivery.
        user: who connects; the password is the same word.
    """

    def __init__(
        self,
        port: int,
        name: str,
        on_delivery: Callable[[str, int, bytes], None],
        user: str = "guest",
    ) -> None:
        self._on_delivery = on_delivery
        self._controls: list[Any] = []
        self._sent = 0
        self._completed = 0
        self._delivered = 0
        self._connect(port)
        self._scanner = SegmentScanner(self)
        self._scanner.frame_max = FRAME_MAX
        self.socket.sendall(HEADER_0_10)
        echo = self.socket.recv(len(HEADER_0_10), socket.MSG_WAITALL)
        if echo != HEADER_0_10:
            raise BenchError(f"the broker speaks no AMQP 0-10: {echo!r}")
        self._await(k.ConnectionStart)
        self.control(k.ConnectionStartOk({}, "PLAIN", f"\0{user}\0{user}".encode(), "en_US"), 0)
        self._await(k.ConnectionTune)
        self.control(k.ConnectionTuneOk(0, FRAME_MAX, 0), 0)
        self.control(k.ConnectionOpen("/"), 0)
        self._await(k.ConnectionOpenOk)
        self.control(k.SessionAttach(name.encode()))
        self._await(k.SessionAttached)
        self.control(k.SessionCommandPoint(0, 0))
        self._scanner.fast = True

    def control(self, control: Control, channel: int = 1) -> None:
        """Write a control."""
        out = SegmentBuffer()
        out.segments(CONTROL, channel, AMQP_0_10.encode(control), FRAME_MAX)
        self.socket.sendall(out.take())

    def do(self, *commands: Command) -> None:
        """Write commands, and wait until they are complete."""
        out = SegmentBuffer()
        for command in (*commands, ExecutionSync()):
            out.segments(COMMAND, 1, AMQP_0_10.encode(command, True), FRAME_MAX)
            self._sent += 1
        self.socket.sendall(out.take())
        self.wait_for(self._sent)

    def wait_for(self, count: int) -> None:
        """Wait until that many commands are complete."""
        while self._completed < count:
            self.read()

    def transferred(self, frames: memoryview, count: int) -> None:
        """Write transfers that are encoded already."""
        self._sent += count
        self.socket.sendall(frames)

    def finish(self) -> None:
        """Wait until everything that was sent is complete."""
        self.do()

    def _await(self, kind: type[Any]) -> Any:
        while True:
            for place, found in enumerate(self._controls):
                if isinstance(found, kind):
                    return self._controls.pop(place)
            self.read()

    def close(self) -> None:
        """Say goodbye."""
        self.control(k.ConnectionClose(200), 0)
        self._await(k.ConnectionCloseOk)
        self.socket.close()

    # --- what the scanner calls -----------------------------------------------------------------

    def frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> int:
        """A single frame: a control, an exception, or part of a delivery cut by a read."""
        if kind == CONTROL:
            control = AMQP_0_10.decode_control(payload)
            if isinstance(control, k.SessionCompleted) and control.commands:
                self._completed = control.commands[-1][1] + 1
            else:
                self._controls.append(control)
        elif kind == COMMAND and payload[:2] != b"\x04\x01":
            command = AMQP_0_10.decode_command(payload).command
            if isinstance(command, ExecutionException):
                raise BenchError(f"the broker ended the session: {command.description}")
        else:
            self._piece(kind, flags, payload)
        return 0

    def _piece(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == COMMAND:
            self._scanner.pending = 1
            self._parts: list[bytes] = []
            transfer: Any = AMQP_0_10.decode_command(payload).command
            self._to = transfer.destination
        elif kind == COMMAND + 2:
            self._parts.append(payload)
        if flags & 5 == 5:
            self._scanner.pending = 0
            self._deliver(self._to, b"".join(self._parts))

    def transfer(
        self,
        channel: int,
        flags: int,
        destination: str,
        routing_key: str,
        properties: Any,
        body: bytes,
    ) -> int:
        """A whole delivery."""
        self._deliver(destination, body)
        return 0

    def _deliver(self, destination: str, body: bytes) -> None:
        number = self._delivered
        self._delivered = number + 1
        self._on_delivery(destination, number, body)
