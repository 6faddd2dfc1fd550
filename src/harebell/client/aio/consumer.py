"""Subscriptions under asyncio: iterate over deliveries, and settle them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shared_channel import SharedDelivery, SharedPendingConfirm

if TYPE_CHECKING:
    from harebell.client.aio.channel import Channel
    from harebell.client.aio.connection import Connection


class Delivery(SharedDelivery):
    """A message from a queue; acknowledge it, unless the consumer has `no_ack`."""

    __slots__ = ()

    _channel: Channel

    async def ack(self, *, multiple: bool = False) -> None:
        """Acknowledge; with `multiple` also everything delivered before it."""
        if self._channel.speaks_for(self._core):
            self._core.ack(self.delivery_tag, multiple)
            await self._channel.written()

    async def nack(self, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject: requeue, or drop (or dead-letter)."""
        if self._channel.speaks_for(self._core):
            self._core.nack(self.delivery_tag, multiple=multiple, requeue=requeue)
            await self._channel.written()

    async def reject(self, *, requeue: bool = False) -> None:
        """Reject: drop (or dead-letter), or requeue."""
        if self._channel.speaks_for(self._core):
            self._core.reject(self.delivery_tag, requeue=requeue)
            await self._channel.written()


class PendingConfirm(SharedPendingConfirm):
    """An unconfirmed publish; awaiting it waits for the broker's confirm.

    Raises (when awaited):
        PublishNacked: the broker refused it.
        PublishReturned: it was mandatory and unroutable.
        ConnectionLost, ChannelClosed: the outcome is unknown.
    """

    __slots__ = ()

    _connection: Connection

    def __await__(self) -> Generator[Any, None, None]:
        if self._confirm.done:
            return self._confirm.value()
        return (yield from self._connection.finish(self._confirm).__await__())


class Consumer(AsyncIterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It subscribes with the first iteration or with `async with`, and ends with `cancel()`, with the
    end of the `async with` block, or when it is garbage collected. Messages that were prefetched
    and not consumed are requeued.
    """

    def __init__(
        self,
        channel: Channel,
        queue: str,
        options: Mapping[str, Any],
        prefetch: int | None,
        idle_seconds: float | None,
    ) -> None:
        self.tag = ""
        self._channel = channel
        self._queue = queue
        self._options = options
        self._prefetch = prefetch
        self._idle_seconds = idle_seconds
        self._waiter: list[asyncio.Future[None]] = []
        self._inbox = Inbox(channel.connection, options["no_ack"], _waker(self._waiter))
        self._starting = False

    async def start(self) -> Consumer:
        """Subscribe now, not with the first iteration."""
        if self._starting:
            return self
        self._starting = True
        connection = self._channel.connection
        await connection.usable()
        core = self._channel.core
        if self._prefetch is not None:
            # The answers arrive in order: after basic.consume-ok this one is done, too.
            core.qos(self._prefetch)
        self.tag = self._options["tag"] or core.next_tag()
        options = {**self._options, "tag": self.tag}
        call = core.consume(self._queue, self._inbox.deliver, self._inbox.end, **options)
        self._channel.inboxes.add(self._inbox)
        await connection.finish(call)
        return self

    async def cancel(self) -> None:
        """End the subscription."""
        inbox = self._inbox
        channel = self._channel
        if self.tag and not inbox.ended:
            await channel.connection.usable()
            if not inbox.ended and channel.core.state is ChannelPhase.OPEN:
                await channel.connection.finish(channel.core.cancel(self.tag))
            inbox.finish(None)
        channel.put_back(inbox)
        channel.connection.touch()

    async def __aenter__(self) -> Consumer:
        return await self.start()

    async def __aexit__(self, *error: object) -> None:
        await self.cancel()

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Delivery:
        if not self._starting:
            await self.start()
        inbox = self._inbox
        connection = self._channel.connection
        while not inbox.items or connection.recovering:
            if inbox.ended:
                if inbox.error is not None:
                    raise inbox.error.with_traceback(None)
                raise StopAsyncIteration
            if not await self._something():
                raise StopAsyncIteration
        tag, redelivered, exchange, routing_key, properties, body = inbox.take()
        connection.taken()
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

    async def _something(self) -> bool:
        """Wait for a delivery or the end; False on timeout."""
        inbox = self._inbox
        waiter = asyncio.get_running_loop().create_future()
        self._waiter.append(waiter)
        try:
            async with asyncio.timeout(self._idle_seconds):
                await self._channel.connection.waiting(waiter)
        except TimeoutError:
            # The process may have been suspended: deliveries that arrived meanwhile are in time.
            await asyncio.sleep(0)
            return bool(inbox.items) or inbox.ended
        finally:
            if waiter in self._waiter:
                self._waiter.remove(waiter)
        return True

    def __del__(self) -> None:
        if self._starting and not self._inbox.ended:
            self._channel.connection.later(self._abandon_in(self._channel, self._inbox, self.tag))

    @staticmethod
    def _abandon_in(channel: Channel, inbox: Inbox, tag: str) -> Callable[[], None]:
        def abandon() -> None:
            inbox.finish(None)
            channel.put_back(inbox)
            channel.connection.forget_consumer(channel.number, tag)
            if channel.core.state is ChannelPhase.OPEN:
                channel.core.abandon(tag)
                channel.connection.touch()

        return abandon


def _waker(waiters: list[asyncio.Future[None]]) -> Callable[[], None]:
    """Return a callback that wakes the iteration, without a reference to the consumer."""

    def wake() -> None:
        if waiters:
            waiter = waiters.pop()
            if not waiter.done():
                waiter.set_result(None)

    return wake
