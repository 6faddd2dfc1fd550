"""How connections of the asyncio API wait, recover and end."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from harebell.client.aio.transport import AsyncTransport, answer_of
from harebell.client.aio.waits import ChannelWaits
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    ConcurrentUse,
)
from harebell.client.limits import CLIENT_BUFFER_MESSAGES, CLOSE_BLOCKED_SECONDS
from harebell.client.protocol.call import Call
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
)
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL

T = TypeVar("T")


class ConnectionWaits(SharedConnection[ChannelWaits]):
    """The waits of a connection, its end and its recovery.

    Args:
        url: the address.
        recovery: how to recover; None disables recovery.
        rng: randomness for the delays.
        properties: added to the client properties.
        ssl_context: TLS settings, instead of those of the address.
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

    async def _open(self) -> None:
        """Connect for the first time."""
        raise NotImplementedError

    async def _reopen(self, backoff: Backoff) -> bool:
        """Try to reconnect until it succeeds; False if the recovery gives up."""
        raise NotImplementedError

    async def open(self) -> Self:
        """Connect; called by `connect`."""
        await self._open()
        return self

    def _now(self) -> float:
        return self._loop.time()

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
        """Wait for the answer of a call; if it needs none, for room in a full socket."""
        self.touch()
        if not call.done:
            await self.waiting(answer_of(call, self._loop))
        elif self.congested:
            await self.drain()
        return call.value()

    async def finish_end(self, call: Call[Any]) -> bool:
        """Wait for the answer to a cancel, a close or a rollback.

        Returns:
            False if the broker blocks publishers and has not answered: it does not read, so its
            answer may never come.
        """
        self.touch()
        answer = answer_of(call, self._loop)
        while not call.done:
            await self.waiting(asyncio.wait([answer], timeout=CLOSE_BLOCKED_SECONDS))
            # A full socket means the same before connection.blocked has been read.
            if not call.done and (self.blocked.is_set() or self.congested):
                return False
        call.value()
        return True

    async def flush(self) -> None:
        """Write the output; wait only if the socket is full."""
        self.touch()
        if self.congested:
            await self.drain()

    async def waiting(self, something: Awaitable[Any]) -> None:
        """Wait for something that depends on reading; keep reading even if deliveries pile up."""
        # While a task waits for an answer, reading must go on: the answer is behind deliveries.
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
        assert self._recovery is not None, "recovery was not asked for"
        backoff = Backoff(self._recovery, self._rng)
        backoff.error = cause
        try:
            await self._reopen(backoff)
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
