"""Subscriptions of the asyncio API: iterate over deliveries, and settle them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from harebell.client.aio.driver import AsyncShell, run
from harebell.client.protocol.shared_consumer import SharedConsumer, SharedDelivery


class Delivery(SharedDelivery, AsyncShell):
    """A message from a queue; acknowledge it, unless the consumer has `no_ack`."""

    __slots__ = ()


class Consumer(SharedConsumer[Delivery], AsyncShell, AsyncIterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It subscribes with the first iteration or with `async with`. It ends with `cancel()`, with the
    end of the `async with` block, or when it is garbage collected.
    Messages that were prefetched and not consumed are requeued.
    """

    _delivery_type = Delivery

    async def start(self) -> Self:
        """Subscribe now, not with the first iteration."""
        await run(self._connection, self._started())
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *error: object) -> None:
        await self.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        connection = self._connection
        if (not self.inbox.items or connection.recovering) and not await run(
            connection, self._arrived()
        ):
            raise StopAsyncIteration
        delivery = self.take()
        connection.taken()
        return delivery
