"""How the asyncio API waits: all that differs from the blocking API.

A channel, a consumer, a requester or a connection is one class in both APIs, written in
`aio/channel.py`, `aio/consumer.py`, `aio/requests.py` and `aio/connection.py`.
`tools/blocking_api.py` makes the files of the blocking API from them by removing `await`. Each of
their classes inherits its waits: here a task awaits a future while others use the connection, in
`blocking/waits.py` the call itself reads the socket until the answer arrives.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
)
from typing import TYPE_CHECKING, Any, Self

from harebell.client.errors import AMQPError
from harebell.client.message import Item
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ChannelPhase, CoreConsumer
from harebell.client.protocol.confirms import Bulk
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.requests import Reply, Request, Requests
from harebell.client.protocol.shared_channel import SharedChannel, SharedPendingConfirm, subscribe
from harebell.client.protocol.v09.channel import CoreChannel

if TYPE_CHECKING:
    from harebell.client.aio.connection_waits import ConnectionWaits


async def each(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    """Iterate over either kind of iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class ChannelWaits(SharedChannel):
    """The waits of a channel.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

    def __init__(self, connection: ConnectionWaits, core: CoreChannel) -> None:
        self.connection = connection
        self._flowing = asyncio.Event()
        super().__init__(connection, core)

    def adopt(self, core: CoreChannel) -> None:
        """Continue with the state of a recovered connection."""
        super().adopt(core)
        core.on_flow = self._on_flow
        self._on_flow(core.flow_active)

    def ended(self, error: AMQPError) -> None:
        """Fail every pending call and end every consumer: the connection has ended."""
        super().ended(error)
        self._flowing.set()

    async def ready_to_publish(self) -> None:
        """Wait while the connection recovers, publishers are blocked, or the socket is full."""
        connection = self.connection
        connection.check_thread()
        if connection.recovering:
            await connection.usable()
        if not self._flowing.is_set() and self.is_open:
            await connection.waiting(self._flowing.wait())
        if connection.congested:
            await connection.drain()

    async def _turn(self) -> None:
        """Write the publishes, and let the loop read their confirms.

        Without this turn of the loop the window of `publish_many` would fill up each time.
        """
        await self.connection.flush()
        await asyncio.sleep(0)

    async def _settled(self, bulk: Bulk, low: int) -> None:
        """Wait until at most `low` publishes are unconfirmed."""
        if bulk.outstanding <= low:
            return
        room: Call[None] = Call()
        bulk.low = low
        bulk.on_low = lambda: room.succeed(None)
        await self.connection.finish(room)
        bulk.on_low = None

    def _on_flow(self, active: bool) -> None:
        if active:
            self._flowing.set()
        else:
            self._flowing.clear()

    def _on_closed(self, error: AMQPError) -> None:
        # Wake the tasks that wait in `ready_to_publish`: their channel is closed.
        self._flowing.set()
        super()._on_closed(error)


class PendingConfirm(SharedPendingConfirm):
    """An unconfirmed publish; awaiting it waits for the broker's confirm.

    Raises (when awaited):
        PublishNacked: the broker refused it.
        PublishReturned: it was mandatory and unroutable.
        ConnectionLost, ChannelClosed: the outcome is unknown.
    """

    __slots__ = ()

    _connection: ConnectionWaits

    def __await__(self) -> Generator[Any, None, None]:
        if self._confirm.done:
            return self._confirm.value()
        return (yield from self._connection.finish(self._confirm).__await__())


class ConsumerWaits:
    """The waits of a consumer; it subscribes with the first of them.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        options: of basic.consume: tag ("" generates one), no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
        idle_seconds: maximum time without a message; None waits without limit.
    """

    def __init__(
        self,
        channel: ChannelWaits,
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

    async def start(self) -> Self:
        """Subscribe now, not with the first iteration."""
        if not self._starting:
            # A call that is refused or cancelled here has sent nothing: the next one subscribes.
            await self._channel.connection.usable()
        if not self._starting:
            self._starting = True
            channel = self._channel
            self.tag = self._options["tag"] or channel.core.next_tag()
            options = {**self._options, "tag": self.tag}
            call = subscribe(channel, self._queue, self._inbox, options, self._prefetch)
            # A connection that is lost before the answer recovers without this subscription.
            call.when_done(functools.partial(_end_unsubscribed, self._inbox))
            await channel.connection.finish(call)
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def _arrived(self) -> bool:
        """Wait for a delivery that can be settled; False at the end or after the idle time."""
        await self.start()
        inbox = self._inbox
        while not inbox.items or self._channel.connection.recovering:
            if inbox.ended:
                inbox.check()
                return False
            if not await self._woken():
                return False
        return True

    async def _woken(self) -> bool:
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

    async def _requeue_rest(self) -> None:
        """Requeue what was not consumed; never wait for room in the socket of a blocked broker."""
        self._channel.requeue_inbox(self._inbox)
        self._channel.connection.touch()

    def __del__(self) -> None:
        if self._starting and not self._inbox.ended:
            # The garbage collector may run in any thread.
            self._channel.connection.later(_abandon(self._channel, self._inbox, self.tag))


def _end_unsubscribed(inbox: Inbox, call: Call[CoreConsumer]) -> None:
    if call.error is not None:
        inbox.finish(call.error)


def _abandon(channel: ChannelWaits, inbox: Inbox, tag: str) -> Callable[[], None]:
    """Return a callback that cancels a subscription, without a reference to the consumer."""

    def abandon() -> None:
        inbox.finish(None)
        channel.requeue_inbox(inbox)
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


class RequesterWaits:
    """The waits of a requester."""

    connection: ConnectionWaits
    requests: Requests

    async def _reply(self, request: Request, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await self.connection.finish(request.reply)
        except TimeoutError:
            if request.reply.done:
                return request.reply.value()
            raise request.timed_out(seconds) from None
        finally:
            self.requests.forget(request)
