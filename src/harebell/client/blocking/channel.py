"""Channels of the blocking API: publishing, consuming, declaring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

from harebell.base.limits import CLIENT_PREFETCH, PUBLISH_WINDOW
from harebell.client.blocking.bulk import arrow_batches
from harebell.client.blocking.consumer import (
    Consumer,
    Delivery,
    PendingConfirm,
    Subscription,
)
from harebell.client.errors import AMQPError, BulkPublishFailed
from harebell.client.message import (
    Body,
    Item,
    Message,
    PropertyArguments,
    encode_arguments,
    outgoing,
    outgoing_item,
)
from harebell.client.protocol import leases, queries, stages
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ChannelPhase, Mode
from harebell.client.protocol.confirms import MANDATORY, Bulk
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shared_channel import SharedChannel, delivered_by_get
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09.frames import FrameSink

if TYPE_CHECKING:
    from harebell.client.blocking.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")

_PUBLISHES_PER_TURN = 256


def waited(
    verb: Callable[Concatenate[Any, P], Call[T]],
) -> Callable[Concatenate[Channel, P], T]:
    """Return a verb of the core as a blocking method."""

    @functools.wraps(verb)
    def run(channel: Channel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        channel.connection.usable()
        return channel.connection.finish(verb(channel.core, *args, **kwargs))

    return run


class Channel(SharedChannel):
    """A channel: the verbs of AMQP as methods. Get one from `Connection.channel()`.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

    def __init__(self, connection: Connection, core: CoreChannel) -> None:
        self.connection = connection
        self.sinks: set[Inbox] = set()
        super().__init__(connection, core)

    declare_exchange = waited(Verbs.declare_exchange)
    delete_exchange = waited(Verbs.delete_exchange)
    bind_exchange = waited(Verbs.bind_exchange)
    unbind_exchange = waited(Verbs.unbind_exchange)
    declare_queue = waited(Verbs.declare_queue)
    bind_queue = waited(Verbs.bind_queue)
    unbind_queue = waited(Verbs.unbind_queue)
    purge_queue = waited(Verbs.purge_queue)
    delete_queue = waited(Verbs.delete_queue)
    qos = waited(Verbs.qos)
    recover = waited(Verbs.recover)
    lease_open = waited(leases.lease_open)
    lease_claim = waited(leases.lease_claim)
    lease_commit = waited(leases.lease_commit)
    lease_release = waited(leases.lease_release)
    lease_renew = waited(leases.lease_renew)
    lease_close = waited(leases.lease_close)
    span = waited(Verbs.span)
    read_arrow = waited(Verbs.read_arrow)
    queue_names = waited(Verbs.queue_names)
    dead_letter_queues = waited(Verbs.dead_letter_queues)
    report_query = waited(queries.report_query)
    arrow_batches = arrow_batches
    stage_open = waited(stages.stage_open)
    stage_append = waited(stages.stage_append)
    stage_commit = waited(stages.stage_commit)
    stage_abort = waited(stages.stage_abort)
    stage_discard = waited(stages.stage_discard)
    publisher_declare = waited(stages.publisher_declare)
    publisher_forget = waited(stages.publisher_forget)

    # --- publishing -----------------------------------------------------------------------------

    def publish(
        self,
        body: Body | Message,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> None:
        """Publish a message and wait until the broker has confirmed it.

        On a channel without confirms, or in a transaction, it returns when the message is written.

        Args:
            body: the body, or a `Message`.
            exchange: the exchange; "" is the default exchange, whose routing keys are queue names.
            routing_key: what the exchange compares with its bindings.
            mandatory: fail if it is unroutable.
            properties: content_type, headers, delivery_mode (2 is persistent) and so on.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
        """
        self._ready_to_publish()
        message = outgoing(body, exchange, routing_key, properties)
        confirm = self.core.publish_one(message, MANDATORY if mandatory else 0)
        self.connection.finish(confirm)

    def publish_nowait(
        self,
        body: Body | Message,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> PendingConfirm:
        """Publish a message; call `wait()` for the answer later.

        Output is buffered, and written when there is enough of it or with the next call that waits;
        `Connection.flush()` writes it now.
        """
        message = outgoing(body, exchange, routing_key, properties)
        confirm = self.core.publish_one(message, MANDATORY if mandatory else 0)
        self.connection.flush_some()
        return PendingConfirm(self.connection, confirm)

    def publish_many(
        self,
        items: Iterable[Item],
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        window: int = PUBLISH_WINDOW,
        progress: Callable[[int], None] | None = None,
        **properties: Unpack[PropertyArguments],
    ) -> int:
        """Publish many messages, with many unconfirmed at a time.

        Args:
            items: bodies, (routing key, body) pairs, or messages.
            exchange: the exchange, unless a message has its own.
            routing_key: the routing key, unless an item has its own.
            mandatory: fail if one is unroutable.
            window: maximum number of unconfirmed messages.
            progress: called now and then with the number of confirmed messages.
            properties: of all items that are not messages themselves.

        Returns:
            The number of confirmed messages: all of them.

        Raises:
            BulkPublishFailed: which were not taken; those after the first failure were not all
                sent.
        """
        flags = MANDATORY if mandatory else 0
        encoded = encode_arguments(properties)
        bulk = Bulk()
        try:
            for position, item in enumerate(items):
                if position % _PUBLISHES_PER_TURN == 0 or bulk.outstanding >= window:
                    self._bulk_room(bulk, window)
                    if progress is not None:
                        progress(bulk.confirmed)
                    if bulk.failures:
                        break
                message = outgoing_item(item, exchange, routing_key, encoded, properties)
                if self.core.publish(message, flags, bulk, position):
                    bulk.outstanding += 1
                else:
                    bulk.confirmed += 1
            while bulk.outstanding > 0:
                self.connection.pump(None)
            self.connection.flush()
        except AMQPError as error:
            # Unconfirmed messages have failed for the same reason; report how many were not sent.
            if not bulk.failures:
                raise
            raise BulkPublishFailed(bulk.confirmed, bulk.failures) from error
        if progress is not None:
            progress(bulk.confirmed)
        return bulk.result()

    def _bulk_room(self, bulk: Bulk, window: int) -> None:
        self.connection.pump(0)
        if bulk.outstanding >= window:
            while bulk.outstanding > window // 2:
                self.connection.pump(None)
        if not bulk.failures:
            self._ready_to_publish()

    def _ready_to_publish(self) -> None:
        self.connection.usable()
        while not self.core.flow_active and self.is_open:
            self.connection.pump(None)

    # --- consuming ------------------------------------------------------------------------------

    def consume(
        self,
        queue: str,
        *,
        prefetch: int | None = CLIENT_PREFETCH,
        no_ack: bool = False,
        exclusive: bool = False,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Consumer:
        """Subscribe to a queue: `for message in channel.consume("jobs"): ...`.

        Args:
            queue: the name of the queue, which has to exist.
            prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
            no_ack: messages count as acknowledged when the broker has sent them.
            exclusive: fail if the queue has another consumer.
            tag: the consumer tag; "" generates one.
            arguments: for example {"x-priority": 10}.
            timeout: end the iteration after this many seconds without a message.
        """
        inbox = Inbox(self.connection, no_ack, _no_wake)
        options = {"no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
        tag = self._subscribe(queue, tag, inbox, prefetch, options, bulk=False)
        return Consumer(self, tag, inbox, timeout)

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
        inbox = Inbox(self.connection, no_ack, _no_wake)
        options = {"no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
        self.sinks.add(inbox)
        try:
            tag = self._subscribe(queue, tag, inbox, prefetch, options, bulk=True)
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

    def _subscribe(
        self,
        queue: str,
        tag: str,
        inbox: Inbox,
        prefetch: int | None,
        options: dict[str, Any],
        *,
        bulk: bool,
    ) -> str:
        connection = self.connection
        connection.usable()
        core = self.core
        if prefetch is not None:
            # The answers arrive in order: after basic.consume-ok this one is done, too.
            core.qos(prefetch)
        tag = tag or core.next_tag()
        take = None if bulk else inbox.deliver
        call = core.consume(queue, take, inbox.end, tag=tag, **options)
        self.inboxes.add(inbox)
        connection.finish(call)
        return tag

    def get(self, queue: str, *, no_ack: bool = False) -> Delivery | None:
        """Get one message from a queue; None when it is empty."""
        self.connection.usable()
        core = self.core
        got = self.connection.finish(core.get(queue, no_ack=no_ack))
        if got is None:
            return None
        return Delivery(self, core, *delivered_by_get(got))

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        """Acknowledge by delivery tag."""
        self.core.ack(tag, multiple)
        self.connection.flush()

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject by delivery tag (basic.nack)."""
        self.core.nack(tag, multiple=multiple, requeue=requeue)
        self.connection.flush()

    def reject(self, tag: int, *, requeue: bool = False) -> None:
        """Reject one delivery by delivery tag (basic.reject)."""
        self.core.reject(tag, requeue=requeue)
        self.connection.flush()

    # --- the rest -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Channel]:
        """Publish and acknowledge atomically: commit at the end, roll back on an exception.

        The channel becomes transactional with the first use (AMQP 0-9-1, class tx) and stays so.
        """
        connection = self.connection
        connection.usable()
        if self.core.mode is not Mode.TRANSACTION:
            connection.finish(self.core.select_transactions())
        core = self.core
        try:
            yield self
        except BaseException:
            if core.state is ChannelPhase.OPEN:
                connection.finish(core.rollback())
            raise
        # Not the channel's present state: a transaction does not survive its connection.
        connection.finish(core.commit())

    def close(self) -> None:
        """Close the channel."""
        if self.core.state is ChannelPhase.OPEN:
            self.connection.finish(self.core.close())
        self.connection.forget_channel(self.number)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _no_wake() -> None:
    """Wake nothing: the caller that waits for a delivery is the reader itself."""
