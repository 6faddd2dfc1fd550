"""Connections of the asyncio API: opening, recovery, closing."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from harebell.base.limits import CLIENT_BUFFER_MESSAGES
from harebell.client import tls
from harebell.client.aio.channel import Channel
from harebell.client.aio.requests import Requester
from harebell.client.aio.transport import AsyncTransport, dial
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    ConcurrentUse,
    ConnectionLost,
    RecoveryFailed,
)
from harebell.client.protocol.call import Call
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
    refused,
    replay,
    resend,
    wanted,
)
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.v09.channel import CoreChannel as CoreChannel
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL

T = TypeVar("T")


class Connection(SharedConnection[Channel]):
    """A connection to a broker. Get one from `connect`.

    Attributes:
        blocked: set while the broker blocks publishers, because it is short of memory or disk.
        unblocked: set while it does not.
    """

    def __init__(
        self,
        url: URL,
        recovery: Recovery | None,
        rng: Random,
        properties: dict[str, Any],
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        super().__init__("aio", url, recovery, rng, properties)
        self._given_context = ssl_context
        self._thread = threading.get_ident()
        self.blocked = asyncio.Event()
        self.unblocked = asyncio.Event()
        self.unblocked.set()
        self._loop = asyncio.get_running_loop()
        self._link: AsyncTransport | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._awaiting = 0

    # --- opening --------------------------------------------------------------------------------

    async def open(self) -> Connection:
        """Connect; called by `connect`."""
        link = await self._dial()
        link.core.recorder = self._topology
        self._use(link)
        return self

    async def _dial(self) -> AsyncTransport:
        # Invalid settings fail before anything is sent.
        context = tls.chosen_context(self.url, self._given_context)
        return await dial(self._new_core(self._loop.time()), self.url, context)

    def _use(self, link: AsyncTransport) -> None:
        self._link = link
        self._core = link.core
        self.recovering = False
        link.on_read = self._throttle
        link.core.on_blocked = self._on_blocked
        self._on_blocked(link.core.blocked)
        self._settled.set()
        link.core.closed.when_done(lambda call: self._core_closed(link, call.error))

    async def channel(self, *, confirms: bool | None = None) -> Channel:
        """Open a channel.

        Args:
            confirms: whether `publish` waits for the broker's confirm; None waits if the version of
                AMQP has confirms.
        """
        await self.usable()
        core = await self.finish(self._core.open_channel(confirms=confirms, keep=self._resends))
        channel = Channel(self, core)
        self.channels[core.number] = channel
        return channel

    def requester(self) -> Requester:
        """Return a client for requests and replies (RPC); use it with `async with`."""
        return Requester(self)

    # --- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used now."""
        return self._link is not None and not self.recovering and not self._over.is_set()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed; raise its error unless this program closed it."""
        await self._over.wait()
        if self._error is not None and not isinstance(self._error, ClientClosed):
            raise self._error.with_traceback(None)

    # --- for channels ---------------------------------------------------------------------------

    def check_thread(self) -> None:
        """Check that this is the thread of the connection's event loop.

        Raises:
            ConcurrentUse: it is another thread.
        """
        if threading.get_ident() != self._thread:
            raise ConcurrentUse(
                "this connection belongs to the event loop of another thread: call "
                "asyncio.run_coroutine_threadsafe(coroutine, loop) from here"
            )

    async def usable(self) -> None:
        """Wait while the connection recovers; raise if it is closed."""
        self.check_thread()
        if not self.recovering and self._link is not None and not self._over.is_set():
            return
        await self._settled.wait()
        if self._error is not None:
            raise self._error.with_traceback(None)

    async def finish(self, call: Call[T]) -> T:
        """Wait for the answer of a call."""
        self.touch()
        if not call.done:
            future: asyncio.Future[None] = self._loop.create_future()
            call.when_done(lambda _: None if future.done() else future.set_result(None))
            await self.waiting(future)
        return call.value()

    async def waiting(self, something: Awaitable[Any]) -> None:
        """Wait for something that depends on reading; keep reading even if deliveries pile up."""
        self._awaiting += 1
        if self._link is not None and self._core.reading_paused:
            self._link.resume_reading()
        try:
            await something
        finally:
            self._awaiting -= 1
            self._throttle()

    def taken(self) -> None:
        """Account for a delivery that was taken from its inbox."""
        if self.buffered < CLIENT_BUFFER_MESSAGES // 2 and self._core.reading_paused:
            assert self._link is not None, "a delivery came without a connection"
            self._link.resume_reading()

    def _throttle(self) -> None:
        """Stop reading while deliveries pile up and nothing else is awaited."""
        if self.buffered > CLIENT_BUFFER_MESSAGES and self._awaiting == 0 and self._link:
            self._link.pause_reading()

    def touch(self) -> None:
        """Schedule a write: the core has output."""
        if self._link is not None:
            self._link.touch()

    def later(self, action: Callable[[], None]) -> None:
        """Schedule a callback, from any thread in which the garbage collector may run."""
        with contextlib.suppress(RuntimeError):
            # Another thread may close the loop at any time.
            self._loop.call_soon_threadsafe(action)

    @property
    def congested(self) -> bool:
        """True if the socket's write buffer is full."""
        return self._link is not None and self._link.congested

    async def drain(self) -> None:
        """Wait until the write buffer has room."""
        if self._link is not None:
            await self._link.drain()

    # --- the end and recovery -------------------------------------------------------------------

    def _on_blocked(self, reason: str | None) -> None:
        if reason is None:
            self.blocked.clear()
            self.unblocked.set()
        else:
            self.blocked.set()
            self.unblocked.clear()

    def _core_closed(self, link: AsyncTransport, error: AMQPError | None) -> None:
        if link is not self._link or self._over.is_set():
            return
        if error is not None and self.survives(error):
            self.recovering = True
            self._reports.lost(error)
            self._settled.clear()
            self._task = self._loop.create_task(self._recover(error))
            return
        self._end(error or ClientClosed("the connection was closed"))

    def _end(self, error: AMQPError) -> None:
        if self._over.is_set():
            return
        self._error = error
        self._reports.ended(error)
        self._over.set()
        self.recovering = False
        self._settled.set()
        self.unblocked.set()
        for channel in list(self.channels.values()):
            channel.ended(error)

    async def _recover(self, cause: AMQPError) -> None:
        """Try to reconnect until it succeeds, or until the recovery gives up."""
        assert self._recovery is not None, "recovery was not asked for"
        backoff = Backoff(self._recovery, self._rng)
        error = cause
        try:
            while True:
                await asyncio.sleep(backoff.delay())
                try:
                    await self._restore()
                except AMQPError as failure:
                    error = failure
                    self._reports.failed(backoff.tried, failure)
                    if not backoff.failed(refused=refused(failure)):
                        break
                else:
                    self._reports.regained(backoff.tried)
                    if self.on_recovered is not None:
                        self.on_recovered()
                    return
        finally:
            if self.recovering and not self._closing:
                # On any error: tasks that await the connection must not wait without end.
                given_up = RecoveryFailed(f"gave up after {backoff.tried} attempts: {error}")
                given_up.__cause__ = error
                self._end(given_up)

    async def _restore(self) -> None:
        """Make one attempt: connect and restore the topology."""
        assert self._topology is not None, "nothing was recorded"
        link = await self._dial()
        old = {number: channel.core for number, channel in self.channels.items()}
        steps = replay(link.core, self._topology, old)
        try:
            channels = await _drive(link, steps)
        except BaseException:
            steps.close()
            link.abort()
            raise
        self._adopt(channels, old)
        self._use(link)
        for number, core in channels.items():
            resend(old[number], core)
        link.touch()
        for channel in self.channels.values():
            for inbox in channel.inboxes:
                inbox.wake()

    def _adopt(self, channels: dict[int, CoreChannel], old: dict[int, CoreChannel]) -> None:
        assert self._topology is not None, "nothing was recorded"
        for number, core in channels.items():
            channel = self.channels.get(number)
            if channel is None or channel.core is not old[number]:
                # The program closed the connection while it was being restored.
                core.close()
                continue
            for tag in core.consumers.keys() - self._topology.channel(number).consumers.keys():
                core.abandon(tag)
            channel.adopt(core)

    async def close(self) -> None:
        """Close the connection gracefully."""
        self._closing = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        self._end_if_recovering()
        link = self._link
        if link is None:
            return
        if not self._over.is_set():
            self._core.close(self._loop.time())
        link.resume_reading()
        link.flush()
        await link.gone

    def _end_if_recovering(self) -> None:
        if self.recovering:
            self._end(ClientClosed("the connection was closed while it recovered"))


async def _drive(
    link: AsyncTransport, steps: Generator[Call[Any], None, dict[int, CoreChannel]]
) -> dict[int, CoreChannel]:
    """Run a replay over a connection."""
    loop = asyncio.get_running_loop()
    try:
        call = next(steps)
        while True:
            link.flush()
            if not call.done:
                answered: asyncio.Future[None] = loop.create_future()
                call.when_done(_setter(answered))
                await answered
            call = steps.send(None) if call.error is None else steps.throw(call.error)
    except StopIteration as end:
        channels: dict[int, CoreChannel] = end.value
    if link.core.finished:
        raise link.core.error or ConnectionLost("the connection broke again while it recovered")
    return channels


def _setter(future: asyncio.Future[None]) -> Callable[[Call[Any]], None]:
    return lambda call: None if future.done() else future.set_result(None)


class _Connecting:
    """The result of `connect`: await it, or enter it with `async with`."""

    def __init__(self, make: Callable[[], Connection]) -> None:
        self._make = make
        self._connection: Connection | None = None

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._make().open().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._make().open()
        return self._connection

    async def __aexit__(self, *error: object) -> None:
        assert self._connection is not None, "left before it was entered"
        await self._connection.close()


def connect(
    url: str | URL = "amqp://",
    *,
    version: str | None = None,
    recover: bool | Recovery = False,
    rng: Random | None = None,
    properties: dict[str, Any] | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> _Connecting:
    """Open a connection, to be awaited or entered with `async with`.

    Args:
        url: the address, amqp:// or amqps:// (`harebell.client.url`).
        version: version of AMQP, "0-8" for example, in place of that of the address.
        recover: reconnect when the connection is lost and restore what was declared; a `Recovery`
            says how.
        rng: randomness for the jitter of the delays between attempts.
        properties: added to the client properties.
        ssl_context: TLS settings, instead of the parameters of an amqps:// address.

    Raises:
        URLError: the address is invalid.
        ConnectionFailed: no connection could be opened (when awaited or entered).
    """
    address = URL.of(url, version)
    entropy = rng if rng is not None else random.Random()  # noqa: S311 - jitter, no secret
    return _Connecting(
        lambda: Connection(address, wanted(recover), entropy, dict(properties or {}), ssl_context)
    )
