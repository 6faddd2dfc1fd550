"""Subscriptions: iterate over deliveries, and settle them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from harebell.client.aio.waits import ConsumerWaits
from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.shared_channel import SharedDelivery

if TYPE_CHECKING:
    from harebell.client.aio.channel import Channel


class Delivery(SharedDelivery):
    """A message from a queue; acknowledge it, unless the consumer has `no_ack`."""

    __slots__ = ()

    _channel: Channel

    async def ack(self, *, multiple: bool = False) -> None:
        """Acknowledge; with `multiple` also everything delivered before it."""
        if self._channel.speaks_for(self._core):
            self._core.ack(self.delivery_tag, multiple)
            await self._channel.connection.flush()

    async def nack(self, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject: requeue, or drop (or dead-letter)."""
        if self._channel.speaks_for(self._core):
            self._core.nack(self.delivery_tag, multiple=multiple, requeue=requeue)
            await self._channel.connection.flush()

    async def reject(self, *, requeue: bool = False) -> None:
        """Reject: drop (or dead-letter), or requeue."""
        if self._channel.speaks_for(self._core):
            self._core.reject(self.delivery_tag, requeue=requeue)
            await self._channel.connection.flush()


class Consumer(ConsumerWaits, AsyncIterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It subscribes with the first iteration or with `async with`. It ends with `cancel()`, with the
    end of the `async with` block, or when it is garbage collected.
    Messages that were prefetched and not consumed are requeued.
    """

    async def cancel(self) -> None:
        """End the subscription."""
        inbox = self._inbox
        channel = self._channel
        connection = channel.connection
        if self.tag and not inbox.ended:
            await connection.usable()
            core = channel.core
            open_ = not inbox.ended and core.state is ChannelPhase.OPEN
            if open_ and not await connection.finish_end(core.cancel(self.tag)):
                core.ignore(self.tag)
                connection.forget_consumer(channel.number, self.tag)
            inbox.finish(None)
        await self._requeue_rest()

    async def __aexit__(self, *error: object) -> None:
        await self.cancel()

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Delivery:
        inbox = self._inbox
        connection = self._channel.connection
        if (not inbox.items or connection.recovering) and not await self._arrived():
            raise StopAsyncIteration
        tag, redelivered, exchange, routing_key, properties, body = inbox.take()
        connection.taken()  # asyncio
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
