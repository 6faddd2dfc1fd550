"""A consumer on a channel of 0-8 or 0-9: flow can stop it, and it gets only plain headers."""

from __future__ import annotations

from harebell.base.c_types import C, Done, i32, i64, u64
from harebell.base.message import FAMILY_09, Message
from harebell.front.amqp_0_9_1.consumer import ChannelConsumer
from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel
from harebell.front.amqp_0_9_1.prefetch_size_window import TOO_LONG, UNKNOWN
from harebell.front.convert.dispatch import converted
from harebell.front.convert.plain import plain_message
from harebell.kernels.output import OutputPassage

_FAMILY: i32 = FAMILY_09
_TOO_LONG: i32 = TOO_LONG
_UNKNOWN: i32 = UNKNOWN


def window_admits(consumer: ChannelConsumer, channel: LegacyChannel) -> C[bool]:
    """True if flow is on, and the next message of the queue fits into the prefetch window."""
    if channel.stopped:
        return False
    if channel.windowed and not consumer.no_ack:
        fits: i32 = channel.window.admits(consumer.queue)
        if fits == _UNKNOWN:
            # The message is not in its queue yet, but in a later turn.
            consumer.again()
        if fits == _TOO_LONG and not consumer.waits:
            consumer.waits = True
            channel.await_prefetch(consumer)
        if fits in (_UNKNOWN, _TOO_LONG):
            return False
    return True


class LegacyConsumer(ChannelConsumer):
    """Writes deliveries to the output of a connection of 0-8 or 0-9."""

    def ready(self) -> C[bool]:
        """True if flow is on, and there is credit and room in the output."""
        channel: LegacyChannel = self._channel  # type: ignore[assignment]
        return window_admits(self, channel) and ChannelConsumer.ready(self)

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return how messages get into its output; headers may have to be made readable."""
        return self._passage(exchange, routing_key, family, True)

    def deliver(self, message: Message, position: i64, redelivered: bool) -> Done:
        """Write basic.deliver with headers that the client can read."""
        channel: LegacyChannel = self._channel  # type: ignore[assignment]
        if message.family != _FAMILY:
            message = converted(message, _FAMILY)
        if message.has_headers or message.offset >= 0 or message.deliveries > 0:
            message = plain_message(message, channel.connection.known)
        tag: u64 = channel.next_tag
        ChannelConsumer.deliver(self, message, position, redelivered)
        if channel.windowed and not self.no_ack:
            # The base class has put an entry without a size.
            channel.unacked.take(tag)
            entry = channel.window.entry(self.queue, self, position, tag, message)
            channel.unacked.put(tag, entry)
        return 0
