"""One peer's connection: bytes in, bytes out, and one place where errors become closes.

It serves every version that has the frames of 0-9-1; what differs between them stands in its
profile (`harebell.front.amqp_0_9_1.profile`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.users import Users
from harebell.base import limits
from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.amqp_0_9_1 import failure, handshake
from harebell.front.amqp_0_9_1 import frame_handler as single
from harebell.front.amqp_0_9_1.channel import Channel
from harebell.front.amqp_0_9_1.failure import channel_caught
from harebell.front.common.connection_registry import Hub
from harebell.front.common.errors import hard
from harebell.front.common.event_exchange import channel_closed
from harebell.front.common.framed_connection import ScannedLink
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert.dispatch import converted
from harebell.front.convert.plain import plain_message
from harebell.kernels.frames import FrameScanner
from harebell.kernels.output import OutBuffer
from harebell.model.broker import Broker
from harebell.model.queue.arguments import ignored_arguments
from harebell.wire.v09 import methods
from harebell.wire.v09.frames import HEARTBEAT, METHOD
from harebell.wire.v09.plain_fields import PLAIN_TAGS
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.bulk import Reads
    from harebell.front.amqp_0_9_1.confirm import Confirms
    from harebell.front.amqp_0_9_1.profile import Profile
    from harebell.model.queue.kind import Queue

_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES


class Connection(ScannedLink):
    """The server's side of one connection whose protocol header has come.

    Args:
        broker, users, hub, settings, peer, now: as for `Link`.
        profile: the version that is spoken.

    Attributes:
        spec: its methods, and their codec.
        confirming: channels with confirms to write at the end of the turn.
        known: the types of header values that the client knows, in versions of five types.
        qpid: the client has shown that it is one of Qpid's, which have methods of their own.
        closed_channels: channels we closed whose close-ok has not come.
        bulk: bulk reads that wait for their turn; None until there is one.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        hub: Hub,
        settings: Settings,
        peer: Peer,
        now: float,
        profile: Profile,
    ) -> None:
        super().__init__(broker, users, hub, settings, peer, now, profile.version)
        self.profile = profile
        self.spec = profile.spec
        self.scanner = FrameScanner(self)
        self.scanner.tickets = profile.tickets
        self.scanner.work = hub.work
        self.qpid = False
        self.known = PLAIN_TAGS
        self.confirming: list[Confirms] = []
        self.closed_channels: set[int] = set()
        self.bulk: Reads | None = None
        self.intercepts = settings.stamp_time is not None or settings.stamp_node is not None
        self.stamps = settings.stamp_sent

    # --- the shell's side -----------------------------------------------------------------------

    def begin(self) -> None:
        """Introduce the broker."""
        handshake.start(self)

    def relieve(self) -> None:
        """Serve the consumers and bulk reads that had no room."""
        super().relieve()
        if self.bulk is not None:
            self.bulk.serve()

    def log_loss(self) -> None:
        """Log what the peer left undone, on its channels too."""
        super().log_loss()
        for number in sorted(self.closed_channels):
            text = f"{self.peer}: lost before channel.close-ok on channel {number}"
            self.settings.journal("error", text)

    def beat(self) -> None:
        """Write a heartbeat, before whatever waits for a commit."""
        beat = self.out if self.held is None else OutBuffer()
        beat.frame(HEARTBEAT, 0, b"")
        if self.held is not None:
            self.held.overtake(beat.take())

    def force_close(self, reason: str, now: float) -> None:
        """The broker ends the connection, for example because it stops."""
        if self.state is ConnectionState.OPEN:
            text = f"broker forced connection closure with reason '{reason}'"
            self.now = now
            self.caught(hard(320, text, 0, 0))
        elif not self.closing:
            self.cut()

    # --- the front's side -----------------------------------------------------------------------

    def send(self, channel: int, method: methods.Method) -> None:
        """Write a method."""
        self.out.frame(METHOD, channel, self.spec.encode(method))
        self.touch()

    def send_content(self, channel: int, method: methods.Method, message: Message) -> None:
        """Write a method with a message's content; long output holds further input back."""
        if message.family != FAMILY_09:
            message = converted(message, FAMILY_09)
        if self.profile.plain:
            message = plain_message(message, self.known)
        self.out.content(channel, self.spec.encode(method), message, self.frame_max)
        self.touch()
        if self.out.size > _OUTPUT_STOP:
            self.scanner.hold = True

    def caught(self, error: Exception) -> None:
        """Close a channel or the connection because of an error."""
        failure.caught(self, error)

    def tell_blocked(self, blocked: bool) -> None:
        """Publishers are held back, or not any more: tell the client, if it wants to know."""
        if self.wants("connection.blocked"):
            if blocked:
                self.send(0, methods.ConnectionBlocked(reason=self.hub.reason()))
            else:
                self.send(0, methods.ConnectionUnblocked())

    def has_begun(self) -> bool:
        """Whether a message is not read to its end, or publishes wait for their commit."""
        return any(channel.has_begun() for channel in self.channels.values())

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

    def end_channel(self, channel: Channel, error: ProtocolError, text: str) -> None:
        """Close a channel for an error that closes nothing but it."""
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
        """Let go of everything the peer held: channels first, then its exclusive queues.

        All consumers go before anything comes back, or a channel's messages would be delivered to
        another channel of the same dead peer, and lost when that one does not acknowledge.
        """
        self.broker.events.actor = self.user.name
        left: list[Queue] = []
        for channel in self.channels.values():
            left += channel.stop_consuming()
        for channel in list(self.channels.values()):
            self.drop_channel(channel)
        self.broker.leases.left(self)
        self.broker.stages.left(self)
        self._let_go(left)

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
            return self.frame(METHOD, channel, self.spec.encode(methods.BasicAck(tag, multiple)))
        try:
            opened.ack(tag, multiple)
        except Exception as error:
            channel_caught(self, opened, error, 60, 80)
        return 0

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Any single frame."""
        try:
            self.take_frame(kind, channel, payload)
        except Exception as error:
            self.caught(error)
        return 0

    def take_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Serve a frame; what is raised closes the connection."""
        single.take(self, kind, channel, payload)

    def _not_open(self, number: int, method: methods.Method) -> int:
        try:
            single.not_open(self, number, method)
        except Exception as error:
            self.caught(error)
        return 0

    def _tell(self) -> None:
        """Write the confirms that are due."""
        if self.confirming:
            waiting, self.confirming = self.confirming, []
            for confirms in waiting:
                confirms.flush()
