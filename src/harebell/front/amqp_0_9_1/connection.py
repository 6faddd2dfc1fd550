"""A connection of the 0-9-1 family: frames are dispatched here, and errors become closes.

It serves every version with the frames of 0-9-1; their differences are in its profile
(`harebell.front.amqp_0_9_1.profile`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.auth.users import Users
from harebell.base import limits
from harebell.base.errors import ProtocolError, Refusal
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.amqp_0_9_1.channel_port import ChannelPort
from harebell.front.common.admission import check_channel
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_end import log_lost, release_owned
from harebell.front.common.connection_log import (
    exception_text,
    log_channel_failed,
    log_failed,
)
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.errors import describe, hard
from harebell.front.common.event_exchange import channel_closed, channel_created
from harebell.front.common.login import LoginRefused
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert.dispatch import converted
from harebell.front.convert.plain import plain_message
from harebell.kernels.frames import FrameScanner
from harebell.kernels.output import OutBuffer
from harebell.model.broker import Broker
from harebell.wire.v09 import methods
from harebell.wire.v09.frames import BODY, HEADER, HEARTBEAT, METHOD
from harebell.wire.v09.plain_fields import PLAIN_TAGS
from harebell.wire.v09.states import ConnectionState, check_connection_method

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.front.amqp_0_9_1.channel_port import BulkReads, ClosableChannel, PendingConfirms
    from harebell.front.amqp_0_9_1.profile import Profile
    from harebell.model.queue.contract import Queue

_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES
_IDS = 4
"""Bytes of the class and method numbers at the beginning of a method frame."""
_ENDING = (ConnectionState.CLOSING, ConnectionState.CLOSED)


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
        self.closed_channels: set[int] = set()
        self.bulk: BulkReads | None = None
        self.intercepts = settings.stamp_time is not None or settings.stamp_node is not None
        self.stamps = settings.stamp_sent

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
        for number in sorted(self.closed_channels):
            text = f"{self.peer}: lost before channel.close-ok on channel {number}"
            self.log("error", text)

    def beat(self) -> None:
        """Write a heartbeat, ahead of output that waits for a commit."""
        beat = self.out if self.held is None else OutBuffer()
        beat.frame(HEARTBEAT, 0, b"")
        if self.held is not None:
            self.held.overtake(beat.take())

    def force_close(self, reason: str, now: float) -> None:
        """Close the connection from the broker's side, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            text = f"broker forced connection closure with reason '{reason}'"
            self.now = now
            self.caught(hard(320, text, 0, 0))
        elif not self.closing:
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
            self.scanner.hold = True

    def send_blocked(self, blocked: bool) -> None:
        """Send connection.blocked or unblocked to a client that supports them."""
        if self.wants("connection.blocked"):
            if blocked:
                self.send(0, methods.ConnectionBlocked(reason=self.registry.reason()))
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
        left: list[Queue] = []
        for channel in self.channels.values():
            left += channel.stop_consuming()
        for channel in list(self.channels.values()):
            self.drop_channel(channel)
        self.broker.leases.left(self)
        self.broker.stages.left(self)
        release_owned(self, left)

    # --- frames ---------------------------------------------------------------------------------

    def publish(
        self,
        channel: int,
        flags: int,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """Take a complete publish from the scanner."""
        opened = self.channels.get(channel)
        if opened is None:
            return self._not_open(channel, methods.BasicPublish())
        try:
            opened.publish(flags, exchange, routing_key, properties, body)
        except Undecided as undecided:
            arguments = (flags, exchange, routing_key, properties, body)
            done = partial(self._publish_again, opened, arguments)
            self.decide(undecided, partial(self._again, opened, done, (60, 40)))
        except Exception as error:
            self.channel_caught(opened, error, 60, 40)
        return 0

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """Take a basic.ack from the scanner."""
        opened = self.channels.get(channel)
        if opened is None:
            return self._not_open(channel, methods.BasicAck())
        if opened.content is not None:
            return self.frame(METHOD, channel, self.spec.encode(methods.BasicAck(tag, multiple)))
        try:
            opened.ack(tag, multiple)
        except Exception as error:
            self.channel_caught(opened, error, 60, 80)
        return 0

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Take a single frame that the scanner did not hand over as part of a whole content."""
        try:
            self.take_frame(kind, channel, payload)
        except Undecided as undecided:
            # Of connection.open and other methods on channel 0: nothing is done before the check.
            self.decide(undecided, partial(self._frame_again, kind, channel, payload))
        except Exception as error:
            self.caught(error)
        return 0

    def take_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Take one frame.

        Raises:
            ProtocolError: the connection has to be closed with it.
        """
        if kind not in (METHOD, HEADER, BODY, HEARTBEAT):
            raise hard(501, f"type {kind}, all octets = <<>>: unknown_frame", 0, 0)
        if self.state in _ENDING:
            self._frame_while_closing(kind, channel, payload)
        elif kind == HEARTBEAT:
            _check_heartbeat(channel, payload)
        elif channel == 0:
            self._connection_frame(kind, payload)
        else:
            self._channel_frame(kind, channel, payload)

    def _frame_while_closing(self, kind: int, channel: int, payload: bytes) -> None:
        """After connection.close, ignore all but its handshake (AMQP 0-9-1 1.4.2.9).

        Several threads of a client may close its connection: each waits for a close-ok.
        """
        if kind != METHOD or channel != 0:
            return
        try:
            method = self.spec.decode(payload)
        except ProtocolError:
            return
        if isinstance(method, methods.ConnectionCloseOk):
            self.finish()
        elif isinstance(method, methods.ConnectionClose):
            self.send(0, methods.ConnectionCloseOk())

    def _connection_frame(self, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            raise hard(505, "content frame on channel 0", 0, 0)
        table = self.spec
        # The state is checked before the fields: before the login nothing else is decoded.
        if len(payload) >= _IDS:
            spec = table.method(int.from_bytes(payload[:2]), int.from_bytes(payload[2:_IDS]))
            check_connection_method(self.state, spec, self.profile.states)
        method = table.decode(payload)
        spec = table.spec_of(method)
        handler = self.profile.connection_handlers.get(type(method))
        if handler is None:
            raise hard(540, f"{spec.name} is not supported", spec.class_id, spec.method_id)
        handler(self, method)

    def _channel_frame(self, kind: int, number: int, payload: bytes) -> None:
        if self.state is not ConnectionState.OPEN:
            raise hard(504, f"frame on channel {number} before connection.open", 0, 0)
        if self.layer is not None:
            self.layer.channel_frame(self, kind, number, payload)
            return
        channel = self.channels.get(number)
        if channel is None:
            self.frame_without_channel(kind, number, payload)
        elif channel.content is not None:
            self.content_frame(channel, kind, payload)
        elif kind != METHOD:
            raise hard(505, "expected method frame, got non method frame instead", 0, 0)
        else:
            self.channel_method(channel, self.spec.decode(payload))

    def channel_method(self, channel: ChannelPort, method: methods.Method) -> None:
        """Serve a method on an open channel."""
        spec = self.spec.spec_of(method)
        handler = self.profile.handlers.get(type(method))
        if handler is None:
            if isinstance(method, methods.ChannelOpen):
                raise hard(504, "second 'channel.open' seen", spec.class_id, spec.method_id)
            raise hard(503, "unimplemented method", spec.class_id, spec.method_id)
        self.serve_method(channel, partial(handler, channel, method), spec.class_id, spec.method_id)

    def serve_method(
        self, channel: ChannelPort, handler: Callable[[], object], class_id: int, method_id: int
    ) -> None:
        """Call the handler of a method, again when decisions about permissions are there."""
        try:
            events = self.broker.events
            events.actor = self.user.name
            handler()
            if events.waiting:
                events.publish()
        except Undecided as undecided:
            self.decide(undecided, partial(self._again, channel, handler, (class_id, method_id)))
        except (Refusal, ProtocolError) as error:
            self.fail_channel(channel, error, class_id, method_id)

    def _again(
        self, channel: ClosableChannel, handler: Callable[[], object], place: tuple[int, int]
    ) -> None:
        """Repeat what a decision about a permission was needed for."""
        if self.channels.get(channel.number) is not channel:
            return
        events = self.broker.events
        events.actor = self.user.name
        try:
            handler()
        except Undecided:
            raise
        except Exception as error:
            self.channel_caught(channel, error, *place)
        if events.waiting:
            events.publish()

    def _publish_again(
        self,
        channel: ChannelPort,
        arguments: tuple[int, str, str, Properties, bytes],
    ) -> None:
        # A reference to `channel.publish` would not be one to a method in C: Cython makes a
        # function of it that leaves out an argument that C needs.
        flags, exchange, routing_key, properties, body = arguments
        channel.publish(flags, exchange, routing_key, properties, body)

    def _frame_again(self, kind: int, channel: int, payload: bytes) -> None:
        try:
            self.take_frame(kind, channel, payload)
        except Undecided:
            raise
        except Exception as error:
            self.caught(error)

    def content_frame(self, channel: ChannelPort, kind: int, payload: bytes) -> None:
        """Take a frame of the content that is being received on a channel."""
        content = channel.content
        try:
            whole = content.frame(kind, payload)
            self.published = True
            if content.size > self.message_max:
                raise channel.too_large(content.size)
            if whole:
                content.release()
                channel.content = None
                self.scanner.pending -= 1
                self.has_finished()
                content.done(channel, content)
        except Undecided as undecided:
            done = partial(content.done, channel, content)
            self.decide(undecided, partial(self._again, channel, done, content.place))
        except (Refusal, ProtocolError) as error:
            self.fail_channel(channel, error, *content.place)

    def frame_without_channel(self, kind: int, number: int, payload: bytes) -> None:
        """Open the channel of a frame, or ignore one that was sent before the peer got a close."""
        if number in self.closed_channels:
            # Frames from before the peer got the close are not decoded (AMQP 0-9-1 1.5.2.5).
            end = self.profile.channel_ends.get(payload[:_IDS])
            if kind == METHOD and end is not None:
                self.method_without_channel(number, end())
        elif kind == METHOD:
            self.method_without_channel(number, self.spec.decode(payload))
        else:
            raise hard(504, "expected 'channel.open'", 0, 0)

    def method_without_channel(self, number: int, method: methods.Method) -> None:
        """Serve a method on a channel that is not open: only channel.open is legal."""
        if self.state is not ConnectionState.OPEN:
            return
        if number in self.closed_channels:
            if isinstance(method, methods.ChannelCloseOk):
                self.closed_channels.discard(number)
            elif isinstance(method, methods.ChannelClose):
                self.send(number, methods.ChannelCloseOk())
            return
        if not isinstance(method, methods.ChannelOpen):
            spec = self.spec.spec_of(method)
            if number == 0:
                check_connection_method(self.state, spec, self.profile.states)
            raise hard(504, "expected 'channel.open'", spec.class_id, spec.method_id)
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
            return
        self.end_channel(channel, error, text)

    def may_get_close(self, error: ProtocolError) -> bool:
        """True if a peer gets a connection.close before its connection is open."""
        if error.code == 403:
            return "authentication_failure_close" in self.capabilities
        if self.state is ConnectionState.OPENING and error.code == 504:
            # The peer has logged in and sends another method than connection.open.
            return error.class_id != 0
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
        if self.state is ConnectionState.CLOSING:
            self.finish()
            return
        if counted and self.state is not ConnectionState.OPEN:
            self.remember_failure()
        if self.state is not ConnectionState.OPEN and not self.may_get_close(error):
            self.scanner.stopped = True
            if error.code == 403:
                self.deadline = self.now + limits.REFUSAL_PAUSE_SECONDS
            else:
                self.cut()
            return
        self.release()
        close = methods.ConnectionClose(
            reply_code=error.code,
            reply_text=text,
            class_id=error.class_id,
            method_id=error.method_id,
        )
        self.send(0, close)
        self.state = ConnectionState.CLOSING
        self.paused = False
        self.deadline = self.now + limits.CLOSE_TIMEOUT_SECONDS
        self.scanner.pending = 0
        self.scanner.fast = False
        self.scanner.hold = False
        if error.code == 501:
            # Frame boundaries are lost, so no close-ok can be recognised either.
            self.finish()

    def _write_collected(self) -> None:
        """Write the confirms that are due."""
        if self.confirming:
            waiting, self.confirming = self.confirming, []
            for confirms in waiting:
                confirms.flush()


def _check_heartbeat(channel: int, payload: bytes) -> None:
    if channel != 0:
        raise hard(505, f"heartbeat frame on channel {channel}", 0, 0)
    if payload:
        raise hard(501, "type 8, all octets = <<>>: unknown_frame", 0, 0)
