"""Subscriptions of the blocking API: iterate over deliveries, and settle them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from harebell.client.blocking.driver import BlockingShell, run
from harebell.client.protocol.shared_consumer import Channel, SharedConsumer, SharedDelivery


class Delivery(SharedDelivery, BlockingShell):
    """A message from a queue; acknowledge it, unless the consumer has `no_ack`."""

    __slots__ = ()


class Consumer(SharedConsumer[Delivery], BlockingShell, Iterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It ends with `cancel()`, with the end of a `with` block, or when it is garbage collected, as
    after a `break` out of `for message in channel.consume(...)`.
    Messages that were prefetched and not consumed are requeued.
    """

    _delivery_type = Delivery

    def __init__(
        self,
        channel: Channel,
        queue: str,
        options: Mapping[str, Any],
        prefetch: int | None,
        idle_seconds: float | None,
    ) -> None:
        super().__init__(channel, queue, options, prefetch, idle_seconds)
        run(self._connection, self._started())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        if not self.inbox.items and not run(self._connection, self._arrived()):
            raise StopIteration
        return self.take()
