"""The subscriptions of both APIs, written once: iterate over deliveries, and settle them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic

from harebell.client.errors import AlreadySettled, AMQPError
from harebell.client.message import Delivered
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import OPEN, CoreConsumer
from harebell.client.protocol.inbox import Inbox, Item
from harebell.client.protocol.shared_channel import DeliveryT, SharedChannel, subscribe
from harebell.client.protocol.shown import CONSUMER_PARTS, DELIVERY_PARTS, without
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.waits import (
    BLOCK,
    FLUSH,
    USABLE,
    WRITE,
    Ending,
    Scope,
    Steps,
    Until,
    Written,
    steps,
    written,
)

Channel = SharedChannel[Any, Any, Any, Any, Any]


class SharedDelivery(Delivered):
    """A delivery of either API: a message, and the channel state that it is settled on.

    Attributes:
        settled: whether a method of this object has settled it; True if it has `no_ack`.
    """

    __slots__ = ("_channel", "_core", "settled")

    def __init__(
        self,
        channel: Channel,
        core: CoreChannel,
        consumer_tag: str,
        delivery: Item,
        no_ack: bool,
        message_count: int | None = None,
    ) -> None:
        # Without `super().__init__`, which takes a third of the time of taking a delivery.
        tag, redelivered, exchange, routing_key, properties, body = delivery
        self.delivery_tag = tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key
        self.encoded = properties
        self.body = body
        self.consumer_tag = consumer_tag
        self.message_count = message_count
        self._properties = None
        self._channel = channel
        self._core = core
        self.settled = no_ack

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(DELIVERY_PARTS, super().__dir__())

    @property
    def _connection(self) -> Any:
        """The connection whose waits its methods yield."""
        return self._channel.connection

    @written
    def ack(self, *, multiple: bool = False) -> Written:
        """Acknowledge; with `multiple` also everything delivered before it."""
        core = self._core
        self.settled = True
        if core.state is not OPEN and not self._channel.speaks_for(core):
            return None
        core.ack(self.delivery_tag, multiple)
        return self._channel.connection.written()

    @written
    def nack(self, *, multiple: bool = False, requeue: bool = True) -> Written:
        """Reject: requeue, or drop (or dead-letter)."""
        self.settled = True
        if not self._channel.speaks_for(self._core):
            return None
        self._core.nack(self.delivery_tag, multiple=multiple, requeue=requeue)
        return self._channel.connection.written()

    @written
    def reject(self, *, requeue: bool = False) -> Written:
        """Reject: drop (or dead-letter), or requeue."""
        self.settled = True
        if not self._channel.speaks_for(self._core):
            return None
        self._core.reject(self.delivery_tag, requeue=requeue)
        return self._channel.connection.written()

    @Scope
    def process(
        self,
        *,
        requeue: bool = False,
        reject_on_redelivered: bool = False,
        ignore_processed: bool = False,
    ) -> Steps[None]:
        """Acknowledge at the end of a `with` block, and reject if the block raises.

        The error is raised again. A block that is interrupted, by a cancelled task or a
        KeyboardInterrupt, requeues the message.

        Args:
            requeue: whether an error requeues the message; without it the message is dead-lettered,
                or dropped if its queue has no dead-letter exchange.
            reject_on_redelivered: do not requeue a message that was delivered before.
            ignore_processed: the block may settle the message itself.

        Raises:
            AlreadySettled: it was settled before or in the block, without `ignore_processed`.
        """
        if self.settled and not ignore_processed:
            raise AlreadySettled(self.delivery_tag)
        try:
            yield BLOCK
        except BaseException as error:
            failed = isinstance(error, Exception)
            again = requeue and not (reject_on_redelivered and self.redelivered)
            self.give_up(requeue=again or not failed)
            raise
        if not self.settled:
            SharedDelivery.ack.function(self)
            yield FLUSH
        elif not ignore_processed:
            raise AlreadySettled(self.delivery_tag)

    def give_up(self, *, requeue: bool) -> None:
        """Reject without waiting, unless it is settled or the channel is closed."""
        if not self.settled:
            # Of a closed channel the broker delivers it again.
            with contextlib.suppress(AMQPError):
                SharedDelivery.reject.function(self, requeue=requeue)


class SharedConsumer(Generic[DeliveryT]):
    """A consumer of either API.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        options: of basic.consume: tag ("" generates one), no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
        idle_seconds: maximum time without a message; None waits without limit.
    """

    _delivery_type: Callable[..., DeliveryT]

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
        self._connection = channel.connection
        self._queue = queue
        self._options = options
        self._prefetch = prefetch
        self._idle_seconds = idle_seconds
        self.inbox = Inbox(channel.connection, options["no_ack"])
        self._starting = False

    def __repr__(self) -> str:
        """Return the tag, the queue and the state, for people."""
        inbox = self.inbox
        state = f"{len(inbox.items)} messages wait" if self.tag else "not subscribed"
        if inbox.ended:
            state = "ended" if inbox.error is None else f"ended: {inbox.error}"
        return f"<{type(self).__name__} {self.tag!r} of queue {self._queue!r}, {state}>"

    def __dir__(self) -> list[str]:
        """Return what programs use."""
        return without(CONSUMER_PARTS, super().__dir__())

    def _started(self) -> Steps[None]:
        """Subscribe, the first time."""
        if not self._starting:
            # A call that is refused or cancelled here has sent nothing: the next one subscribes.
            yield USABLE
        if not self._starting:
            self._starting = True
            channel = self._channel
            self.tag = self._options["tag"] or channel.core.next_tag()
            options = {**self._options, "tag": self.tag}
            call = subscribe(channel, self._queue, self.inbox, options, self._prefetch)
            # A connection that is lost before the answer recovers without this subscription.
            call.when_done(functools.partial(_end_unsubscribed, self.inbox))
            yield call

    def _arrived(self) -> Steps[bool]:
        """Wait for a delivery that can be settled; False at the end or after the idle time."""
        yield from self._started()
        inbox = self.inbox
        while not inbox.items or self._connection.recovering:
            if inbox.ended:
                inbox.check()
                return False
            in_time = yield Until(inbox.expect(), self._idle_seconds)
            if not in_time and not inbox.items and not inbox.ended:
                return False
        return True

    def take(self) -> DeliveryT:
        """Take the next delivery."""
        channel = self._channel
        inbox = self.inbox
        return self._delivery_type(channel, channel.core, self.tag, inbox.take(), inbox.no_ack)

    @steps
    def cancel(self) -> Steps[None]:
        """End the subscription."""
        inbox = self.inbox
        channel = self._channel
        if self.tag and not inbox.ended:
            yield USABLE
            core = channel.core
            if not inbox.ended and core.state is OPEN:
                answered = yield Ending(core.cancel(self.tag))
                if not answered:
                    core.ignore(self.tag)
                    self._connection.forget_consumer(channel.number, self.tag)
            inbox.finish(None)
        channel.requeue_inbox(inbox)
        # Without waiting for room in the socket of a blocked broker.
        yield WRITE

    def __del__(self) -> None:
        if self._starting and not self.inbox.ended:
            # No I/O here, and no reference to the consumer: the garbage collector may be the
            # caller, in any thread.
            abandon = functools.partial(_abandon, self._channel, self.inbox, self.tag)
            self._connection.later(abandon)


def _end_unsubscribed(inbox: Inbox, call: Call[CoreConsumer]) -> None:
    if call.error is not None:
        inbox.finish(call.error)


def _abandon(channel: Channel, inbox: Inbox, tag: str) -> None:
    """Cancel a subscription that the program dropped without cancelling it."""
    inbox.finish(None)
    channel.requeue_inbox(inbox)
    channel.connection.forget_consumer(channel.number, tag)
    channel.core.abandon(tag)
    channel.connection.touch()
