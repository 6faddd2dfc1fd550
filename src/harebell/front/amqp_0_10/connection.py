"""One peer's connection in AMQP 0-10: bytes in, bytes out, and the controls of class connection.

What arrives is put together by `Intake`; what belongs to a session goes to the session that is on
the channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.users import Users
from harebell.base import limits
from harebell.front.amqp_0_10 import failure, handshake
from harebell.front.amqp_0_10 import session_attach as attach
from harebell.front.amqp_0_10.errors import CONNECTION_FORCED
from harebell.front.amqp_0_10.intake import Intake
from harebell.front.amqp_0_10.tx import uncommitted
from harebell.front.common.connection_registry import Hub
from harebell.front.common.framed_connection import ScannedLink
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.kernels.segments import CONTROL, SegmentScanner
from harebell.kernels.transfers import SegmentBuffer
from harebell.model.broker import Broker
from harebell.wire import FINAL_0_10, HEADER_0_10
from harebell.wire.v010 import controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import Control
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange
    from harebell.front.amqp_0_10.session import Session
    from harebell.model.queue.kind import Queue


class Connection(ScannedLink):
    """The server's side of one connection.

    Args:
        broker, users, hub, settings, peer, now: as for `Link`.

    Attributes:
        frames: the output, as what it is.
        ending: names of the sessions that failed, by the channel where the peer may not know yet.
        completing: sessions with something to tell at the end of the turn.
        exchange: the login that is going on.
    """

    def __init__(
        self, broker: Broker, users: Users, hub: Hub, settings: Settings, peer: Peer, now: float
    ) -> None:
        super().__init__(broker, users, hub, settings, peer, now, FINAL_0_10)
        self.frames = SegmentBuffer()
        self.frames.postpones = True
        self.out = self.frames
        self.intake = Intake(self, self.channels)
        self.scanner = SegmentScanner(self.intake)
        self.scanner.work = hub.work
        self.ending: dict[int, bytes] = {}
        self.completing: list[Any] = []
        self.exchange: Exchange | None = None
        self.frame_max = limits.HANDSHAKE_FRAME_BYTES

    # --- the shell's side -----------------------------------------------------------------------

    def begin(self) -> None:
        """Echo the protocol header and introduce the broker (AMQP 0-10 9.1)."""
        self.frames.raw(HEADER_0_10)
        handshake.start(self)

    def beat(self) -> None:
        """Write a heartbeat, before whatever waits for a commit."""
        beat = self.frames if self.held is None else SegmentBuffer()
        payload = AMQP_0_10.encode(controls.ConnectionHeartbeat())
        beat.segments(CONTROL, 0, payload, self.frame_max)
        if self.held is not None:
            self.held.overtake(beat.take())

    def force_close(self, reason: str, now: float) -> None:
        """The broker ends the connection, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            self.now = now
            text = f"broker forced connection closure with reason '{reason}'"
            failure.close(self, CONNECTION_FORCED, text)
        elif not self.closing:
            self.cut()

    # --- the front's side -----------------------------------------------------------------------

    def send_control(self, channel: int, control: Control) -> None:
        """Write a control."""
        self.frames.segments(CONTROL, channel, AMQP_0_10.encode(control), self.frame_max)
        self.touch()

    def has_begun(self) -> bool:
        """Whether a message is not read to its end, or publishes wait for their commit."""
        return bool(self.intake.assemblies) or any(map(uncommitted, self.channels.values()))

    def caught(self, error: Exception) -> None:
        """Close the connection because of an error."""
        failure.caught(self, error)

    def not_attached(self, channel: int) -> None:
        """A command came on a channel without a session."""
        if self.state is not ConnectionState.OPEN:
            if self.state not in (ConnectionState.CLOSING, ConnectionState.CLOSED):
                self.caught(failure.framing("a command before the connection is open"))
        elif channel not in self.ending:
            failure.not_attached(self, channel)

    def control(self, channel: int, payload: bytes) -> None:
        """A control came."""
        control = AMQP_0_10.decode_control(payload)
        if self.state is ConnectionState.CLOSED:
            # Several threads of a client may close its connection: each waits for a close-ok.
            if isinstance(control, controls.ConnectionClose):
                self.send_control(0, controls.ConnectionCloseOk())
            return
        if control.NAME.startswith("connection."):
            handshake.take(self, channel, control)
        elif self.state is ConnectionState.OPEN:
            attach.take(self, channel, control)
        elif self.state is not ConnectionState.CLOSING:
            raise failure.framing(f"{control.NAME} before the connection is open")

    def error(self, code: int, text: str) -> Exception:
        """An error that ends the connection."""
        return failure.connection_error(code, text)

    def release(self) -> None:
        """Let go of everything the peer held; sessions that outlive it are detached.

        All consumers go before anything comes back, or a session's messages would be delivered to
        another session of the same dead peer.
        """
        self.broker.events.actor = self.user.name
        sessions: list[Session] = list(self.channels.values())
        left: list[Queue] = []
        for session in sessions:
            left += session.leave_first()
        for session in sessions:
            session.leave()
        self.channels.clear()
        self.ending.clear()
        self.completing.clear()
        self.intake.drop_all()
        self._let_go(left)

    def let_go(self) -> None:
        """Nothing more comes: have no cycle, which only a rare collection of garbage would find."""
        super().let_go()
        self.intake.let_go()

    def _tell(self) -> None:
        """Tell what is complete."""
        if self.completing:
            waiting, self.completing = self.completing, []
            for session in waiting:
                session.complete()
