"""A consumer on a 0-9-1 channel: its credit and its deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harebell.base.c_types import C, Done, i32, i64, isize, u64
from harebell.base.message import FAMILY_09, Message, Properties, new_message
from harebell.front.amqp_0_9_1.connection import Connection
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.convert.dispatch import converted
from harebell.front.limits import OUTPUT_HIGH_BYTES
from harebell.kernels.output import DeliveryPassage, OutBuffer, OutputPassage
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_OUTPUT_HIGH: isize = OUTPUT_HIGH_BYTES
_FAMILY: i32 = FAMILY_09
_NO_PROPERTIES: C[Properties] = Properties(b"\0\0")


class ChannelConsumer(Consumer):
    """Writes deliveries to its connection's output.

    Args:
        channel: the channel it was started on.
        queue: what it consumes.
        tag: its consumer tag, at most 255 bytes.
        **options: as for `Consumer`.
    """

    def __init__(self, channel: OpenChannel, queue: Queue, tag: str, **options: Any) -> None:
        super().__init__(queue, tag, **options)
        self._channel: Annotated[OpenChannel, "harebell.front.amqp_0_9_1.channel.Channel"] = channel
        encoded = tag.encode()
        self._tag_field: bytes = bytes((len(encoded),)) + encoded

    def ready(self) -> C[bool]:
        """True if there is credit, and room in the connection's output."""
        channel = self._channel
        if channel.consumers is None:
            # The channel is closed, and this consumer is not removed yet.
            return False
        # No limit applies without acknowledgements (AMQP 0-9-1 1.8.3.1, prefetch-size).
        if not self.no_ack:
            if channel.allowed and channel.outstanding >= channel.allowed:
                if not self.waits:
                    self.waits = True
                    channel.await_prefetch(self)
                return False
            # Its own limit needs no queue of waiting consumers: the ack itself serves it.
            if self.prefetch and self.unacked >= self.prefetch:
                return False
        connection: Connection = channel.connection
        if connection.congested or connection.out.size >= _OUTPUT_HIGH:
            connection.starved = True
            return False
        return True

    def deliver(self, message: Message, position: i64, redelivered: bool) -> Done:
        """Write basic.deliver and remember what has to be acknowledged."""
        channel = self._channel
        connection: Connection = channel.connection
        if message.family != _FAMILY:
            message = converted(message, _FAMILY)
        if connection.stamps:
            message = stamped_as_sent(connection, message)
        tag: u64 = channel.next_tag
        channel.next_tag = tag + 1
        connection.out.deliver(
            channel.number, self._tag_field, tag, redelivered, message, connection.frame_max
        )
        # The check is here as well as in `touch`: the call would cost each delivery of a turn.
        if not connection.dirty:
            connection.touch()
        # Without acknowledgements the queue settles the message itself.
        if not self.no_ack:
            self.unacked += 1
            channel.outstanding += 1
            channel.unacked.deliver(self, position, tag)
        if channel.router.tracer is not None:
            delivered(channel, message, self.queue.name, redelivered)
        return 0

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return how messages of a route get into its output without being kept."""
        return self._passage(exchange, routing_key, family, False)

    def _passage(
        self, exchange: str, routing_key: str, family: i32, plain: bool
    ) -> C[OutputPassage | None]:
        channel = self._channel
        connection: Connection = channel.connection
        if family != _FAMILY or connection.stamps or channel.router.tracer is not None:
            return None
        frames = OutBuffer()
        message: Message = new_message(exchange, routing_key, _NO_PROPERTIES, b"")
        frames.deliver(channel.number, self._tag_field, 0, False, message, connection.frame_max)
        return DeliveryPassage(
            self,
            connection.out,
            frames.take(),
            len(self._tag_field),
            channel.next_tag,
            connection.frame_max,
            _OUTPUT_HIGH,
            plain,
        )

    def passed(self, count: i64) -> Done:
        """Note that messages have got into its output through a passage."""
        self._channel.next_tag += count
        self._channel.connection.touch()
        return 0

    def released(self) -> Done:
        """Stop counting a delivery that was settled or requeued."""
        self.unacked -= 1
        self._channel.outstanding -= 1
        return 0

    def released_some(self, count: i64) -> Done:
        """Stop counting deliveries that were settled."""
        self.unacked -= count
        self._channel.outstanding -= count
        return 0

    def again(self) -> i32:
        """Request another turn for consumers that were not fully served."""
        return self._channel.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """Send basic.cancel to clients that support it."""
        self._channel.consumer_lost(self)
