"""A connection of AMQP 0-10.

`Intake` assembles the input; commands go to the session on their channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.users import Users
from harebell.base import limits
from harebell.base.c_types import C
from harebell.base.counters import BY_ERROR, BY_FORCE, BY_LOSS
from harebell.base.errors import ProtocolError
from harebell.front.amqp_0_10.errors import (
    CONNECTION_FORCED,
    FRAMING_ERROR,
    close_text,
    connection_error,
    framing,
)
from harebell.front.amqp_0_10.session_states import (
    CHANNEL,
    NOT_ATTACHED,
    ChannelEvent,
    ChannelState,
)
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_end import end_channels, log_lost, release_owned
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.errors import describe
from harebell.front.common.login import LoginRefused
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.kernels.segments import CONTROL, SegmentScanner
from harebell.kernels.transfers import SegmentBuffer
from harebell.model.broker import Broker
from harebell.wire import FINAL_0_10, HEADER_0_10
from harebell.wire.v010 import controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Control
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange


class SegmentIntake(Protocol):
    """The assembler of a connection's frames; see `Intake`."""

    @property
    def assemblies(self) -> dict[Any, Any]:
        """Incomplete assemblies, by channel and track."""

    def drop_all(self) -> None:
        """Drop everything: the connection is closed."""

    def break_cycle(self) -> None:
        """Break the reference cycle with the connection."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a connection's input; each is called with the connection first.

    Args:
        start: introduces the broker.
        connection_control: serves a control of class connection, called with channel and control.
        session_control: serves one of class session.
        intake: makes the assembler of frames, called with the sessions by channel.
    """

    start: Callable[[Any], None]
    connection_control: Callable[[Any, int, Control], None]
    session_control: Callable[[Any, int, Control], None]
    intake: Callable[[Any, dict[int, Any]], Any]


class Connection(BaseConnection):
    """The server's side of one connection.

    Args:
        broker, users, registry, settings, peer, now: as for `BaseConnection`.
        handlers: the handlers of its input.

    Attributes:
        frames: the output, with its exact type.
        ending: names of failed sessions, by channel, until the peer has acknowledged the end.
        completing: sessions with completions to send at the end of the turn.
        exchange: the login in progress.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        settings: Settings,
        peer: Peer,
        now: float,
        handlers: Handlers,
    ) -> None:
        super().__init__(broker, users, registry, settings, peer, now, FINAL_0_10)
        self.frames: C[SegmentBuffer] = SegmentBuffer()
        self.frames.postpones = True
        self.out = self.frames
        self.handlers = handlers
        intake = handlers.intake(self, self.channels)
        self.intake: SegmentIntake = intake
        scanner = SegmentScanner(intake)
        scanner.work = registry.work
        scanner.frame_max = settings.initial_frame_max
        self.scanner = scanner
        self.ending: dict[int, bytes] = {}
        self.completing: list[Any] = []
        self.exchange: Exchange | None = None
        self.frame_max = limits.FRAME_MIN_BYTES

    # --- the shell's side -----------------------------------------------------------------------

    def begin(self) -> None:
        """Echo the protocol header and introduce the broker (AMQP 0-10 9.1)."""
        self.frames.raw(HEADER_0_10)
        self.handlers.start(self)

    def beat(self) -> None:
        """Write a heartbeat, ahead of output that waits for a commit."""
        beat = self.frames if self.held is None else SegmentBuffer()
        payload = AMQP_0_10.encode(controls.ConnectionHeartbeat())
        beat.segments(CONTROL, 0, payload, self.frame_max)
        if self.held is not None:
            self.held.overtake(beat.take())

    def force_close(self, reason: str, now: float) -> None:
        """Close the connection from the broker's side, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            self.now = now
            self.end_reason = BY_FORCE
            self.close_with(CONNECTION_FORCED, reason)
        elif not self.closing:
            self.cut()

    def log_loss(self) -> None:
        """Log what the peer left unfinished."""
        log_lost(self)

    # --- the front's side -----------------------------------------------------------------------

    def send_control(self, channel: int, control: Control) -> None:
        """Write a control."""
        self.frames.segments(CONTROL, channel, AMQP_0_10.encode(control), self.frame_max)
        self.touch()

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""
        return bool(self.intake.assemblies) or any(
            session.has_uncommitted() for session in self.channels.values()
        )

    def caught(self, error: Exception) -> None:
        """Close the connection because of an error.

        The peer is sent its own errors. The details of an internal error are only in the log.
        """
        if not isinstance(error, ProtocolError):
            self.log("error", f"{self.peer}: {describe(error)}")
            error = ProtocolError(CONNECTION_FORCED, "internal error")
        self.close_with(error.code, error.text, counted=not isinstance(error, LoginRefused))

    def close_with(self, code: int, text: str, *, counted: bool = True) -> None:
        """Send connection.close with the reason, before the connection is open or after.

        Args:
            code: one of connection.close.
            text: for the peer and the log.
            counted: whether it counts as a failure of its address, before it is open.
        """
        text = close_text(code, text)
        if counted:
            # A refused login has its line already.
            self.log("error", f"{self.peer}: connection closed: {text}")
        if self.state in (ConnectionState.CLOSING, ConnectionState.CLOSED):
            # A fatal error after the broker's own close: no second handshake.
            self.finish()
            return
        if counted and self.state is not ConnectionState.OPEN:
            self.remember_failure()
        if self.end_reason == BY_LOSS:
            self.end_reason = BY_ERROR
        self.release()
        self.send_control(0, controls.ConnectionClose(code, text))
        self.state = ConnectionState.CLOSING
        # close-ok has to be read, also from a publisher that is blocked as memory is short.
        self.paused = False
        self.end_by(self.now + limits.CLOSE_TIMEOUT_SECONDS)
        self.scanner.fast = False
        self.scanner.hold = False
        if code == FRAMING_ERROR:
            # Frame boundaries are lost, so no close-ok can be recognised either.
            self.finish()

    def not_attached(self, channel: int) -> None:
        """Handle a command on a channel without a session."""
        if self.state is not ConnectionState.OPEN:
            if self.state not in (ConnectionState.CLOSING, ConnectionState.CLOSED):
                text = "a command, or a control on a channel, before the connection is open"
                self.caught(framing(text))
        elif CHANNEL[self.channel_state(channel)][ChannelEvent.COMMAND] is NOT_ATTACHED:
            self.refuse_unattached(channel)

    def refuse_unattached(self, channel: int) -> None:
        """Send session.detached: no session is on the channel, whose input is ignored now."""
        self.send_control(channel, controls.SessionDetached(b"", NOT_ATTACHED.code))
        # Once: a client that pipelines commands would get an answer to each.
        self.ending[channel] = b""

    def channel_state(self, channel: int) -> ChannelState:
        """Return whether a session is on a channel, or was until its failure."""
        session = self.channels.get(channel)
        if session is not None:
            return ChannelState.ATTACHED if session.attached else ChannelState.RESUMING
        return ChannelState.ENDING if channel in self.ending else ChannelState.DETACHED

    def control(self, channel: int, payload: bytes) -> None:
        """Dispatch a control."""
        control = AMQP_0_10.decode_control(payload)
        if self.state is ConnectionState.CLOSED:
            # Several threads of a client may close its connection: each waits for a close-ok.
            if isinstance(control, controls.ConnectionClose):
                self.send_control(0, controls.ConnectionCloseOk())
            # Everything else was sent before the client knew of the end.
            return
        if control.NAME.startswith("connection."):
            self.handlers.connection_control(self, channel, control)
        elif self.state is ConnectionState.OPEN:
            self.handlers.session_control(self, channel, control)
        elif self.state is not ConnectionState.CLOSING:
            raise framing(f"{control.NAME} before the connection is open")

    def error(self, code: int, text: str) -> Exception:
        """Make an error that ends the connection."""
        return connection_error(code, text)

    def release(self) -> None:
        """Release everything that the peer held; sessions with a timeout are detached.

        All sessions stop before messages are requeued; otherwise the messages of one session would
        be delivered to another session of the same dead peer.
        """
        self.broker.events.actor = self.user.name
        sessions: list[Any] = list(self.channels.values())
        for session in sessions:
            session.leave_first()
        for session in sessions:
            if session.timeout:
                session.leave()
        self.channels.clear()
        self.ending.clear()
        # Sessions that live on enlist again when they are attached.
        self.completing.clear()
        self.intake.drop_all()
        ended = [session for session in sessions if not session.timeout]
        end_channels(self, ended, lambda session: session.end(), lambda: release_owned(self))

    def break_cycle(self) -> None:
        """Break the reference cycle with the scanner, which would delay the release of memory."""
        super().break_cycle()
        self.intake.break_cycle()

    def _write_collected(self) -> None:
        """Send the completions."""
        if self.completing:
            waiting, self.completing = self.completing, []
            for session in waiting:
                session.complete()
