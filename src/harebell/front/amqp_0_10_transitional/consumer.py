"""A consumer of class basic on a channel of transitional 0-10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.front.amqp_0_9_1.consumer import ChannelConsumer
from harebell.front.amqp_0_9_1.legacy_consumer import window_admits
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.common.unacked import new_unacked

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.model.queue.contract import Queue


class TransitionalConsumer(ChannelConsumer):
    """Delivers commands while the session is attached and flow is on."""

    def __init__(
        self, channel: TransitionalChannel, queue: Queue, tag: str, **options: Any
    ) -> None:
        super().__init__(channel, queue, tag, **options)
        self.channel = channel
        encoded = tag.encode()
        self._field = bytes((len(encoded),)) + encoded

    def ready(self) -> bool:
        """True if there is credit and room in the output, and flow is on."""
        channel = self.channel
        return channel.may_deliver() and window_admits(self, channel) and super().ready()

    def passage(self, exchange: str, routing_key: str, family: int) -> None:
        """Return None: the session numbers each delivery."""

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Write basic.deliver and remember what has to be acknowledged."""
        channel = self.channel
        tag = channel.next_tag
        channel.next_tag = tag + 1
        if channel.connection.stamps:
            message = stamped_as_sent(channel.connection, message)
        channel.write_delivery(self._field, tag, redelivered, message)
        if not self.no_ack:
            self.unacked += 1
            channel.outstanding += 1
            entry = new_unacked(self.queue, self, position, tag)
            if channel.windowed:
                entry = channel.window.entry(self.queue, self, position, tag, message)
            channel.unacked.put(tag, entry)
        if channel.router.tracer is not None:
            delivered(channel, message, self.queue.name, redelivered)
        return 0
