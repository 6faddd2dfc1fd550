"""The proxy of `harebell dump`: two sockets and a dissector per connection.

    client --> | read, pass on, then print | --> broker        and the same the other way round

Bytes are forwarded before they are decoded. If a dissector fails, it is removed, and its connection
continues without output.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from harebell.base.errors import HarebellError
from harebell.base.limits import READ_BUFFER_BYTES
from harebell.wire.dissect import Dissector, Event

Show = Callable[[int, Event], None]
Say = Callable[[str], None]


class CannotListen(HarebellError):
    """The address of the proxy cannot be bound."""


class Proxy:
    """Forwards connections to a broker.

    Args:
        target: host and port of the broker.
        show: called with the number of the connection and each event.
        say: called with messages about connections.
        limit: number of closed connections after which the proxy ends; None for no limit.
    """

    def __init__(self, target: tuple[str, int], show: Show, say: Say, limit: int | None) -> None:
        self._target = target
        self._show = show
        self._say = say
        self._limit = limit
        self._accepted = 0
        self._over = 0
        self._end = asyncio.Event()
        self._error: OSError | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, address: str, port: int) -> None:
        """Listen until SIGINT or SIGTERM, or until `limit` connections are closed.

        Raises:
            CannotListen: the address cannot be bound.
            OSError: the output cannot be written.
        """
        try:
            server = await asyncio.start_server(
                self._accept, address, port, limit=READ_BUFFER_BYTES
            )
        except OSError as error:
            why = error.strerror or error
            raise CannotListen(f"cannot listen on {address}:{port}: {why}") from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end.set)
        host, broker_port = self._target
        taken = server.sockets[0].getsockname()[1]
        self._say(f"listening on {address}:{taken}, passing on to {host}:{broker_port}")
        await self._end.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._error is not None:
            raise self._error

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._accepted += 1
        number = self._accepted
        task = asyncio.current_task()
        assert task is not None, "connections are served in tasks"
        self._tasks.add(task)
        try:
            await self._serve(number, reader, writer)
        except OSError as error:
            self._say(f"#{number} ended: {error.strerror or error}")
        except asyncio.CancelledError:
            pass  # the proxy ends; asyncio of Python 3.11 would print a traceback of that
        finally:
            self._tasks.discard(task)
            writer.close()
            self._over += 1
            if self._over == self._limit:
                self._end.set()

    async def _serve(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        peer = writer.get_extra_info("peername")
        self._say(f"#{number} opened by {peer[0]}:{peer[1]}")
        host, port = self._target
        try:
            answers, requests = await asyncio.open_connection(host, port, limit=READ_BUFFER_BYTES)
        except OSError as error:
            self._say(f"#{number} cannot reach {host}:{port}: {error.strerror or error}")
            return
        watch = _Watch(number, self._show, self._say)
        try:
            await asyncio.gather(
                self._pass(reader, requests, watch, True),
                self._pass(answers, writer, watch, False),
            )
        finally:
            requests.close()
        self._say(f"#{number} closed")

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        watch: _Watch,
        from_client: bool,
    ) -> None:
        try:
            while data := await reader.read(READ_BUFFER_BYTES):
                writer.write(data)
                try:
                    watch.look(from_client, data)
                except OSError as error:
                    # The output cannot be written: end the proxy.
                    self._error = error
                    self._end.set()
                    return
                await writer.drain()
        except ConnectionError:
            # One side has reset its connection; the end of file below informs the other side.
            pass
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()


class _Watch:
    """Decodes one connection."""

    def __init__(self, number: int, show: Show, say: Say) -> None:
        self._number = number
        self._show = show
        self._say = say
        self._dissector: Dissector | None = Dissector()

    def look(self, from_client: bool, data: bytes) -> None:
        """Decode and show bytes.

        Raises:
            OSError: the output cannot be written.
        """
        if self._dissector is None:
            return
        try:
            events = self._dissector.feed(from_client, data)
        except Exception as error:
            self._dissector = None
            self._say(f"#{self._number} is not read any more: {type(error).__name__}: {error}")
            return
        for event in events:
            self._show(self._number, event)
