"""Connections of the asyncio API: how a task waits, and how a connection is lost and ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

from harebell.client.aio.channel import Channel
from harebell.client.aio.driver import AsyncShell, run
from harebell.client.aio.requests import Requester
from harebell.client.aio.transport import AsyncTransport, dial
from harebell.client.errors import AMQPError, ClientClosed, ConcurrentUse
from harebell.client.limits import CLIENT_BUFFER_MESSAGES, CLOSE_BLOCKED_SECONDS
from harebell.client.options import Options
from harebell.client.protocol import waits
from harebell.client.protocol.call import Call
from harebell.client.protocol.recovery import Backoff
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.waits import Ending, Following, Restored, Sleep, Until

T = TypeVar("T")


class Connection(SharedConnection[Channel, Requester], AsyncShell):
    """A connection to a broker. Get one from `connect`.

    Attributes:
        blocked: set while the broker blocks publishers, because it is short of memory or disk.
        unblocked: set while it does not.
    """

    _channel_type = Channel
    _requester_type = Requester
    _link: AsyncTransport

    def __init__(self, *given: *Options) -> None:
        super().__init__("aio", *given)
        self._thread = threading.get_ident()
        self.blocked = asyncio.Event()
        self.unblocked = asyncio.Event()
        self.unblocked.set()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._awaiting = 0

    async def open(self) -> Self:
        """Connect; called by `connect`."""
        await run(self, self._opened())
        return self

    def _use(self, link: AsyncTransport) -> None:
        self._link = link
        self._core = link.core
        self.recovering = False
        link.on_read = self._throttle
        link.core.on_blocked = self._on_blocked
        self._on_blocked(link.core.blocked)
        self._settled.set()
        link.core.closed.when_done(lambda call: self._core_closed(link, call.error))

    # --- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used now."""
        return not self.recovering and not self._over.is_set()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed; raise its error unless this program closed it."""
        await self._over.wait()
        if self._error is not None and not isinstance(self._error, ClientClosed):
            raise self._error.with_traceback(None)

    # --- waits ----------------------------------------------------------------------------------

    async def answer(self, wait: Any) -> Any:
        """Wait as a method asks for (`waits`)."""
        match wait:
            case Call():
                return await self.finish(wait)
            case Until():
                return await self._until(wait.call, wait.seconds)
            case Ending():
                return await self.finish_end(wait.call)
            case waits.USABLE:
                await self.usable()
            case waits.RECOVERED:
                self.check_thread()
                if self.recovering:
                    await self.usable()
            case waits.FLUSH:
                await self.flush()
            case waits.WRITE:
                self.touch()
            case waits.ROOM:
                await self.drain()
            case waits.TURN:
                await self.flush()
                await asyncio.sleep(0)
            case waits.NOW:
                return self._loop.time()
            case Sleep():
                await asyncio.sleep(wait.seconds)
            case Restored():
                assert isinstance(wait.link, AsyncTransport), "a link of this API"
                await wait.link.answer(wait.call)
            case waits.DIAL:
                return await dial(self._new_core(self._loop.time()), self.url, self._ssl_context)
            case Following():
                async for item in wait.items:
                    if wait.offer(item):
                        return (item,)
                return ()
        return None

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
        if self.is_open:
            return
        await self._settled.wait()
        if self._error is not None:
            raise self._error.with_traceback(None)

    async def finish(self, call: Call[T]) -> T:
        """Wait for the answer of a call; if it needs none, for room in a full socket."""
        self._link.touch()
        if not call.done:
            await self._done(call)
        elif self._link.congested:
            await self._link.drain()
        return call.value()

    async def finish_end(self, call: Call[Any]) -> bool:
        """Wait for the answer to a cancel, a close or a rollback (`Ending`)."""
        self._link.touch()
        while not call.done:
            await self._until(call, CLOSE_BLOCKED_SECONDS)
            # A full socket means the same before connection.blocked has been read.
            if not call.done and (self.blocked.is_set() or self.congested):
                return False
        call.value()
        return True

    async def _until(self, call: Call[Any], seconds: float | None) -> bool:
        if self._core.out.size:
            self._link.touch()
        try:
            async with asyncio.timeout(seconds):
                await self._done(call)
        except TimeoutError:
            # The process may have been suspended: what arrived meanwhile is in time.
            await asyncio.sleep(0)
        return call.done

    async def _done(self, call: Call[Any]) -> None:
        """Wait until a call is done; keep reading even if deliveries pile up."""
        future: asyncio.Future[None] = self._loop.create_future()

        def wake(_: object) -> None:
            if not future.done():
                future.set_result(None)

        call.when_done(wake)
        # While a task waits for an answer, reading must go on: the answer is behind deliveries.
        self._awaiting += 1
        if self._core.reading_paused:
            self._link.resume_reading()
        try:
            await future
        finally:
            call.drop(wake)
            self._awaiting -= 1
            self._throttle()

    async def flush(self) -> None:
        """Write the output; wait only if the socket is full."""
        self.touch()
        if self.congested:
            await self.drain()

    def taken(self) -> None:
        """Account for a delivery that was taken from its inbox."""
        if self.buffered < CLIENT_BUFFER_MESSAGES // 2 and self._core.reading_paused:
            self._link.resume_reading()

    def _throttle(self) -> None:
        """Stop reading while deliveries pile up and nothing else is awaited."""
        if self.buffered > CLIENT_BUFFER_MESSAGES and self._awaiting == 0:
            self._link.pause_reading()

    def touch(self) -> None:
        """Schedule a write: the core has output."""
        self._link.touch()

    def written(self) -> Self | None:
        """Schedule a write; return this connection if the socket is full."""
        link = self._link
        link.touch()
        return self if link.congested else None

    def later(self, action: Callable[[], None]) -> None:
        """Schedule a callback, from any thread in which the garbage collector may run."""
        with contextlib.suppress(RuntimeError):
            # Another thread may close the loop at any time.
            self._loop.call_soon_threadsafe(action)

    @property
    def congested(self) -> bool:
        """True if the socket's write buffer is full."""
        return self._link.congested

    async def drain(self) -> None:
        """Wait until the write buffer has room."""
        await self._link.drain()

    # --- the end and recovery -------------------------------------------------------------------

    def _on_blocked(self, reason: str | None) -> None:
        self._blocked(reason)
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
            self._settled.clear()
            self._task = self._loop.create_task(self._recover(self._lost(error)))
            return
        self._end(error or ClientClosed("the connection was closed"))

    def _end(self, error: AMQPError) -> None:
        if self._over.is_set():
            return
        super()._end(error)
        self._over.set()
        self._settled.set()
        self.unblocked.set()

    async def _recover(self, backoff: Backoff) -> None:
        try:
            await run(self, self._reopened(backoff))
        finally:
            if self.recovering and not self._closing:
                # On any error: tasks that await the connection must not wait without end.
                self._end(backoff.given_up())

    async def close(self) -> None:
        """Close the connection gracefully."""
        self._closing = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        if self.recovering:
            self._end(ClientClosed("the connection was closed while it recovered"))
        if not self._over.is_set():
            self._core.close(self._loop.time())
        self._link.resume_reading()
        self._link.flush()
        await self._link.gone
