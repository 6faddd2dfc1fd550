"""Lines of JSON between brokers: what the services of the cluster port speak after the handshake.

    caller                                                    service
    the first line                                       -->
                                                       <-->  lines, as the service wants

Services that speak lines: `command` (command_wire.py), `events` (events.py), `usage` (usage.py),
`metrics` (metrics.py) and `backup` (backup.py). The other one passes the bytes of a client on
(client_handover.py).

Peers have proven that they belong to the cluster, so a line that cannot be read is a fault of a
broker: the connection ends, and the log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from harebell.base.errors import HarebellError
from harebell.cluster.limits import CLUSTER_ANSWER_BYTES, CLUSTER_REACH_SECONDS
from harebell.cluster.link import Header, open_link, streams
from harebell.server.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from harebell.cluster.stores import StoreDirectory

_T = TypeVar("_T")
_ENDED = (OSError, TimeoutError, HarebellError)


class Begin(msgspec.Struct):
    """The first line of a caller that only listens."""


class Lines:
    """A connection between two brokers.

    Args:
        transport: the connection after its handshake.
        limit: the longest line in bytes; longer ones end the connection.

    Attributes:
        reader: what the peer sends, for those who read no lines.
        writer: sends to the peer.
    """

    def __init__(self, transport: asyncio.Transport, limit: int = CLUSTER_ANSWER_BYTES) -> None:
        self.reader, self.writer = streams(transport)
        self._limit = limit

    @property
    def is_open(self) -> bool:
        """Whether the peer has not closed the connection, as far as is known here."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def next(self, kind: type[_T], silent_seconds: float | None = None) -> _T:
        """Return the next line as a value of this type.

        Args:
            kind: the type.
            silent_seconds: how long to wait for a byte; None for as long as it takes.

        Raises:
            ConnectionError: the connection has ended.
            TimeoutError: nothing comes.
            msgspec.MsgspecError: the line is something else, or too long.
        """
        return msgspec.json.decode(await self.next_bytes(silent_seconds), type=kind)

    async def next_bytes(self, silent_seconds: float | None = None) -> bytes:
        """Return the next line.

        Raises:
            ConnectionError: the connection has ended.
            TimeoutError: nothing comes for so many seconds.
            msgspec.ValidationError: the line is too long.
        """
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(silent_seconds):
                    part = await self.reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                # The reader holds little, so that a peer stops that sends more than is read here.
                part = await self.reader.readexactly(error.consumed)
            except asyncio.IncompleteReadError:
                raise ConnectionResetError("it closed the connection") from None
            size += len(part)
            if size > self._limit:
                raise msgspec.ValidationError(f"it has more than {self._limit} bytes")
            parts.append(part)
            if part.endswith(b"\n"):
                return b"".join(parts)

    async def send(self, value: object) -> None:
        """Send a value, and wait while the peer reads too slowly.

        Raises:
            ConnectionError: the connection has ended.
        """
        self.write(value)
        await self.writer.drain()

    def write(self, value: object) -> None:
        """Send a value, and wait for nothing."""
        self.writer.write(line_of(value))

    def close(self) -> None:
        """End the connection when what was written has been sent."""
        self.writer.close()


def line_of(value: object) -> bytes:
    """Return the line of a value, with its end."""
    return msgspec.json.encode(value) + b"\n"


class LineService:
    """A service of the cluster port: a task for each of its connections.

    Args:
        report: called with a level and a line.
        limit: the longest line in bytes.

    Attributes:
        connections: the tasks.
    """

    def __init__(
        self, report: Callable[[str, str], None], limit: int = CLUSTER_ANSWER_BYTES
    ) -> None:
        self.connections = BackgroundTasks()
        self._report = report
        self._limit = limit

    def serve(self, _header: Header, transport: asyncio.Transport) -> None:
        """Serve a connection that has proven that it belongs to the cluster."""
        self.connections.start(self._serve(Lines(transport, self._limit)))

    def close(self) -> None:
        """End all connections."""
        self.connections.cancel()

    async def _talk(self, lines: Lines) -> None:
        """Serve a connection, which ends when this does."""
        raise NotImplementedError

    async def _serve(self, lines: Lines) -> None:
        try:
            await self._talk(lines)
        except _ENDED:
            pass  # the other broker has gone
        except msgspec.MsgspecError as error:
            self._report("warning", f"cluster port: another owner sends a damaged line: {error}")
        finally:
            lines.close()


async def follow(
    directory: StoreDirectory,
    store: int,
    service: str,
    talk: Callable[[Lines], Awaitable[None]],
    report: Callable[[str, str], None],
    again_seconds: float,
    limit: int = CLUSTER_ANSWER_BYTES,
) -> None:
    """Talk to the owner of a store for ever, whichever broker that is.

    Args:
        directory: knows the owner.
        store: the number of the store.
        service: what is asked for at its cluster port.
        talk: called with each new connection after `Begin`; the connection ends when `talk` does,
            and when another broker owns the store.
        report: called with a level and a line.
        again_seconds: the pause before the next connection.
        limit: the longest line in bytes.
    """
    while True:
        address = directory.address_of(store)
        if address is not None:
            try:
                async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                    link = await open_link(address, directory.secret, {"service": service})
                lines = Lines(link, limit)
                talking = asyncio.create_task(_talked(lines, talk))
                try:
                    while directory.address_of(store) == address and not talking.done():
                        await asyncio.wait((talking,), timeout=again_seconds)
                finally:
                    talking.cancel()
                # It ends before the next one begins.
                await asyncio.wait((talking,))
                if not talking.cancelled():
                    talking.result()
            except _ENDED:
                pass  # it has gone, or is not there yet
            except msgspec.MsgspecError as error:
                report("warning", f"the owner of store {store} sends a damaged line: {error}")
        await asyncio.sleep(again_seconds)


async def _talked(lines: Lines, talk: Callable[[Lines], Awaitable[None]]) -> None:
    try:
        await lines.send(Begin())
        await talk(lines)
    finally:
        # What waits to be sent is for an owner that may be none any more.
        lines.writer.transport.abort()
