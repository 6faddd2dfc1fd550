# Made from ../aio/channel.py by tools/blocking_api.py: change that file and run the tool.
"""Channels: publishing, consuming, declaring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from harebell.client.blocking.consumer import Consumer, Delivery
from harebell.client.blocking.waits import ChannelWaits, PendingConfirm, each
from harebell.client.errors import AMQPError, BulkPublishFailed
from harebell.client.limits import CLIENT_PREFETCH, PUBLISH_WINDOW
from harebell.client.message import (
    Body,
    Item,
    Message,
    PropertyArguments,
    encode_arguments,
    outgoing,
    outgoing_item,
)
from harebell.client.protocol import histories, leases, queries, stages
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ChannelPhase, Got, Mode
from harebell.client.protocol.confirms import MANDATORY, Bulk
from harebell.client.protocol.shared_channel import delivered_by_get
from harebell.client.protocol.shown import describe
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.verbs import Verbs

P = ParamSpec("P")
T = TypeVar("T")

_PUBLISHES_PER_TURN = 256


def waited(
    verb: Callable[Concatenate[Any, P], Call[T]],
) -> Callable[Concatenate[Channel, P], T]:
    """Return a verb of the core as a method of a channel."""

    @functools.wraps(verb)
    def run(channel: Channel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        channel.connection.usable()
        return channel.connection.finish(verb(channel.core, *args, **kwargs))

    describe(run, verb)
    return run


class Channel(ChannelWaits):
    """A channel: the verbs of AMQP as methods. Get one from `Connection.channel()`.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

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
    history = waited(histories.history)
    span = waited(Verbs.span)
    read_arrow = waited(Verbs.read_arrow)
    queue_names = waited(Verbs.queue_names)
    dead_letter_queues = waited(Verbs.dead_letter_queues)
    report_query = waited(queries.report_query)
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
            mandatory: fail if it is unroutable; without it the broker drops such a message, and
                confirms it all the same.
            properties: persistent=True (kept over a restart), content_type, headers and so on.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
        """
        self.ready_to_publish()
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
        position = -1
        try:
            for item in each(items):
                position += 1
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
            self._settled(bulk, 0)
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
        """Wait until the window has room; at a full one until half of it is confirmed."""
        self._turn()
        if bulk.outstanding >= window:
            self._settled(bulk, window // 2)
        if not bulk.failures:
            self.ready_to_publish()

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
        options = {"tag": tag, "no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
        return Consumer(self, queue, options, prefetch, timeout)

    def get(self, queue: str, *, no_ack: bool = False) -> Delivery | None:
        """Get one message from a queue; None when it is empty."""
        self.connection.usable()
        core = self.core
        call = core.get(queue, no_ack=no_ack)
        try:
            got = self.connection.finish(call)
        except BaseException:
            # No caller waits for the message any more (cancelled, timed out): requeue it.
            call.when_done(functools.partial(_requeue, core, no_ack))
            raise
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
                connection.finish_end(core.rollback())
            raise
        # Not the channel's present state: a transaction does not survive its connection.
        connection.finish(core.commit())

    def close(self) -> None:
        """Close the channel."""
        if self.core.state is ChannelPhase.OPEN:
            self.connection.finish_end(self.core.close())
        self.connection.forget_channel(self.number)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _requeue(core: CoreChannel, no_ack: bool, call: Call[Got | None]) -> None:
    if call.error is None and not no_ack and core.state is ChannelPhase.OPEN:
        got = call.value()
        if got is not None:
            core.nack(got.method.delivery_tag, requeue=True)
