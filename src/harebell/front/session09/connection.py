"""One peer's connection: bytes in, bytes out, and one place where errors become closes.

The shell calls `receive` with what it read, `tick` now and then, `take_output` once per turn, and looks at
`closing` and `paused`. It never blocks, and it knows no socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.auth.users import User, Users
from harebell.base import limits
from harebell.base.errors import ProtocolError, Refusal
from harebell.base.message import Message, Properties
from harebell.front.hub import Hub
from harebell.front.session09 import handshake
from harebell.front.session09.channel import Channel
from harebell.front.session09.dispatch import HANDLERS
from harebell.front.session09.replies import hard, reply_for
from harebell.front.settings import Settings
from harebell.kernels.frames import FrameScanner, FrameSink
from harebell.kernels.output import OutBuffer
from harebell.model.broker import Broker
from harebell.model.queue.arguments import ignored_arguments
from harebell.wire import sniff
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.frames import HEARTBEAT, METHOD
from harebell.wire.v09.reply_codes import reply_text
from harebell.wire.v09.states import ConnectionState, check_connection_method

if TYPE_CHECKING:
    from harebell.front.session09.confirm import Confirms
    from harebell.model.queue.kind import Queue
    from harebell.model.vhost import VHost

_HEADER_OCTETS = 8
_NOBODY = User("", "")
_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a connection comes from.

    Args:
        address: the peer's IP address, "" for a Unix socket.
        port: the peer's port.
        tls: whether it came over TLS.
    """

    address: str
    port: int = 0
    tls: bool = False

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Connection(FrameSink):
    """The server's side of one connection.

    Args:
        broker: the broker it serves.
        users: who may log in.
        hub: what it shares with the other connections.
        settings: limits and texts.
        peer: where it comes from.
        now: the time it was accepted, in seconds.

    Attributes:
        state: see `harebell.wire.v09.states`.
        closing: the shell shall write what is left, then end the connection.
        paused: the shell shall not read from it.
        congested: the shell says that the peer does not take our output.
        starved: a consumer was not served for lack of room in the output.
        dirty: the hub knows that there is something to do.
        shell: whatever the shell keeps here to find its socket again.
    """

    def __init__(
        self, broker: Broker, users: Users, hub: Hub, settings: Settings, peer: Peer, now: float
    ) -> None:
        self.broker = broker
        self.users = users
        self.hub = hub
        self.settings = settings
        self.peer = peer
        self.out = OutBuffer()
        self.scanner = FrameScanner(self)
        self.state = ConnectionState.HEADER
        self.vhost: VHost | None = None
        self.user = _NOBODY
        self.client_properties: Mapping[str, Any] = {}
        self.capabilities: set[str] = set()
        self.channels: dict[int, Channel] = {}
        self.confirming: list[Confirms] = []
        self._closed_channels: set[int] = set()
        self.channel_max = settings.channel_max
        self.frame_max = settings.frame_max
        self.message_max = settings.message_max
        self.heartbeat = 0
        self.closing = False
        self.paused = False
        self.congested = False
        self.starved = False
        self.dirty = False
        self.published = False
        self.blocked = False
        self.connected_at = now
        self._received_at = now
        self._sent_at = now
        self._deadline = now + settings.handshake_timeout
        self._first = b""
        self.shell: Any = None
        hub.connections.add(self)

    # --- the shell's side -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Take what was read."""
        self._received_at = now
        if self.closing:
            return
        try:
            if self.state is ConnectionState.HEADER:
                self._take_header(bytes(data))
            else:
                self.scanner.feed(data)
        except Exception as error:
            # The frames themselves are broken: nothing after this can be understood.
            self._caught(error)
            self.scanner.stopped = True
        self._end_of_turn()

    def resume(self, now: float) -> None:
        """Go on with input that was held back while the output was too long."""
        if self.scanner.hold and not self.congested and not self.closing:
            self.scanner.hold = False
            self.receive(b"", now)

    def take_output(self, now: float) -> bytes:
        """What the shell shall write now."""
        data = self.out.take()
        if data:
            self._sent_at = now
        return data

    def relieved(self) -> None:
        """Output was written: serve the consumers that had no room for it."""
        if self.starved and not self.congested:
            self.starved = False
            for channel in list(self.channels.values()):
                channel.serve()

    def eof(self) -> None:
        """The peer is gone."""
        if self.state is not ConnectionState.CLOSED:
            if self.state is ConnectionState.OPEN:
                self.settings.journal("warning", f"{self.peer}: closed without connection.close")
            self.release()
            self.state = ConnectionState.CLOSED
        self.closing = True
        self.hub.connections.discard(self)

    def tick(self, now: float) -> None:
        """Time has passed: heartbeats and deadlines."""
        if self._deadline and now >= self._deadline:
            self._deadline = 0.0
            if self.state is not ConnectionState.OPEN:
                if not self.closing:
                    why = f"timed out in {self.state.value}"
                    self.settings.journal("warning", f"{self.peer}: {why}")
                    self._cut()
                return
        if not self.heartbeat or self.closing or self.state is ConnectionState.HEADER:
            return
        if now - self._sent_at >= self.heartbeat / 2:
            self._sent_at = now
            self.out.frame(HEARTBEAT, 0, b"")
            self.touch()
        # A connection we do not read cannot show that it lives.
        silent = now - self._received_at
        if silent >= self.heartbeat * 2 and not self.paused and not self.scanner.hold:
            text = f"missed heartbeats from client, timeout: {self.heartbeat}s"
            self.settings.journal("warning", f"{self.peer}: {text}")
            self._cut()

    def force_close(self, reason: str, now: float) -> None:
        """The broker ends the connection, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            text = f"broker forced connection closure with reason '{reason}'"
            self._fail(hard(320, text, 0, 0), now)
        elif not self.closing:
            self._cut()

    # --- the front's side -----------------------------------------------------------------------

    def touch(self) -> int:
        """Tell the hub that there is something to do."""
        if not self.dirty:
            self.dirty = True
            self.hub.dirty.append(self)
        return 0

    def send(self, channel: int, method: methods.Method) -> None:
        """Write a method."""
        self.out.frame(METHOD, channel, AMQP_0_9_1.encode(method))
        self.touch()

    def send_content(self, channel: int, method: methods.Method, message: Message) -> None:
        """Write a method with a message's content; long output holds further input back."""
        self.out.content(channel, AMQP_0_9_1.encode(method), message, self.frame_max)
        self.touch()
        if self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True

    def wants(self, capability: str) -> bool:
        """Whether the client announced a capability."""
        return capability in self.capabilities

    def unblock(self) -> None:
        """Memory is free again."""
        self.blocked = False
        self.paused = False
        if self.state is ConnectionState.OPEN and self.wants("connection.blocked"):
            self.send(0, methods.ConnectionUnblocked())
        self.touch()

    def warn_of_ignored(self, queue: Queue) -> None:
        """Log the arguments of a queue that have no effect here."""
        ignored = ignored_arguments(queue.arguments)
        if ignored:
            names = ", ".join(ignored)
            self.settings.journal(
                "warning", f"queue '{queue.name}': no effect in this version: {names}"
            )

    def drop_channel(self, channel: Channel) -> None:
        """A channel is over; its number may be used again."""
        if self.channels.pop(channel.number, None) is not None:
            channel.close()

    def release(self) -> None:
        """Let go of everything the peer held: channels first, then its exclusive queues."""
        for channel in list(self.channels.values()):
            self.drop_channel(channel)
        if self.vhost is not None:
            self.vhost.drop_owned(self)
        if self.blocked:
            self.blocked = False
            if self in self.hub.blocked:
                self.hub.blocked.remove(self)

    def finish(self) -> None:
        """The close handshake is done."""
        self.state = ConnectionState.CLOSED
        self.scanner.stopped = True
        self.closing = True
        self.touch()

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
        """A whole publish, straight from the scanner."""
        opened = self.channels.get(channel)
        if opened is None:
            return self._not_open_fast(channel, methods.BasicPublish())
        try:
            opened.publish(flags, exchange, routing_key, properties, body)
        except Exception as error:
            self._channel_caught(opened, error, 60, 40)
        return 0

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """A basic.ack, straight from the scanner."""
        opened = self.channels.get(channel)
        if opened is None:
            return self._not_open_fast(channel, methods.BasicAck())
        if opened.content is not None:
            return self.frame(METHOD, channel, AMQP_0_9_1.encode(methods.BasicAck(tag, multiple)))
        try:
            opened.ack(tag, multiple)
        except Exception as error:
            self._channel_caught(opened, error, 60, 80)
        return 0

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Any single frame."""
        try:
            if kind == HEARTBEAT:
                self._check_heartbeat(channel, payload)
            elif self.state is ConnectionState.CLOSING:
                self._while_closing(kind, channel, payload)
            elif channel == 0:
                self._connection_frame(kind, payload)
            else:
                self._channel_frame(kind, channel, payload)
        except Exception as error:
            self._caught(error)
        return 0

    def _not_open_fast(self, number: int, method: methods.Method) -> int:
        try:
            return self._not_open(number, method)
        except Exception as error:
            self._caught(error)
        return 0

    def _check_heartbeat(self, channel: int, payload: bytes) -> None:
        if channel != 0:
            raise hard(505, f"heartbeat frame on channel {channel}", 0, 0)
        if payload:
            raise hard(501, "type 8, all octets = <<>>: unknown_frame", 0, 0)

    def _while_closing(self, kind: int, channel: int, payload: bytes) -> None:
        """After our connection.close only its handshake counts (AMQP 0-9-1 1.4.2.9)."""
        if kind != METHOD or channel != 0:
            return
        try:
            method = AMQP_0_9_1.decode(payload)
        except ProtocolError:
            return
        if isinstance(method, methods.ConnectionCloseOk):
            self.finish()
        elif isinstance(method, methods.ConnectionClose):
            self.send(0, methods.ConnectionCloseOk())

    def _connection_frame(self, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            if kind in (2, 3):
                raise hard(505, "content frame on channel 0", 0, 0)
            raise hard(501, f"type {kind}, all octets = <<>>: unknown_frame", 0, 0)
        method = AMQP_0_9_1.decode(payload)
        check_connection_method(self.state, AMQP_0_9_1.spec_of(method))
        handler = handshake.HANDLERS.get(type(method))
        if handler is None:
            spec = AMQP_0_9_1.spec_of(method)
            raise hard(540, f"{spec.name} is not supported", spec.class_id, spec.method_id)
        handler(self, method)

    def _channel_frame(self, kind: int, number: int, payload: bytes) -> None:
        if kind not in (1, 2, 3):
            raise hard(501, f"type {kind}, all octets = <<>>: unknown_frame", 0, 0)
        if self.state is not ConnectionState.OPEN:
            raise hard(504, f"frame on channel {number} before connection.open", 0, 0)
        channel = self.channels.get(number)
        if channel is None:
            self._unopened(kind, number, payload)
        elif channel.content is not None:
            self._content_frame(channel, kind, payload)
        elif kind != METHOD:
            raise hard(505, "expected method frame, got non method frame instead", 0, 0)
        else:
            self._channel_method(channel, AMQP_0_9_1.decode(payload))

    def _channel_method(self, channel: Channel, method: methods.Method) -> None:
        spec = AMQP_0_9_1.spec_of(method)
        handler = HANDLERS.get(type(method))
        if handler is None:
            if isinstance(method, methods.ChannelOpen):
                raise hard(504, "second 'channel.open' seen", spec.class_id, spec.method_id)
            raise hard(503, "unimplemented method", spec.class_id, spec.method_id)
        try:
            handler(channel, method)
        except (Refusal, ProtocolError) as error:
            self._fail_channel(channel, error, spec.class_id, spec.method_id)

    def _content_frame(self, channel: Channel, kind: int, payload: bytes) -> None:
        content = channel.content
        try:
            whole = content.frame(kind, payload)
            if content.size > self.message_max:
                raise channel.too_large(content.size)
            if whole:
                channel.content = None
                self.scanner.pending -= 1
                method = content.method
                flags = method.mandatory | method.immediate << 1
                channel.publish(
                    flags, method.exchange, method.routing_key, content.properties, content.body()
                )
        except (Refusal, ProtocolError) as error:
            self._fail_channel(channel, error, 60, 40)

    def _unopened(self, kind: int, number: int, payload: bytes) -> None:
        """A frame on a channel that is not open: open it, or ignore what was under way."""
        if kind != METHOD:
            if number in self._closed_channels:
                return
            raise hard(504, "expected 'channel.open'", 0, 0)
        self._not_open(number, AMQP_0_9_1.decode(payload))

    def _not_open(self, number: int, method: methods.Method) -> int:
        if self.state is not ConnectionState.OPEN:
            return 0
        if number in self._closed_channels:
            if isinstance(method, methods.ChannelCloseOk):
                self._closed_channels.discard(number)
            elif isinstance(method, methods.ChannelClose):
                self.send(number, methods.ChannelCloseOk())
            return 0
        if not isinstance(method, methods.ChannelOpen):
            spec = AMQP_0_9_1.spec_of(method)
            raise hard(504, "expected 'channel.open'", spec.class_id, spec.method_id)
        if self.channel_max and len(self.channels) >= self.channel_max:
            raise hard(
                530,
                f"number of channels opened ({len(self.channels)}) has reached the "
                f"negotiated channel_max ({self.channel_max})",
                20,
                10,
            )
        self.channels[number] = Channel(self, number)
        self.send(number, methods.ChannelOpenOk())
        return 0

    # --- beginning and end ----------------------------------------------------------------------

    def _take_header(self, data: bytes) -> None:
        """Collect the protocol header; answer and close on a wrong one (AMQP 0-9-1 4.2.2)."""
        self._first += data
        sniffed = sniff(self._first)
        if sniffed.incomplete:
            return
        if sniffed.answer:
            self.settings.journal("warning", f"{self.peer}: no AMQP 0-9-1 protocol header")
            self.out.raw(sniffed.answer)
            self._cut()
            return
        rest, self._first = self._first[_HEADER_OCTETS:], b""
        handshake.start(self)
        if rest:
            self.scanner.feed(rest)

    def _end_of_turn(self) -> None:
        """Write the confirms that are due, and hold a publisher back when memory is short."""
        if self.confirming:
            waiting, self.confirming = self.confirming, []
            for confirms in waiting:
                confirms.flush()
        if self.published:
            self.published = False
            self.hub.gauge.crossed()
            if self.hub.gauge.over and not self.blocked and not self.closing:
                self._block()

    def _block(self) -> None:
        self.blocked = True
        self.paused = True
        self.hub.blocked.append(self)
        if self.wants("connection.blocked"):
            self.send(0, methods.ConnectionBlocked(reason="low on memory"))
        self.touch()

    def _caught(self, error: Exception) -> None:
        """The one place where an error becomes connection.close.

        An error that is not the peer's is our own: the peer learns that much, the log gets the rest.
        """
        if not isinstance(error, ProtocolError):
            self.settings.journal("error", f"{self.peer}: {describe(error)}")
            error = hard(541, "internal error", 0, 0)
        self._fail(error, self._received_at)

    def _channel_caught(
        self, channel: Channel, error: Exception, class_id: int, method_id: int
    ) -> None:
        """What a channel raised from the hot path: it closes the channel or the connection."""
        try:
            if isinstance(error, Refusal | ProtocolError):
                self._fail_channel(channel, error, class_id, method_id)
            else:
                self._caught(error)
        except ProtocolError as hard_error:
            self._caught(hard_error)

    def _fail_channel(
        self, channel: Channel, error: Refusal | ProtocolError, class_id: int, method_id: int
    ) -> None:
        """Close a channel with the reason; a hard error goes on to the connection."""
        if isinstance(error, Refusal):
            error = reply_for(error, class_id, method_id)
        if error.hard:
            raise error
        text = reply_text(error.code, error.text)
        self.settings.journal("error", f"{self.peer}: channel {channel.number} closed: {text}")
        if self.channels.get(channel.number) is channel:
            self.drop_channel(channel)
            self._closed_channels.add(channel.number)
            close = methods.ChannelClose(
                reply_code=error.code,
                reply_text=text,
                class_id=error.class_id,
                method_id=error.method_id,
            )
            self.send(channel.number, close)

    def _fail(self, error: ProtocolError, now: float) -> None:
        """Close the connection with the reason, where the peer may be told."""
        text = reply_text(error.code, error.text)
        self.settings.journal("error", f"{self.peer}: connection closed: {text}")
        opened = self.state is ConnectionState.OPEN
        if self.state is ConnectionState.CLOSING:
            self.finish()
            return
        if not opened and not handshake.may_be_told(self, error):
            self.scanner.stopped = True
            if error.code == 403:
                self._deadline = now + limits.REFUSAL_PAUSE_SECONDS
            else:
                self._cut()
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
        self._deadline = now + limits.CLOSE_TIMEOUT_SECONDS
        self.scanner.pending = 0
        self.scanner.fast = False
        if error.code == 501:
            # The frames cannot be told apart any more, so no close-ok can be found either.
            self.finish()

    def _cut(self) -> None:
        """End the connection without a word more."""
        self.release()
        self.finish()


def describe(error: BaseException) -> str:
    """An unexpected error and where it happened, for the log."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} at {' < '.join(reversed(places))}"
