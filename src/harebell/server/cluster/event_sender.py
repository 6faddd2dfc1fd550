"""Send the events and log lines of this broker to the owner of store 1, which publishes them.

Nothing waits for that: what does not fit into CLUSTER_EVENT_BYTES is left out and counted, and so
is what waits when the connection is cut. While nothing is bound there, nothing is made here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError
from harebell.base.limits import (
    CLUSTER_EVENT_BYTES,
    CLUSTER_EVENTS_AGAIN_SECONDS,
    CLUSTER_EVENTS_PER_TURN,
    CLUSTER_REACH_SECONDS,
)
from harebell.model.events import Events, without_tables
from harebell.model.log_exchange import LogExchange
from harebell.server.cluster.event_wire import BEGIN, EVENTS, LINES, SERVICE, Record, encoded
from harebell.server.cluster.link import open_link, streams
from harebell.server.cluster.stores import FIRST_STORE, ClusterAddress

if TYPE_CHECKING:
    from harebell.server.cluster.store_directory import StoreDirectory

_READ_BYTES = 64


class EventSender:
    """The events and log lines of one broker.

    Args:
        directory: knows the owner of store 1.
        events: the events of this broker.
        log: its log lines.
        node: its name.
        report: called with a level and a line.

    Attributes:
        lost: how many were left out.
    """

    def __init__(
        self,
        directory: StoreDirectory,
        events: Events,
        log: LogExchange,
        node: str,
        report: Callable[[str, str], None],
    ) -> None:
        self.lost = 0
        self._directory = directory
        self._events = events
        self._log = log
        self._node = node
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._some = asyncio.Event()
        self._reported = 0
        self._reporting: asyncio.TimerHandle | None = None
        self._task = self._loop.create_task(self._run())

    def close(self) -> None:
        """Send nothing more."""
        self._task.cancel()
        self._want(0)
        if self._reporting is not None:
            self._reporting.cancel()

    # --- what is sent -----------------------------------------------------------------------------

    def _want(self, bound: int) -> None:
        """Let the broker make what is bound at the owner of store 1."""
        self._events.elsewhere = self._event if bound & EVENTS else None
        self._log.elsewhere = self._line if bound & LINES else None

    def _event(self, key: str, headers: Mapping[str, Any]) -> None:
        try:
            data = encoded(Record(EVENTS, key, headers))
        except (TypeError, ValueError):
            # As in `Events`: a client's table may have the maximum depth already.
            data = encoded(Record(EVENTS, key, without_tables(headers)))
        self._add(data)

    def _line(self, level: str, body: bytes) -> None:
        self._add(encoded(Record(LINES, level, {"node": self._node}, body)))

    def _add(self, data: bytes) -> None:
        if self._size + len(data) > CLUSTER_EVENT_BYTES:
            self._lose(1)
            return
        self._waiting.append(data)
        self._size += len(data)
        self._some.set()

    def _take(self) -> bytes:
        """Return some of what waits."""
        count = min(len(self._waiting), CLUSTER_EVENTS_PER_TURN)
        data = b"".join([self._waiting.popleft() for _ in range(count)])
        self._size -= len(data)
        if not self._waiting:
            self._some.clear()
        return data

    def _lose(self, count: int) -> None:
        self.lost += count
        if count and self._reporting is None:
            self._reporting = self._loop.call_later(CLUSTER_EVENTS_AGAIN_SECONDS, self._report_lost)

    def _report_lost(self) -> None:
        self._reporting = None
        count, self._reported = self.lost - self._reported, self.lost
        self._report(
            "warning",
            f"{count} events and log lines were left out: the owner of store 1, which publishes "
            "them, is away or takes them too slowly",
        )

    # --- the connection ---------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            address = self._directory.address_of(FIRST_STORE)
            if address is not None:
                await self._serve(address)
            await asyncio.sleep(CLUSTER_EVENTS_AGAIN_SECONDS)

    async def _serve(self, address: ClusterAddress) -> None:
        """Send to an owner until it is another one, or the connection ends."""
        try:
            async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                link = await open_link(address, self._directory.secret, {"service": SERVICE})
        except (OSError, TimeoutError, HarebellError):
            return
        reader, writer = streams(link)
        writer.write(BEGIN)
        sending = self._loop.create_task(self._send(writer))
        try:
            while self._directory.address_of(FIRST_STORE) == address and not sending.done():
                try:
                    async with asyncio.timeout(CLUSTER_EVENTS_AGAIN_SECONDS):
                        data = await reader.read(_READ_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return
                self._want(data[-1])
        except OSError:
            return
        finally:
            self._want(0)
            sending.cancel()
            writer.transport.abort()
            self._lose(len(self._waiting))
            self._waiting.clear()
            self._size = 0
            self._some.clear()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._some.wait()
                writer.write(self._take())
                await writer.drain()
        except OSError:
            return
