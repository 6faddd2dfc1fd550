"""The network between clients and a broker: it records traffic, and fails on request of a test."""

from __future__ import annotations

import asyncio

from harebell.base.limits import READ_BUFFER_BYTES
from harebell.testing.record import Record
from harebell.testing.virtual_time import VirtualTime
from harebell.wire.dissect import Dissector

HOST = "127.0.0.1"


class _Pair:
    """A client, and the connection to the broker that is made for it."""

    def __init__(self, number: int, client: asyncio.StreamWriter) -> None:
        self.number = number
        self.client = client
        self.broker: asyncio.StreamWriter | None = None
        self.dissector = Dissector()

    def abort(self) -> None:
        """Break both connections; the peers see a reset."""
        for writer in (self.client, self.broker):
            if writer is not None:
                writer.transport.abort()


class Relay:
    """Passes on what clients and a broker send. Its methods run in the loop of the broker.

    Args:
        record: gets all traffic.
        time: the time of the broker.

    Attributes:
        port: where clients connect to; the same over restarts of the broker.
        target: the port of the broker; 0 while there is none.
        refusing: whether new connections are broken at once.
        passed: how many bytes have passed.
    """

    def __init__(self, record: Record, time: VirtualTime) -> None:
        self.port = 0
        self.target = 0
        self.refusing = False
        self.passed = 0
        self._record = record
        self._time = time
        self._count = 0
        self._pairs: dict[int, _Pair] = {}
        self._moving = asyncio.Event()
        self._moving.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> list[int]:
        """The numbers of the open connections, the oldest first."""
        return list(self._pairs)

    @property
    def stalled(self) -> bool:
        """Whether the relay holds all bytes back."""
        return not self._moving.is_set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=READ_BUFFER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break all connections and listen no more."""
        if self._server is not None:
            self._server.close()
        self.cut(None)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, connection: int | None) -> None:
        """Break a connection, or all if None.

        Raises:
            LookupError: no open connection has this number.
        """
        for pair in self._chosen(connection):
            pair.abort()

    def stall(self) -> None:
        """Hold all bytes back, like an unplugged cable."""
        self._moving.clear()

    def resume(self) -> None:
        """Forward held and new bytes."""
        self._moving.set()

    def inject(self, data: bytes, connection: int | None, *, client: bool) -> None:
        """Send bytes in the name of one side.

        Args:
            data: whole frames.
            connection: the number of the connection; None for all.
            client: in the name of the client; else in the name of the broker.

        Raises:
            LookupError: no open connection has this number.
        """
        for pair in self._chosen(connection):
            self._watch(pair, data, client=client)
            writer = pair.broker if client else pair.client
            if writer is not None:
                writer.write(data)

    def _chosen(self, connection: int | None) -> list[_Pair]:
        if connection is None:
            return list(self._pairs.values())
        if connection not in self._pairs:
            open_ones = ", ".join(map(str, self._pairs)) or "none"
            raise LookupError(f"no connection {connection} is open; open are {open_ones}")
        return [self._pairs[connection]]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing or not self.target:
            writer.transport.abort()
            return
        self._count += 1
        pair = self._pairs[self._count] = _Pair(self._count, writer)
        task = asyncio.get_running_loop().create_task(self._serve(pair, reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, pair: _Pair, reader: asyncio.StreamReader) -> None:
        try:
            answers, pair.broker = await asyncio.open_connection(
                HOST, self.target, limit=READ_BUFFER_BYTES
            )
            await asyncio.gather(
                self._pass(pair, reader, pair.broker, client=True),
                self._pass(pair, answers, pair.client, client=False),
            )
        except OSError:
            # One side has broken its connection, and so is the other one now.
            pass
        finally:
            pair.abort()
            del self._pairs[pair.number]

    async def _pass(
        self,
        pair: _Pair,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        client: bool,
    ) -> None:
        while data := await reader.read(READ_BUFFER_BYTES):
            await self._moving.wait()
            # Recorded first: a client that has an answer finds it in the record.
            self._watch(pair, data, client=client)
            writer.write(data)
            self.passed += len(data)
            await writer.drain()
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()

    def _watch(self, pair: _Pair, data: bytes, *, client: bool) -> None:
        seconds = self._time.passed
        self._record.watch(pair.dissector, pair.number, data, seconds, client=client)
