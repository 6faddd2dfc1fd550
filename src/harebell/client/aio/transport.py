"""One socket under asyncio: bytes to and from the core, a timer, back-pressure both ways.

Output is written once per turn of the loop, whatever the number of publishes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

from harebell.base.heap import read_buffer
from harebell.base.limits import READ_BUFFER_BYTES, TICK_LATE_SECONDS
from harebell.client import tls
from harebell.client.protocol.call import Call
from harebell.client.protocol.v09.core import CoreConnection as Core
from harebell.client.url import URL


class AsyncTransport(asyncio.BufferedProtocol):
    """The asyncio protocol of a core.

    Args:
        core: the connection's state.
        loop: the loop that runs it.
    """

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.gone: asyncio.Future[None] = loop.create_future()
        self.on_read: Callable[[], None] | None = None
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._view = read_buffer(READ_BUFFER_BYTES)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._flush_due = False
        self._can_write = asyncio.Event()
        self._can_write.set()

    # --- asyncio.BufferedProtocol ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the connected socket."""
        self._transport = cast(asyncio.Transport, transport)
        self.flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the bytes in the buffer to the core."""
        self.core.receive(self._view[:nbytes], self._loop.time())
        self.flush()
        if self.on_read is not None:
            self.on_read()

    def eof_received(self) -> bool:
        """Close: the broker has closed its side."""
        self.core.eof()
        self.flush()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end: the socket is closed."""
        if exc is None:
            self.core.eof("the socket was closed")
        else:
            self.core.eof(f"the connection broke: {exc}")
        if self._timer is not None:
            self._timer.cancel()
        self._can_write.set()
        if not self.gone.done():
            self.gone.set_result(None)

    def pause_writing(self) -> None:
        """Note that the write buffer is full."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """Note that the write buffer has room."""
        self._can_write.set()

    # --- for the API ----------------------------------------------------------------------------

    def touch(self) -> None:
        """Schedule a write at the end of this turn: the core has output."""
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write the output, close the socket after the last, and set the timer."""
        self._flush_due = False
        transport = self._transport
        if transport is None:
            return
        while data := self.core.take_output():
            if not transport.is_closing():
                transport.write(data)
        if self.core.finished:
            transport.close()
        self._set_timer()

    async def answer(self, call: Call[Any]) -> None:
        """Wait until a call is done, on a connection that no channel uses yet."""
        self.flush()
        done: asyncio.Future[None] = self._loop.create_future()
        call.when_done(lambda _: None if done.done() else done.set_result(None))
        await done

    async def drain(self) -> None:
        """Wait until the write buffer has room."""
        if not self._can_write.is_set():
            await self._can_write.wait()

    @property
    def congested(self) -> bool:
        """True if the write buffer is full."""
        return not self._can_write.is_set()

    def pause_reading(self) -> None:
        """Stop reading until deliveries were consumed."""
        if self._transport is not None and not self.core.finished:
            self.core.reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self.core.reading_paused and self._transport is not None:
            self.core.reading_paused = False
            self.core.last_received = self._loop.time()
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def abort(self) -> None:
        """Close the socket at once."""
        if self._transport is not None:
            self._transport.abort()

    def _set_timer(self) -> None:
        due = self.core.wake_at()
        if due is None or self.core.finished:
            return
        if self._timer is not None:
            if not self._timer.cancelled() and self._timer.when() <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        if now - self._due > TICK_LATE_SECONDS:
            # The process was suspended: input from that time is still unread in the socket.
            self.core.excuse(now - self._due)
        self.core.tick(now)
        self.flush()
        if self.core.finished:
            # A dead peer reads no output, so a graceful close could take for ever.
            self.abort()


async def dial(core: Core, url: URL, given: ssl.SSLContext | None) -> AsyncTransport:
    """Open the socket and run the handshake.

    Args:
        core: the state of the new connection.
        url: the address.
        given: TLS settings, instead of those of the address.

    Raises:
        ConnectionFailed: it failed; the text has the address and the reason.
    """
    # Invalid settings fail before anything is sent.
    context = tls.chosen_context(url, given)
    loop = asyncio.get_running_loop()
    link = AsyncTransport(core, loop)
    options: dict[str, Any] = {}
    if context is not None:
        options = {"ssl": context, "server_hostname": tls.server_name(url)}
    with tls.dialling(url):
        async with asyncio.timeout(url.connection_timeout):
            await loop.create_connection(lambda: link, url.host, url.port, **options)
    try:
        await link.answer(core.opened)
    except BaseException:
        link.abort()
        raise
    core.opened.value()
    return link
