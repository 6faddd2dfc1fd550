"""One peer's connection: bytes in, bytes out, and one place where errors become closes.

The shell calls `receive` with what it read, `tick` now and then, `take_output` once per turn, and
looks at `closing` and `paused`. It never blocks, and it knows no socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.auth.users import User, Users
from harebell.base import limits
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.convert.dispatch import converted
from harebell.front.hub import Hub
from harebell.front.session09 import handshake, single
from harebell.front.session09.channel import Channel
from harebell.front.session09.failure import caught, channel_caught, remember
from harebell.front.session09.held import Held
from harebell.front.session09.replies import hard
from harebell.front.session09.told import channel_closed, connection_closed
from harebell.front.settings import Settings
from harebell.kernels.frames import FrameScanner, FrameSink
from harebell.kernels.output import OutBuffer
from harebell.model.broker import Broker
from harebell.model.queue.arguments import ignored_arguments
from harebell.wire import sniff
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.frames import HEARTBEAT, METHOD
from harebell.wire.v09.states import ConnectionState

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
        host: our own address, that it came to.
        host_port: our own port.
    """

    address: str
    port: int = 0
    tls: bool = False
    host: str = ""
    host_port: int = 0

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def connection_name(self) -> str:
        """The name of its connection, as RabbitMQ's tools show it."""
        return f"{self} -> {self.host}:{self.host_port}"


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
        commit: of the broker's store.
        held: the output that waits for commits; None when there is none.
        closing: nothing more is read. See `finished`.
        paused: the shell shall not read from it.
        congested: the shell says that the peer does not take our output.
        starved: a consumer was not served for lack of room in the output.
        dirty: the hub knows that there is something to do.
        now: when something was last received.
        deadline: when to cut the connection unless it goes on; 0 for never.
        mechanism: what it logged in with.
        announced: its opening was told, and its end not yet.
        origin: the number of the connection, which no other one of the process has.
        closed_channels: channels we closed whose close-ok has not come.
        shell: whatever the shell keeps here to find its socket again.
    """

    def __init__(
        self, broker: Broker, users: Users, hub: Hub, settings: Settings, peer: Peer, now: float
    ) -> None:
        self.broker = broker
        self.commit = broker.commit
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
        self.mechanism = ""
        self.announced = False
        self.channels: dict[int, Channel] = {}
        self.confirming: list[Confirms] = []
        self.closed_channels: set[int] = set()
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
        self.now = now
        self._sent_at = now
        self.deadline = now + settings.handshake_timeout
        self._first = b""
        self.shell: Any = None
        self.held: Held | None = None
        hub.connections.add(self)
        hub.accepted += 1
        self.origin = hub.accepted
        self.intercepts = settings.stamp_time is not None or settings.stamp_node is not None
        if hub.offenders.blocked(peer.address, now):
            self.cut()

    # --- the shell's side -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: float) -> None:
        """Take what was read."""
        self.now = now
        if self.closing:
            return
        try:
            if self.state is ConnectionState.HEADER:
                self._take_header(bytes(data))
            else:
                self.scanner.feed(data)
        except Exception as error:
            # The frames themselves are broken: nothing after this can be understood.
            caught(self, error)
            self.scanner.stopped = True
        self._end_of_turn()

    def resume(self, now: float) -> None:
        """Go on with input that was held back while the output was too long."""
        if (
            self.scanner.hold
            and not self.congested
            and not self.closing
            and self.out.size <= _OUTPUT_STOP
        ):
            self.scanner.hold = False
            self.receive(b"", now)

    def take_output(self, now: float) -> bytes:
        """What the shell shall write now."""
        if self.held is None:
            data = self.out.take()
        else:
            data = self.held.take(self.commit.done, self.out)
            if not self.held.ticket:
                self.held = None
        if data:
            self._sent_at = now
        return data

    @property
    def finished(self) -> bool:
        """Whether the shell shall end the connection when it has written what it took."""
        return self.closing and self.held is None

    def relieved(self) -> None:
        """Output was written: serve the consumers that had no room for it."""
        if self.starved and not self.congested:
            self.starved = False
            # Another channel goes first each time, or a flooded one would take all the room.
            waiting = list(self.channels.items())
            for _, channel in waiting:
                channel.serve()
            if waiting:
                first, _ = waiting[0]
                self.channels[first] = self.channels.pop(first)

    def eof(self) -> None:
        """The peer is gone."""
        if self.state is not ConnectionState.CLOSED:
            self._log_loss()
            self.release()
            self.state = ConnectionState.CLOSED
        self.closing = True
        self._drop_held()
        self.hub.connections.discard(self)

    def _log_loss(self) -> None:
        """Log what the peer left undone (AMQP 0-9-1 1.4.2.10 and 1.5.2.6 ask for errors)."""
        journal = self.settings.journal
        if self.state is ConnectionState.CLOSING:
            journal("error", f"{self.peer}: lost before connection.close-ok")
        elif self.state is ConnectionState.OPEN:
            journal("warning", f"{self.peer}: closed without connection.close")
        for number in sorted(self.closed_channels):
            journal("error", f"{self.peer}: lost before channel.close-ok on channel {number}")

    def tick(self, now: float) -> None:
        """Time has passed: heartbeats and deadlines."""
        if self.deadline and now >= self.deadline:
            self.deadline = 0.0
            if self.state is not ConnectionState.OPEN:
                if not self.closing:
                    why = f"timed out in {self.state.value}"
                    self.settings.journal("warning", f"{self.peer}: {why}")
                    self.cut()
                return
        if not self.heartbeat or self.closing or self.state is ConnectionState.HEADER:
            return
        if 2 * (now - self._sent_at) >= self.heartbeat:
            self._sent_at = now
            beat = self.out if self.held is None else OutBuffer()
            beat.frame(HEARTBEAT, 0, b"")
            if self.held is not None:
                self.held.overtake(beat.take())
            self.touch()
        if self.paused or self.scanner.hold:
            # A connection we do not read cannot show that it lives; its time starts when we do.
            self.now = now
        if now - self.now >= self.heartbeat * 2:
            text = f"missed heartbeats from client, timeout: {self.heartbeat}s"
            self.settings.journal("warning", f"{self.peer}: {text}")
            self.cut()

    def force_close(self, reason: str, now: float) -> None:
        """The broker ends the connection, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            text = f"broker forced connection closure with reason '{reason}'"
            self.now = now
            caught(self, hard(320, text, 0, 0))
        elif not self.closing:
            self.cut()

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
        if message.family != FAMILY_09:
            message = converted(message, FAMILY_09)
        self.out.content(channel, AMQP_0_9_1.encode(method), message, self.frame_max)
        self.touch()
        if self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True

    def hold_until(self, ticket: int) -> None:
        """What is written from now on leaves when that commit is on disk."""
        if ticket <= self.commit.done:
            return
        if ticket == self.commit.ticket:
            self.commit.urgent = True
        if self.held is None:
            self.held = Held()
        self.held.cut(ticket, self.out)
        self.hub.waiting[self] = None

    def committed(self) -> None:
        """A commit is on disk: some of the held output may leave."""
        held = self.held
        if held is not None:
            self.touch()
            if held.ticket > self.commit.done:
                self.hub.waiting[self] = None

    def _drop_held(self) -> None:
        """Nobody will read what was held."""
        if self.held is not None:
            self.held = None
            self.out.take()
            self.hub.waiting.pop(self, None)

    def wants(self, capability: str) -> bool:
        """Whether the client announced a capability."""
        return capability in self.capabilities

    def unblock(self) -> None:
        """Nothing is short any more."""
        if self.hub.finishing is self:
            self.hub.finishing = None
        self.blocked = False
        self.paused = False
        if self.state is ConnectionState.OPEN and self.wants("connection.blocked"):
            self.send(0, methods.ConnectionUnblocked())
        self.touch()

    def is_amid_content(self) -> bool:
        """Whether a message has begun and is not read to its end."""
        return any(channel.content is not None for channel in self.channels.values())

    def has_finished(self) -> None:
        """The message that was let in although memory is short is whole, or will never be."""
        if self.hub.finishing is self:
            self.hub.finishing = None
            self.paused = self.blocked

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
            channel_closed(channel)

    def release(self) -> None:
        """Let go of everything the peer held: channels first, then its exclusive queues.

        All consumers go before anything comes back, or a channel's messages would be delivered to
        another channel of the same dead peer, and lost when that one does not acknowledge.
        """
        events = self.broker.events
        events.actor = self.user.name
        left: list[Queue] = []
        for channel in self.channels.values():
            left += channel.stop_consuming()
        for channel in list(self.channels.values()):
            self.drop_channel(channel)
        if self.vhost is not None:
            self.vhost.drop_owned(self)
        if self.announced:
            self.announced = False
            connection_closed(self)
        for queue in left:
            if not queue.deleted:
                queue.drain()
        if self.blocked:
            self.blocked = False
            if self in self.hub.blocked:
                self.hub.blocked.remove(self)
        if self.hub.finishing is self:
            self.hub.finishing = None
        if events.waiting:
            events.tell()

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
            return self._not_open(channel, methods.BasicPublish())
        try:
            opened.publish(flags, exchange, routing_key, properties, body)
        except Exception as error:
            channel_caught(self, opened, error, 60, 40)
        return 0

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """A basic.ack, straight from the scanner."""
        opened = self.channels.get(channel)
        if opened is None:
            return self._not_open(channel, methods.BasicAck())
        if opened.content is not None:
            return self.frame(METHOD, channel, AMQP_0_9_1.encode(methods.BasicAck(tag, multiple)))
        try:
            opened.ack(tag, multiple)
        except Exception as error:
            channel_caught(self, opened, error, 60, 80)
        return 0

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Any single frame."""
        try:
            single.take(self, kind, channel, payload)
        except Exception as error:
            caught(self, error)
        return 0

    def _not_open(self, number: int, method: methods.Method) -> int:
        try:
            single.not_open(self, number, method)
        except Exception as error:
            caught(self, error)
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
            remember(self)
            self.out.raw(sniffed.answer)
            self.cut()
            return
        rest, self._first = self._first[_HEADER_OCTETS:], b""
        handshake.start(self)
        if rest:
            self.scanner.feed(rest)

    def _end_of_turn(self) -> None:
        """Write the confirms that are due, and hold a publisher back when something is short."""
        if self.confirming:
            waiting, self.confirming = self.confirming, []
            for confirms in waiting:
                confirms.flush()
        if self.published:
            self.published = False
            self.hub.gauge.crossed()
            short = self.hub.gauge.over or self.hub.short
            if not self.is_amid_content():
                self.has_finished()
            if short and not self.blocked and not self.closing:
                self._block()
        if self.held is not None and self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True
        if self.broker.events.waiting:
            self.broker.events.tell()

    def _block(self) -> None:
        self.blocked = True
        self.paused = True
        self.hub.blocked.append(self)
        if self.wants("connection.blocked"):
            self.send(0, methods.ConnectionBlocked(reason=self.hub.reason()))
        self.touch()

    def cut(self) -> None:
        """End the connection without a word more."""
        self.release()
        self._drop_held()
        self.finish()
