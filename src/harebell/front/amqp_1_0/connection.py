"""A connection of AMQP 1.0.

SASL layer      NegotiationScanner  ->  harebell.front.amqp_1_0.login
frames          PerformativeScanner ->  Intake -> session, link
end of a turn   sessions that have something to say: outcomes, credit, windows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.auth.users import Users
from harebell.base import limits
from harebell.base.c_types import C, Done, Py, i64
from harebell.base.counters import BY_ERROR, BY_FORCE, BY_HEARTBEAT, BY_LOSS
from harebell.front.amqp_1_0.addresses import Addressing
from harebell.front.amqp_1_0.connection_states import (
    CONNECTION,
    ConditionFault,
    ConnectionEvent,
)
from harebell.front.amqp_1_0.errors import (
    CONNECTION_FORCED,
    FRAME_SIZE_TOO_SMALL,
    FRAMING_ERROR,
    INTERNAL_ERROR,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    ConnectionFault,
    LinkError,
    composite,
    condition_of,
    text_of,
)
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_end import end_channels, log_lost, release_owned
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.errors import describe
from harebell.front.common.login import LoginRefused
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.limits import (
    BLOCKED_INPUT_BYTES,
    DECODED_AT_ONCE_BYTES,
    DECODED_BYTES_PER_UNIT,
    OUTPUT_STOP_BYTES,
)
from harebell.kernels.transfers_1_0 import TransferBuffer
from harebell.model.broker import Broker
from harebell.wire import VERSION_1_0
from harebell.wire.v09.states import ConnectionState
from harebell.wire.v1.composites import Close
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.frames import EMPTY, MIN_MAX_FRAME_SIZE, encode_frame

if TYPE_CHECKING:
    from harebell.auth.sasl.exchange import Exchange

_NEVER = float("inf")
_OPEN, _CLOSING, _CLOSED = (
    ConnectionState.OPEN,
    ConnectionState.CLOSING,
    ConnectionState.CLOSED,
)
_EXPIRED = "credential expired"


@dataclass(frozen=True, slots=True)
class Handlers:
    """What a connection does by modules above it; called with the connection first, if not said.

    Args:
        begin: answers the protocol header.
        refuse: tells a peer in the SASL layer that its login has failed.
        open_: makes the open of the broker.
        intake: makes the sink of the frames, called with the sessions by channel.
        close_session: releases what a session has that ends; called with the session.
        end_link: releases what a sending link has that ends; called with the link.
        forget_link: forgets the name of a link that is detached for good; called with the link.
        expire_links: ends detached links that expire with the connection.
    """

    begin: Callable[[Any], None]
    refuse: Callable[[Any], None]
    open_: Callable[[Any], DescribedList]
    intake: Callable[[Any, dict[int, Any]], Any]
    close_session: Callable[[Any], None]
    end_link: Callable[[Any], None]
    forget_link: Callable[[Any], None]
    expire_links: Callable[[Any], None]


class Connection(BaseConnection):
    """The server's side of one connection.

    Args:
        broker, users, registry, settings, peer, now: as for `BaseConnection`.
        handlers: the handlers of its input.
        sasl: whether the peer has asked for the SASL layer.

    Attributes:
        frames: the output, with its exact type.
        container: the container-id of the peer; "" before its open.
        addressing: how addresses are read that are not of version 2.
        ending: the channels whose session the broker has ended, until the peer has ended it too.
        kept_links: detached links that expire with the connection.
        reporting: sessions with outcomes, credit or windows to send at the end of the turn.
        exchange: the login in progress.
        open_sent: whether the open of the broker is sent.
        beat_after: seconds without output after which the peer gets a keep-alive; 0 for never.
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
        sasl: bool,
    ) -> None:
        super().__init__(broker, users, registry, settings, peer, now, VERSION_1_0)
        self.frames: C[TransferBuffer] = TransferBuffer()
        self.frames.postpones = True
        self.out = self.frames
        self.handlers = handlers
        self.sasl = sasl
        self.intake: Any = handlers.intake(self, self.channels)
        self.container = ""
        self.addressing = Addressing(settings.addresses)
        self.ending: set[int] = set()
        self.kept_links: Py[dict[Any, None]] = {}
        self.reporting: list[Any] = []
        self.exchange: Exchange | None = None
        self.open_sent = False
        self._blocked_at: i64 = 0
        self.beat_after = 0.0
        self.silent_after = 0.0
        # What a peer takes before its open is known (AMQP 1.0 2.4.1).
        self.frame_max = MIN_MAX_FRAME_SIZE

    # --- the shell's side -----------------------------------------------------------------------

    def begin(self) -> None:
        """Answer the protocol header."""
        self.handlers.begin(self)

    def beat(self) -> None:
        """Write an empty frame, ahead of output that waits for a commit."""
        if self.held is None:
            self.out.raw(EMPTY)
        else:
            self.held.overtake(EMPTY)

    def force_close(self, reason: str, now: float) -> None:
        """Close the connection from the broker's side, for example because it stops."""
        if self.state is _OPEN:
            self.now = now
            self.end_reason = BY_FORCE
            if reason == _EXPIRED:
                self.close_with(UNAUTHORIZED_ACCESS, reason)
            else:
                self.close_with(CONNECTION_FORCED, f"Connection forced: {reason}")
        elif not self.closing:
            self.cut()

    def log_loss(self) -> None:
        """Log what the peer left unfinished."""
        log_lost(self)

    def send_blocked(self, blocked: bool) -> None:
        """Close or open the windows of the sessions: only transfers have to stop.

        The connection is read on. Nothing else of a blocked peer waits, neither its consumers nor
        its dispositions (AMQP 1.0 2.5.6: windows count transfers only).
        """
        self.paused = False
        self._blocked_at = self.traffic.recv_oct
        for session in self.channels.values():
            session.report_window()

    def count_while_blocked(self) -> None:
        """Stop reading a blocked peer that goes on as if its windows were open.

        They were, and in many sessions at once they let in more than there is memory.
        """
        if self.registry.publishers.finishing is self:
            return
        if self.traffic.recv_oct - self._blocked_at > BLOCKED_INPUT_BYTES:
            self.paused = True

    def has_begun(self) -> bool:
        """True if a message is received in part, or a transaction has messages."""
        return self.scanner.pending > 0 or any(
            session.transaction is not None and session.transaction.byte_count > 0
            for session in self.channels.values()
        )

    def let_finish(self, allowed: bool) -> None:
        """Open the windows of the sessions while blocked, or close them again."""
        self.send_blocked(not allowed)

    def unread_bytes(self) -> int:
        """Return the bytes of messages that have come in part."""
        return sum([link.partial.counted for _, link in self._in_part()])

    def give_up(self, text: str) -> None:
        """Detach the links on which messages have come in part."""
        for session, link in self._in_part():
            session.caught(LinkError(RESOURCE_LIMIT_EXCEEDED, text), link)

    def _in_part(self) -> list[tuple[Any, Any]]:
        return [
            (session, link)
            for session in self.channels.values()
            for link in session.links.values()
            if getattr(link, "partial", None) is not None
        ]

    # --- keep-alives ----------------------------------------------------------------------------

    def _next_heartbeat(self) -> C[float]:
        """Return when an empty frame is due, or the peer has been silent for too long."""
        sends = self._sent_at + self.beat_after if self.beat_after else _NEVER
        return min(sends, self.now + self.silent_after if self.silent_after else _NEVER)

    def _check_heartbeats(self, now: float) -> Done:
        """Send an empty frame if one is due; close the connection if the peer is silent."""
        if self.beat_after and now - self._sent_at >= self.beat_after:
            self._begin_beat(now)
            self.beat()
            self.touch()
        if not self.silent_after:
            return 0
        if self.paused or self.scanner.hold:
            # Frames of a connection that is not read do not arrive: restart its timeout.
            self.now = now
        if now - self.now < self.silent_after:
            return 0
        if self.transport is not None and self.transport.unread():
            # Frames may be unread: a busy broker reads them before it decides.
            return 0
        self.end_reason = BY_HEARTBEAT
        text = "no frame received from client within idle timeout threshold"
        self.close_with(RESOURCE_LIMIT_EXCEEDED, text)
        # The peer has sent nothing for long, so its close is not waited for.
        self.finish()
        return 0

    # --- the front's side -----------------------------------------------------------------------

    def charge(self, byte_count: int) -> None:
        """Charge the work of decoding so many bytes, if it is more than that of most frames."""
        if byte_count > DECODED_AT_ONCE_BYTES:
            self.registry.work.charge(byte_count // DECODED_BYTES_PER_UNIT)

    def send(self, channel: int, performative: DescribedList) -> None:
        """Write a frame.

        Raises:
            ConnectionFault: it is larger than the frames that the peer takes.
        """
        self.send_encoded(channel, performative.NAME, performative.encoded())

    def send_encoded(self, channel: int, name: str, body: bytes) -> None:
        """Write a frame with a performative that is encoded.

        Raises:
            ConnectionFault: as `send`.
        """
        data = encode_frame(body, channel)
        if len(data) > self.frame_max:
            text = (
                f"{name} of {len(data)} bytes > maximum frame size of the peer "
                f"({self.frame_max} bytes)"
            )
            raise ConnectionFault(FRAME_SIZE_TOO_SMALL, text)
        self.out.raw(data)
        if not self.dirty:
            self.touch()
        if self.out.size > OUTPUT_STOP_BYTES:
            # A peer that sends requests without reading would fill the broker's memory.
            self.scanner.hold = True

    def moves(self, event: ConnectionEvent, shown: str) -> bool:
        """Return whether an event is legal now, and False if it is to be dropped.

        Args:
            event: what has arrived.
            shown: how an error names it.

        Raises:
            ConnectionFault: it is an error.
        """
        outcome = CONNECTION[self.state][event]
        if isinstance(outcome, ConditionFault):
            raise outcome.error(event=shown)
        return isinstance(outcome, ConnectionState)

    def caught(self, error: Exception) -> None:
        """Close the connection because of an error.

        The peer is sent its own errors. The details of an internal error are only in the log.
        """
        condition, text = condition_of(error), text_of(error)
        if condition is None:
            self.log("error", f"{self.peer}: {describe(error)}")
            condition, text = INTERNAL_ERROR, "internal error"
        self.close_with(condition, text, counted=not isinstance(error, LoginRefused))

    def close_with(self, condition: str, text: str, *, counted: bool = True) -> None:
        """Send close with the reason, or end the SASL layer.

        Args:
            condition: the symbol of the condition.
            text: for the peer and the log.
            counted: whether it counts as a failure of its address, before the connection is open.
        """
        if counted:
            # A refused login has its line already.
            self.log("error", f"{self.peer}: connection closed: {condition}: {text}")
        if self.state in (_CLOSING, _CLOSED):
            # A fatal error after the broker's own close: no second one.
            self.finish()
            return
        if counted and self.state is not _OPEN:
            self.remember_failure()
        if self.end_reason == BY_LOSS:
            self.end_reason = BY_ERROR
        before = self.state
        self.release()
        if before in (ConnectionState.STARTING, ConnectionState.SECURING):
            self.handlers.refuse(self)
            self.finish()
            return
        if before is ConnectionState.TUNING or before is ConnectionState.HEADER:
            # There are no frames of AMQP yet.
            self.finish()
            return
        self._send_close(condition, text)
        self.state = _CLOSING
        # The peer's close has to be read.
        self.paused = False
        self.end_by(self.now + limits.CLOSE_TIMEOUT_SECONDS)
        self.scanner.fast = False
        self.scanner.hold = False
        if condition == FRAMING_ERROR:
            # Frame boundaries are lost, so no close can be recognised either.
            self.finish()

    def _send_close(self, condition: str, text: str) -> None:
        if not self.open_sent:
            # A client learns why only from a close, and a close needs an open (AMQP 1.0 2.4.1).
            self.out.raw(encode_frame(self.handlers.open_(self).encoded()))
            self.open_sent = True
        self.out.raw(encode_frame(Close(composite(condition, text)).encoded()))
        self.touch()

    def release(self) -> None:
        """Release everything that the peer held.

        All sessions stop before messages are requeued; otherwise the messages of one session would
        be delivered to another session of the same dead peer.
        """
        self.broker.events.actor = self.user.name
        sessions: list[Any] = list(self.channels.values())
        for session in sessions:
            session.ended = True
        self.channels.clear()
        self.ending.clear()
        self.reporting.clear()

        def then() -> None:
            self.handlers.expire_links(self)
            release_owned(self)

        end_channels(self, sessions, lambda session: session.close(), then)

    def break_cycle(self) -> None:
        """Break the reference cycle with the scanner, which would delay the release of memory."""
        super().break_cycle()
        self.intake.break_cycle()

    def _write_collected(self) -> None:
        """Send what sessions have collected in this turn."""
        if self.reporting:
            waiting, self.reporting = self.reporting, []
            for session in waiting:
                session.report()
            if self.out.size > OUTPUT_STOP_BYTES:
                # A peer that reads neither outcomes nor credit would fill the broker's memory.
                self.scanner.hold = True
