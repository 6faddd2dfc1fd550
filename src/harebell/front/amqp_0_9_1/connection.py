"""A connection of the 0-9-1 family: frames are dispatched here, and errors become closes.

It serves every version with the frames of 0-9-1; their differences are in its profile
(`harebell.front.amqp_0_9_1.profile`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.auth.users import Users
from harebell.base import limits as base_limits
from harebell.base.c_types import C, Done, Py, i32, u64
from harebell.base.counters import BY_ERROR, BY_FORCE, BY_LOSS
from harebell.base.errors import ProtocolError, Refusal
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front import limits
from harebell.front.amqp_0_9_1.channel_states import (
    CHANNEL,
    CONTENT_EVENTS,
    ChannelEvent,
    ChannelState,
)
from harebell.front.amqp_0_9_1.connection_states import METHOD_EVENTS, ConnectionEvent
from harebell.front.common.admission import check_channel
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_end import end_channels, log_lost, release_owned
from harebell.front.common.connection_log import (
    exception_text,
    log_channel_failed,
    log_failed,
)
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.decisions import decide
from harebell.front.common.errors import describe, hard
from harebell.front.common.event_exchange import channel_closed, channel_created
from harebell.front.common.login import LoginRefused
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.common.state_table import IGNORED, Fault
from harebell.front.convert.dispatch import converted
from harebell.front.convert.plain import plain_message
from harebell.front.operations.publishing_channel import PublishingChannel
from harebell.kernels.frames import FrameScanner
from harebell.kernels.output import OutBuffer, Passage
from harebell.model.broker import Broker
from harebell.model.limits import REMOVED_AT_ONCE
from harebell.wire.v09 import methods
from harebell.wire.v09.frames import BODY, HEADER, HEARTBEAT, METHOD
from harebell.wire.v09.plain_fields import PLAIN_TAGS
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.front.amqp_0_9_1.channel_port import BulkReads, ClosableChannel, PendingConfirms
    from harebell.front.amqp_0_9_1.profile import Profile
    from harebell.model.queue.contract import Queue

_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES
_HEARTBEAT = HEARTBEAT
_IDS = 4
"""Bytes of the class and method numbers at the beginning of a method frame."""
_OPEN, _CLOSING = ConnectionState.OPEN, ConnectionState.CLOSING
_ENDING = (_CLOSING, ConnectionState.CLOSED)
_OTHER_METHOD, _CHANNEL_FRAME = ConnectionEvent.OTHER_METHOD, ConnectionEvent.CHANNEL_FRAME
_CHANNEL_OPEN, _CHANNEL_CLOSING = ChannelState.OPEN, ChannelState.CLOSING
_CHANNEL_CLOSED = ChannelState.CLOSED
_OPENS, _CLOSES = ChannelEvent.OPEN, ChannelEvent.CLOSE


class Connection(BaseConnection):
    """The server's side of one connection after its protocol header.

    Args:
        broker, users, registry, settings, peer, now: as for `BaseConnection`.
        profile: the version.

    Attributes:
        spec: its methods, and their codec.
        layer: the sessions of a version that has them; None otherwise.
        confirming: channels with confirms to write at the end of the turn.
        known: the types of header values that the client knows, in versions of five types.
        qpid: whether the client was recognised as one of Qpid's, which have additional methods.
        closed_channels: channels that the broker closed, before close-ok.
        bulk: pending bulk reads; None until there is one.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        settings: Settings,
        peer: Peer,
        now: float,
        profile: Profile,
    ) -> None:
        super().__init__(broker, users, registry, settings, peer, now, profile.version)
        self.profile = profile
        self.spec = profile.spec
        self.layer = None if profile.layer is None else profile.layer()
        scanner = FrameScanner(self)
        scanner.tickets = profile.tickets
        scanner.frame_max = settings.initial_frame_max
        scanner.work = registry.work
        self.scanner = scanner
        self.qpid = False
        self.known = PLAIN_TAGS
        self.confirming: list[PendingConfirms] = []
        self.closed_channels: Py[set[int]] = set()
        self.bulk: BulkReads | None = None

    # --- the shell's side -----------------------------------------------------------------------

    def begin(self) -> None:
        """Introduce the broker."""
        self.profile.start(self)

    def relieve(self) -> None:
        """Serve the consumers and bulk reads that waited for space in the output."""
        super().relieve()
        if self.bulk is not None:
            self.bulk.serve()

    def log_loss(self) -> None:
        """Log what the peer left unfinished, on its channels too."""
        log_lost(self)
        # AMQP 0-9-1 1.5.2.6: a socket that ends without channel.close-ok should be logged.
        for number in sorted(self.closed_channels):
            text = f"{self.peer}: lost before channel.close-ok on channel {number}"
            self.log("error", text)

    def beat(self) -> None:
        """Write a heartbeat, ahead of output that waits for a commit."""
        # A disk that takes long must not look like a dead broker to the client.
        beat = self.out if self.held is None else OutBuffer()
        beat.frame(HEARTBEAT, 0, b"")
        if self.held is not None:
            self.held.overtake(beat.take())

    def _only_heartbeat(self, data: bytes | memoryview) -> C[bool]:
        """Return whether input is a heartbeat that needs no other look."""
        scanner = self.scanner
        assert isinstance(scanner, FrameScanner), "made with the connection"
        return scanner.is_heartbeat(data)

    def force_close(self, reason: str, now: float) -> None:
        """Close the connection from the broker's side, for example because it stops."""
        if self.state is _OPEN:
            self.now = now
            self.end_reason = BY_FORCE
            self.caught(hard(320, reason, 0, 0))
        elif not self.closing:
            # Before connection.open a peer gets no close (2.2.4); after the close it had one.
            self.cut()

    # --- the front's side -----------------------------------------------------------------------

    def send(self, channel: int, method: methods.Method) -> None:
        """Write a method."""
        if self.layer is not None:
            self.layer.send(self, channel, method)
            return
        self.out.frame(METHOD, channel, self.spec.encode(method))
        self.touch()

    def send_content(self, channel: int, method: methods.Method, message: Message) -> None:
        """Write a method with a message's content; long output holds further input back."""
        if self.layer is not None:
            self.layer.send_content(self, channel, method, message)
            return
        if message.family != FAMILY_09:
            message = converted(message, FAMILY_09)
        if self.profile.plain:
            message = plain_message(message, self.known)
        self.out.content(channel, self.spec.encode(method), message, self.frame_max)
        self.touch()
        if self.out.size > _OUTPUT_STOP:
            # A client that sends basic.get without reading would fill the broker's memory.
            self.scanner.hold = True

    def send_blocked(self, blocked: bool) -> None:
        """Send connection.blocked or unblocked to a client that supports them."""
        if self.wants("connection.blocked"):
            if blocked:
                self.send(0, methods.ConnectionBlocked(reason=self.registry.publishers.reason()))
            else:
                self.send(0, methods.ConnectionUnblocked())

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""
        if self.layer is not None and self.layer.has_begun(self):
            return True
        return any(channel.has_begun() for channel in self.channels.values())

    def drop_channel(self, channel: ClosableChannel) -> None:
        """End a channel; its number may be used again."""
        if self.channels.pop(channel.number, None) is not None:
            channel.close()
            channel_closed(channel)

    def end_channel(self, channel: ClosableChannel, error: ProtocolError, text: str) -> None:
        """Close a channel because of its error."""
        if self.layer is not None and self.layer.end_channel(self, channel, error, text):
            return
        number = channel.number
        # First, because this writes the outstanding confirms: behind channel.close the client
        # would not read them.
        self.drop_channel(channel)
        self.closed_channels.add(number)
        close = methods.ChannelClose(
            reply_code=error.code,
            reply_text=text,
            class_id=error.class_id,
            method_id=error.method_id,
        )
        self.send(number, close)

    def release(self) -> None:
        """Release everything that the peer held: channels first, then its exclusive queues.

        All consumers stop before messages are requeued; otherwise a channel's messages would be
        delivered to another channel of the same lost peer.
        """
        if self.layer is not None:
            self.layer.release(self)
        self.broker.events.actor = self.user.name
        consumed: list[Queue] = []
        channels = list(self.channels.values())
        many = sum(len(each.consumers or ()) for each in channels) > REMOVED_AT_ONCE
        for channel in channels:
            consumed += channel.stop_consuming(many)

        def then() -> None:
            self.broker.leases.left(self)
            self.broker.stages.left(self)
            release_owned(self, consumed)

        end_channels(self, channels, self.drop_channel, then)

    # --- frames ---------------------------------------------------------------------------------

    def publish(
        self,
        channel: i32,
        flags: i32,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> i32:
        """Take a complete publish from the scanner.

        No content can be incomplete on the channel: while one is, the scanner passes on frames.
        """
        opened: PublishingChannel | None = self.channels.get(channel)
        if opened is None:
            return self._not_open(channel, methods.BasicPublish())
        try:
            opened.publish(flags, exchange, routing_key, properties, body)
        except Undecided as undecided:
            arguments = (flags, exchange, routing_key, properties, body)
            repeat = partial(self._repeat_publish, opened, arguments)
            decide(self, undecided, partial(self._repeat, opened, repeat, (60, 40)))
        except Exception as error:
            self.channel_caught(opened, error, 60, 40)
        return 0

    def passage(
        self, channel: i32, flags: i32, exchange: str, routing_key: str
    ) -> C[Passage | None]:
        """Return the passage of publishes that repeat the last one's method."""
        opened: PublishingChannel | None = self.channels.get(channel)
        if opened is None or opened.content is not None or self.closing:
            return None
        return opened.passage(flags, exchange, routing_key)

    def ack(self, channel: i32, tag: u64, multiple: bool) -> Done:
        """Take a basic.ack from the scanner."""
        opened: PublishingChannel | None = self.channels.get(channel)
        if opened is None:
            return self._not_open(channel, methods.BasicAck())
        if opened.content is not None:
            # A method between the frames of a content is an error (4.2.6), found with the frame.
            return self.frame(METHOD, channel, self.spec.encode(methods.BasicAck(tag, multiple)))
        try:
            opened.ack(tag, multiple)
        except Exception as error:
            self.channel_caught(opened, error, 60, 80)
        return 0

    def frame(self, kind: i32, channel: i32, payload: bytes) -> Done:
        """Take a single frame that the scanner did not hand over as part of a whole content."""
        if kind == _HEARTBEAT and channel == 0 and not payload:
            # Legal or ignored in every state. That input has come is noted by `receive`.
            return 0
        try:
            self.take_frame(kind, channel, payload)
        except Undecided as undecided:
            # Of connection.open and other methods on channel 0: nothing is done before the check.
            decide(self, undecided, partial(self._repeat_frame, kind, channel, payload))
        except Exception as error:
            self.caught(error)
        return 0

    def take_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Take one frame.

        Raises:
            ProtocolError: the connection has to be closed with it.
        """
        if channel == 0 and kind == METHOD:
            self._connection_method(payload)
            return
        event = _frame_event(kind, channel, payload)
        outcome = self.profile.states[self.state][event]
        if isinstance(outcome, Fault):
            raise outcome.error(kind=kind, channel=channel)
        if outcome is not IGNORED and event is _CHANNEL_FRAME:
            self._channel_frame(kind, channel, payload)

    def _connection_method(self, payload: bytes) -> None:
        try:
            method = self.spec.known.get(payload)
            # The state is checked before the fields: before the login nothing else is decoded.
            if method is not None or len(payload) >= _IDS:
                spec = (
                    self.spec.headed(payload[:_IDS])
                    if method is None
                    else self.spec.spec_of(method)
                )
                event = METHOD_EVENTS.get(spec.name, _OTHER_METHOD)
                if self._allows(event, spec.class_id, spec.method_id) is IGNORED:
                    return
            if method is None:
                method = self.spec.decode(payload)
        except ProtocolError:
            if self.state in _ENDING:
                # An unreadable method counts no more than others after the close.
                return
            raise
        self.profile.connection_handlers[type(method)](self, method)

    def _allows(self, event: ConnectionEvent, class_id: int, method_id: int) -> object:
        """Return the outcome of a method on channel 0; raise it if it is a fault."""
        outcome = self.profile.states[self.state][event]
        if isinstance(outcome, Fault):
            raise outcome.error(class_id, method_id)
        return outcome

    def _channel_frame(self, kind: int, number: int, payload: bytes) -> None:
        if self.layer is not None:
            self.layer.channel_frame(self, kind, number, payload)
            return
        channel = self.channels.get(number)
        if channel is None:
            self.frame_without_channel(kind, number, payload)
        elif channel.content is not None:
            self.content_frame(channel, kind, payload)
        elif kind != METHOD:
            self._channel_allows(_CHANNEL_OPEN, CONTENT_EVENTS[kind])
        else:
            self.channel_method(channel, self.spec.decode(payload))

    def _channel_allows(
        self, state: ChannelState, event: ChannelEvent, class_id: int = 0, method_id: int = 0
    ) -> object:
        """Return the outcome of an event on a channel; raise it if it is a fault."""
        outcome = CHANNEL[state][event]
        if isinstance(outcome, Fault):
            raise outcome.error(class_id, method_id)
        return outcome

    def channel_method(self, channel: PublishingChannel, method: methods.Method) -> None:
        """Serve a method on an open channel."""
        spec = self.spec.spec_of(method)
        handler = self.profile.handlers.get(type(method))
        if handler is None:
            # Methods with a handler are legal on an open channel: the table is not read for each.
            event = self.profile.channel_events[type(method)]
            self._channel_allows(_CHANNEL_OPEN, event, spec.class_id, spec.method_id)
            return
        self.serve_method(channel, partial(handler, channel, method), spec.class_id, spec.method_id)

    def serve_method(
        self,
        channel: PublishingChannel,
        handler: Callable[[], object],
        class_id: int,
        method_id: int,
    ) -> None:
        """Call the handler of a method, again when a backend of users has decided.

        A handler checks every permission before it changes anything, so it can be repeated.
        """
        try:
            events = self.broker.events
            events.actor = self.user.name
            handler()
            if events.waiting:
                events.publish()
        except Undecided as undecided:
            decide(self, undecided, partial(self._repeat, channel, handler, (class_id, method_id)))
        except (Refusal, ProtocolError) as error:
            self.fail_channel(channel, error, class_id, method_id)

    def _repeat(
        self, channel: ClosableChannel, handler: Callable[[], object], place: tuple[int, int]
    ) -> None:
        """Repeat a handler or a publish that needed a decision about a permission."""
        if self.channels.get(channel.number) is not channel:
            # The channel was closed while the backend was asked.
            return
        events = self.broker.events
        events.actor = self.user.name
        try:
            handler()
        except Undecided:
            # A second permission is undecided: `decide` asks for it too.
            raise
        except Exception as error:
            self.channel_caught(channel, error, *place)
        if events.waiting:
            events.publish()

    def _repeat_publish(
        self,
        channel: PublishingChannel,
        arguments: tuple[int, str, str, Properties, bytes],
    ) -> None:
        # A reference to `channel.publish` would not be one to a method in C: Cython makes a
        # function of it that leaves out an argument that C needs.
        flags, exchange, routing_key, properties, body = arguments
        channel.publish(flags, exchange, routing_key, properties, body)

    def _repeat_frame(self, kind: int, channel: int, payload: bytes) -> None:
        try:
            self.take_frame(kind, channel, payload)
        except Undecided:
            raise
        except Exception as error:
            self.caught(error)

    def content_frame(self, channel: PublishingChannel, kind: int, payload: bytes) -> None:
        """Take a frame of the content that is being received on a channel."""
        content = channel.content
        try:
            whole = content.frame(kind, payload)
            # An unfinished body takes memory too: the publisher may have to be blocked.
            self.published = True
            # At the header already, so that the body is not collected before it is refused.
            if content.size > self.message_max:
                raise channel.too_large(content.size)
            if whole:
                content.release()
                channel.content = None
                self.scanner.pending -= 1
                self.registry.publishers.finished(self)
                content.done(channel, content)
        except Undecided as undecided:
            repeat = partial(content.done, channel, content)
            decide(self, undecided, partial(self._repeat, channel, repeat, content.place))
        except (Refusal, ProtocolError) as error:
            self.fail_channel(channel, error, *content.place)

    def frame_without_channel(self, kind: int, number: int, payload: bytes) -> None:
        """Open the channel of a frame, or ignore one that was sent before the peer got a close."""
        if kind != METHOD:
            self._event_without_channel(number, CONTENT_EVENTS[kind])
        elif number in self.closed_channels:
            # Frames from before the peer got the close are not decoded (AMQP 0-9-1 1.5.2.5).
            event = self.profile.channel_ends.get(payload[:_IDS], ChannelEvent.METHOD)
            self._event_without_channel(number, event)
        else:
            self.method_without_channel(number, self.spec.decode(payload))

    def method_without_channel(self, number: int, method: methods.Method) -> None:
        """Serve a method on a channel that is not open: only channel.open is legal."""
        if self.state is not _OPEN:
            return
        spec = self.spec.spec_of(method)
        if number == 0:
            # A publish or an ack from the scanner, which has not looked at its channel.
            self._allows(_OTHER_METHOD, spec.class_id, spec.method_id)
        event = self.profile.channel_events[type(method)]
        self._event_without_channel(number, event, spec.class_id, spec.method_id)

    def _event_without_channel(
        self, number: int, event: ChannelEvent, class_id: int = 0, method_id: int = 0
    ) -> None:
        closing = number in self.closed_channels
        state = _CHANNEL_CLOSING if closing else _CHANNEL_CLOSED
        if self._channel_allows(state, event, class_id, method_id) is IGNORED:
            return
        if event is _OPENS:
            self._open_channel(number)
        elif event is _CLOSES:
            # Both sides closed at once: each gets a close-ok (AMQP 0-9-1 2.3.7).
            self.send(number, methods.ChannelCloseOk())
        else:
            # close-ok: the number may be opened again.
            self.closed_channels.discard(number)

    def _open_channel(self, number: int) -> None:
        check_channel(self)
        self.channels[number] = channel = self.profile.channel(self, number)
        self.broker.events.actor = self.user.name
        channel_created(channel)
        self.send(number, methods.ChannelOpenOk())

    def _not_open(self, number: int, method: methods.Method) -> int:
        try:
            self.method_without_channel(number, method)
        except Exception as error:
            self.caught(error)
        return 0

    # --- errors ---------------------------------------------------------------------------------

    def caught(self, error: Exception) -> None:
        """Close the connection because of an error.

        The peer is sent its own errors. The details of an internal error are only in the log.
        """
        if not isinstance(error, ProtocolError):
            self.log("error", f"{self.peer}: {describe(error)}")
            error = hard(541, "internal error", 0, 0)
        self._close_with(error)

    def channel_caught(
        self, channel: ClosableChannel, error: Exception, class_id: int, method_id: int
    ) -> None:
        """Close the channel or the connection because of an error outside of a method's handler."""
        try:
            if isinstance(error, Refusal | ProtocolError):
                self.fail_channel(channel, error, class_id, method_id)
            else:
                self.caught(error)
        except ProtocolError as hard_error:
            # Here no frame is being taken that would pass it on to `caught`.
            self.caught(hard_error)

    def fail_channel(
        self,
        channel: ClosableChannel,
        error: Refusal | ProtocolError,
        class_id: int,
        method_id: int,
    ) -> None:
        """Close a channel with the reason; a hard error is raised for the connection."""
        errors = self.profile.errors
        if isinstance(error, Refusal):
            error = errors.reply(error, class_id, method_id)
        else:
            error = errors.translated(error)
        if error.hard:
            raise error
        text = errors.text(error)
        number = channel.number
        log_channel_failed(self, number, self._operation(error), text)
        if self.channels.get(number) is not channel:
            # The client has closed it while a long operation went on; its number may be in use.
            return
        self.end_channel(channel, error, text)

    def may_get_close(self, error: ProtocolError) -> bool:
        """True if a peer gets a connection.close before its connection is open."""
        if error.code == 403:
            return "authentication_failure_close" in self.capabilities
        if self.state is ConnectionState.OPENING and error.code == 504:
            # The peer has logged in and sends another method than connection.open.
            return error.class_id != 0
        # RabbitMQ names a refused vhost and a refused limit; everything else ends without a word.
        return error.code in (402, 530)

    def _operation(self, error: ProtocolError) -> str:
        """Return the name of the method that failed, for the log."""
        try:
            return self.spec.method(error.class_id, error.method_id).name
        except ProtocolError:
            return "none"

    def _close_with(self, error: ProtocolError) -> None:
        """Close the connection, with the reason if the peer may get it."""
        errors = self.profile.errors
        counted = not isinstance(error, LoginRefused)
        error = errors.translated(error)
        text = errors.text(error)
        if counted:
            # A refused login has its line already.
            why = exception_text(self._operation(error), "connection", text)
            refused = self.state is ConnectionState.OPENING and error.code in (402, 403, 530)
            log_failed(self, error.text if refused else why)
        if self.state is _CLOSING:
            # A fatal error after the broker's own close: no second handshake.
            self.finish()
            return
        if counted and self.state is not _OPEN:
            self.remember_failure()
        if self.state is not _OPEN and not self.may_get_close(error):
            # AMQP 0-9-1 2.2.4: before open a peer closes the socket without further data.
            self.scanner.stopped = True
            if error.code == 403:
                # 4.10.2: a failed login waits before its socket is closed, against guessing.
                self.end_by(self.now + limits.REFUSAL_PAUSE_SECONDS)
            else:
                self.cut()
            return
        if self.end_reason == BY_LOSS:
            # Unless something else, such as the stop of the broker, is the reason already.
            self.end_reason = BY_ERROR
        self.release()
        close = methods.ConnectionClose(
            reply_code=error.code,
            reply_text=text,
            class_id=error.class_id,
            method_id=error.method_id,
        )
        self.send(0, close)
        self.state = _CLOSING
        # close-ok has to be read, also from a publisher that is blocked as memory is short.
        self.paused = False
        self.end_by(self.now + base_limits.CLOSE_TIMEOUT_SECONDS)
        # From now on single frames: the table of states drops all but the end (1.4.2.9).
        self.scanner.pending = 0
        self.scanner.fast = False
        self.scanner.hold = False
        if error.code == 501:
            # Frame boundaries are lost, so no close-ok can be recognised either.
            self.finish()

    def _write_collected(self) -> None:
        """Write the confirms that are due."""
        if self.confirming:
            # A new list: an error in one flush must not repeat the others in the next turn.
            waiting, self.confirming = self.confirming, []
            for confirms in waiting:
                confirms.flush()


def _frame_event(kind: int, channel: int, payload: bytes) -> ConnectionEvent:
    """Return the event of a frame that is no method on channel 0."""
    if kind in (METHOD, HEADER, BODY):
        return _CHANNEL_FRAME if channel else ConnectionEvent.CONTENT
    if kind != HEARTBEAT:
        return ConnectionEvent.UNKNOWN_FRAME
    if channel:
        return ConnectionEvent.CHANNEL_HEARTBEAT
    return ConnectionEvent.LONG_HEARTBEAT if payload else ConnectionEvent.HEARTBEAT
