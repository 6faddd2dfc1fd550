# Made from ../aio/consumer.py by tools/blocking_api.py: change that file and run the tool.
"""Subscriptions: iterate over deliveries, and settle them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.client.blocking.waits import ConsumerWaits
from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.shared_channel import SharedDelivery

if TYPE_CHECKING:
    from harebell.client.blocking.channel import Channel


class Delivery(SharedDelivery):
    """A message from a queue; acknowledge it, unless the consumer has `no_ack`."""

    __slots__ = ()

    _channel: Channel

    def ack(self, *, multiple: bool = False) -> None:
        """Acknowledge; with `multiple` also everything delivered before it."""
        if self._channel.speaks_for(self._core):
            self._core.ack(self.delivery_tag, multiple)
            self._channel.connection.flush()

    def nack(self, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject: requeue, or drop (or dead-letter)."""
        if self._channel.speaks_for(self._core):
            self._core.nack(self.delivery_tag, multiple=multiple, requeue=requeue)
            self._channel.connection.flush()

    def reject(self, *, requeue: bool = False) -> None:
        """Reject: drop (or dead-letter), or requeue."""
        if self._channel.speaks_for(self._core):
            self._core.reject(self.delivery_tag, requeue=requeue)
            self._channel.connection.flush()


class Consumer(ConsumerWaits, Iterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It ends with `cancel()`, with the end of a `with` block, or when it is garbage collected, as
    after a `break` out of `for message in channel.consume(...)`.
    Messages that were prefetched and not consumed are requeued.
    """

    def cancel(self) -> None:
        """End the subscription."""
        inbox = self._inbox
        channel = self._channel
        connection = channel.connection
        if self.tag and not inbox.ended:
            connection.usable()
            core = channel.core
            open_ = not inbox.ended and core.state is ChannelPhase.OPEN
            if open_ and not connection.finish_end(core.cancel(self.tag)):
                core.ignore(self.tag)
                connection.forget_consumer(channel.number, self.tag)
            inbox.finish(None)
        self._requeue_rest()

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> Delivery:
        inbox = self._inbox
        connection = self._channel.connection
        if (not inbox.items or connection.recovering) and not self._arrived():
            raise StopIteration
        tag, redelivered, exchange, routing_key, properties, body = inbox.take()
        return Delivery(
            self._channel,
            self._channel.core,
            body,
            exchange,
            routing_key,
            properties,
            tag,
            redelivered,
            self.tag,
        )
