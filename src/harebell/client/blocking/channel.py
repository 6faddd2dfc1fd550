"""Channels of the blocking API, which also hand deliveries to a sink and read Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.client.blocking.bulk import arrow_batches
from harebell.client.blocking.consumer import Consumer, Delivery
from harebell.client.blocking.driver import BlockingClosing, BlockingShell
from harebell.client.blocking.worker import Worker
from harebell.client.limits import CLIENT_PREFETCH
from harebell.client.message import Item
from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shared_channel import SharedChannel, SharedPendingConfirm, subscribe
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.v09.frames import FrameSink

if TYPE_CHECKING:
    from harebell.client.blocking.connection import Connection


class PendingConfirm(SharedPendingConfirm, BlockingShell):
    """An unconfirmed publish."""

    __slots__ = ()

    def wait(self) -> None:
        """Wait for the broker's confirm.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
            ConnectionLost, ChannelClosed: the outcome is unknown.
        """
        self._connection.finish(self._confirm)


class Channel(
    SharedChannel[Delivery, PendingConfirm, Consumer, Worker, Iterable[Item]],
    BlockingClosing,
    BlockingShell,
):
    """A channel: the verbs of AMQP as methods. Get one from `Connection.channel()`.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

    connection: Connection
    _delivery_type = Delivery
    _pending_confirm_type = PendingConfirm
    consumer_type = Consumer
    _worker_type = Worker

    def __init__(self, connection: Connection, core: CoreChannel) -> None:
        # The inboxes of the subscriptions whose deliveries the sink gets.
        self.sinks: set[Inbox] = set()
        super().__init__(connection, core)

    arrow_batches = arrow_batches

    def consume_into(
        self,
        sink: FrameSink,
        queue: str,
        *,
        prefetch: int | None = CLIENT_PREFETCH,
        no_ack: bool = False,
        exclusive: bool = False,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Subscribe, and pass every delivery to `sink.deliver` without an object for it.

        Whenever the connection reads, from this call on and mainly in `Connection.pump`, the sink
        is called with the arguments of `FrameSink.deliver`. It must not call the connection. An
        exception in it ends the connection and is raised by the call that read. A channel has
        one sink, shared by all its consumers of this kind. Acknowledge with `Channel.ack(tag,
        multiple=True)`.
        """
        if self.core.sink is not None and self.core.sink is not sink:
            raise ValueError(f"channel {self.number} has another sink already")
        self.core.set_sink(sink)
        inbox = Inbox(self.connection, no_ack)
        self.sinks.add(inbox)
        try:
            self.connection.usable()
            tag = tag or self.core.next_tag()
            options = {"tag": tag, "no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
            self.connection.finish(subscribe(self, queue, inbox, options, prefetch, bulk=True))
        except BaseException:
            self.drop_sink(inbox)
            raise
        return Subscription(self, tag, inbox)

    def drop_sink(self, inbox: Inbox) -> None:
        """End a subscription of the sink; the last one removes the sink from the channel."""
        self.inboxes.discard(inbox)
        self.sinks.discard(inbox)
        if not self.sinks:
            self.core.set_sink(None)


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
        self._inbox.check()

    def cancel(self) -> None:
        """End the subscription; the sink may get deliveries until this returns."""
        channel = self._channel
        if not self._inbox.ended and channel.core.state is ChannelPhase.OPEN:
            channel.connection.finish(channel.core.cancel(self.tag))
            self._inbox.finish(None)
        channel.drop_sink(self._inbox)
