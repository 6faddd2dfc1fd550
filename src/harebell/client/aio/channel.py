"""Channels: publishing, consuming, declaring."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from harebell.client.aio.consumer import Consumer, Delivery
from harebell.client.aio.waits import ChannelWaits, PendingConfirm, each
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


def awaited(
    verb: Callable[Concatenate[Any, P], Call[T]],
) -> Callable[Concatenate[Channel, P], Coroutine[Any, Any, T]]:
    """Return a verb of the core as a method of a channel."""

    @functools.wraps(verb)
    async def run(channel: Channel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        await channel.connection.usable()
        return await channel.connection.finish(verb(channel.core, *args, **kwargs))

    describe(run, verb)
    return run


class Channel(ChannelWaits):
    """A channel: the verbs of AMQP as coroutines. Get one from `Connection.channel()`.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

    declare_exchange = awaited(Verbs.declare_exchange)
    delete_exchange = awaited(Verbs.delete_exchange)
    bind_exchange = awaited(Verbs.bind_exchange)
    unbind_exchange = awaited(Verbs.unbind_exchange)
    declare_queue = awaited(Verbs.declare_queue)
    bind_queue = awaited(Verbs.bind_queue)
    unbind_queue = awaited(Verbs.unbind_queue)
    purge_queue = awaited(Verbs.purge_queue)
    delete_queue = awaited(Verbs.delete_queue)
    qos = awaited(Verbs.qos)
    recover = awaited(Verbs.recover)
    lease_open = awaited(leases.lease_open)
    lease_claim = awaited(leases.lease_claim)
    lease_commit = awaited(leases.lease_commit)
    lease_release = awaited(leases.lease_release)
    lease_renew = awaited(leases.lease_renew)
    lease_close = awaited(leases.lease_close)
    history = awaited(histories.history)
    span = awaited(Verbs.span)
    read_arrow = awaited(Verbs.read_arrow)
    queue_names = awaited(Verbs.queue_names)
    dead_letter_queues = awaited(Verbs.dead_letter_queues)
    report_query = awaited(queries.report_query)
    stage_open = awaited(stages.stage_open)
    stage_append = awaited(stages.stage_append)
    stage_commit = awaited(stages.stage_commit)
    stage_abort = awaited(stages.stage_abort)
    stage_discard = awaited(stages.stage_discard)
    publisher_declare = awaited(stages.publisher_declare)
    publisher_forget = awaited(stages.publisher_forget)

    # --- publishing -----------------------------------------------------------------------------

    async def publish(
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
        await self.ready_to_publish()
        message = outgoing(body, exchange, routing_key, properties)
        confirm = self.core.publish_one(message, MANDATORY if mandatory else 0)
        await self.connection.finish(confirm)

    def publish_nowait(
        self,
        body: Body | Message,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> PendingConfirm:
        """Publish a message; await the answer now, later, or together with others.

        It does not wait for the socket either: await one of the answers now and then.
        """
        self.connection.check_thread()  # asyncio
        message = outgoing(body, exchange, routing_key, properties)
        confirm = self.core.publish_one(message, MANDATORY if mandatory else 0)
        self.connection.touch()
        return PendingConfirm(self.connection, confirm)

    async def publish_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
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
            async for item in each(items):
                position += 1
                if position % _PUBLISHES_PER_TURN == 0 or bulk.outstanding >= window:
                    await self._bulk_room(bulk, window)
                    if progress is not None:
                        progress(bulk.confirmed)
                    if bulk.failures:
                        break
                message = outgoing_item(item, exchange, routing_key, encoded, properties)
                if self.core.publish(message, flags, bulk, position):
                    bulk.outstanding += 1
                else:
                    bulk.confirmed += 1
            await self._settled(bulk, 0)
            await self.connection.flush()
        except AMQPError as error:
            # Unconfirmed messages have failed for the same reason; report how many were not sent.
            if not bulk.failures:
                raise
            raise BulkPublishFailed(bulk.confirmed, bulk.failures) from error
        if progress is not None:
            progress(bulk.confirmed)
        return bulk.result()

    async def _bulk_room(self, bulk: Bulk, window: int) -> None:
        """Wait until the window has room; at a full one until half of it is confirmed."""
        await self._turn()
        if bulk.outstanding >= window:
            await self._settled(bulk, window // 2)
        if not bulk.failures:
            await self.ready_to_publish()

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
        """Subscribe to a queue: `async for message in channel.consume("jobs"): ...`.

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

    async def get(self, queue: str, *, no_ack: bool = False) -> Delivery | None:
        """Get one message from a queue; None when it is empty."""
        await self.connection.usable()
        core = self.core
        call = core.get(queue, no_ack=no_ack)
        try:
            got = await self.connection.finish(call)
        except BaseException:
            # No caller waits for the message any more (cancelled, timed out): requeue it.
            call.when_done(functools.partial(_requeue, core, no_ack))
            raise
        if got is None:
            return None
        return Delivery(self, core, *delivered_by_get(got))

    async def ack(self, tag: int, *, multiple: bool = False) -> None:
        """Acknowledge by delivery tag."""
        self.core.ack(tag, multiple)
        await self.connection.flush()

    async def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject by delivery tag (basic.nack)."""
        self.core.nack(tag, multiple=multiple, requeue=requeue)
        await self.connection.flush()

    async def reject(self, tag: int, *, requeue: bool = False) -> None:
        """Reject one delivery by delivery tag (basic.reject)."""
        self.core.reject(tag, requeue=requeue)
        await self.connection.flush()

    # --- the rest -------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Channel]:
        """Publish and acknowledge atomically: commit at the end, roll back on an exception.

        The channel becomes transactional with the first use (AMQP 0-9-1, class tx) and stays so.
        """
        connection = self.connection
        await connection.usable()
        if self.core.mode is not Mode.TRANSACTION:
            await connection.finish(self.core.select_transactions())
        core = self.core
        try:
            yield self
        except BaseException:
            if core.state is ChannelPhase.OPEN:
                await connection.finish_end(core.rollback())
            raise
        # Not the channel's present state: a transaction does not survive its connection.
        await connection.finish(core.commit())

    async def close(self) -> None:
        """Close the channel."""
        if self.core.state is ChannelPhase.OPEN:
            await self.connection.finish_end(self.core.close())
        self.connection.forget_channel(self.number)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _requeue(core: CoreChannel, no_ack: bool, call: Call[Got | None]) -> None:
    if call.error is None and not no_ack and core.state is ChannelPhase.OPEN:
        got = call.value()
        if got is not None:
            core.nack(got.method.delivery_tag, requeue=True)
