"""Subscriptions of the blocking API: iterate over deliveries, and settle them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shared_channel import SharedDelivery, SharedPendingConfirm

if TYPE_CHECKING:
    from harebell.client.blocking.channel import Channel
    from harebell.client.blocking.connection import Connection


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


class PendingConfirm(SharedPendingConfirm):
    """An unconfirmed publish."""

    __slots__ = ()

    _connection: Connection

    def wait(self) -> None:
        """Wait for the broker's confirm.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
            ConnectionLost, ChannelClosed: the outcome is unknown.
        """
        self._connection.finish(self._confirm)


class Consumer(Iterator[Delivery]):
    """A subscription: iterate over it for its messages.

    It ends with `cancel()`, with the end of a `with` block, or when it is garbage collected, as
    after a `break` out of `for message in channel.consume(...)`. Messages that were prefetched
    and not consumed are requeued.
    """

    def __init__(self, channel: Channel, tag: str, inbox: Inbox, timeout: float | None) -> None:
        self.tag = tag
        self._channel = channel
        self._inbox = inbox
        self._timeout = timeout

    def cancel(self) -> None:
        """End the subscription."""
        inbox = self._inbox
        channel = self._channel
        if not inbox.ended:
            channel.connection.usable()
            if not inbox.ended and channel.core.state is ChannelPhase.OPEN:
                channel.connection.finish(channel.core.cancel(self.tag))
            inbox.finish(None)
        channel.put_back(inbox)
        channel.connection.flush()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> Delivery:
        inbox = self._inbox
        channel = self._channel
        until = None if self._timeout is None else time.monotonic() + self._timeout
        late = False
        while not inbox.items:
            if inbox.ended:
                if inbox.error is not None:
                    raise inbox.error.with_traceback(None)
                raise StopIteration
            remaining = None if until is None else max(0.0, until - time.monotonic())
            if late:
                raise StopIteration
            # The process may have been suspended; deliveries that arrived meanwhile are in time:
            # read once more after the timeout.
            late = remaining == 0
            channel.connection.pump(remaining)
        tag, redelivered, exchange, routing_key, properties, body = inbox.take()
        return Delivery(
            channel,
            channel.core,
            body,
            exchange,
            routing_key,
            properties,
            tag,
            redelivered,
            self.tag,
        )

    def __del__(self) -> None:
        if not self._inbox.ended:
            # No I/O here, the garbage collector may be the caller: the next call cancels.
            self._channel.connection.abandoned.append((self._channel, self._inbox, self.tag))


class Subscription:
    """A subscription whose deliveries are passed to a sink (`Channel.consume_into`)."""

    def __init__(self, channel: Channel, tag: str, inbox: Inbox) -> None:
        self.tag = tag
        self._channel = channel
        self._inbox = inbox

    @property
    def ended(self) -> bool:
        """Whether no more deliveries will come."""
        return self._inbox.ended

    def check(self) -> None:
        """Raise the error that ended the subscription, if one did."""
        if self._inbox.error is not None:
            raise self._inbox.error.with_traceback(None)

    def cancel(self) -> None:
        """End the subscription; the sink may get deliveries until this returns."""
        channel = self._channel
        if not self._inbox.ended and channel.core.state is ChannelPhase.OPEN:
            channel.connection.finish(channel.core.cancel(self.tag))
            self._inbox.finish(None)
        channel.drop_sink(self._inbox)
