"""Events and log lines of all owners: the service "events" of the cluster port.

The owner of store 1 has the vhost "/" with the exchanges for them, and publishes what the others
send. They learn what is bound there whenever that changes, and make and send nothing else.

    owner of another store                          owner of store 1
    {}                                         -->
                                               <--  {"events": true, "lines": false}
    {"key": "queue.created", "headers": ...}   -->         an event: a field table, in base64
    {"key": "info", "node": ..., "line": ...}  -->         a line of the log, in base64

Nothing waits for the sending: what does not fit into CLUSTER_EVENT_BYTES is left out and counted,
and so is what waits when the connection is cut.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.base.errors import ProtocolError
from harebell.cluster.limits import (
    CLUSTER_EVENT_BYTES,
    CLUSTER_EVENTS_AGAIN_SECONDS,
    CLUSTER_EVENTS_PER_TURN,
    CLUSTER_EVENTS_SECONDS,
)
from harebell.cluster.lines import Begin, Lines, LineService, follow, line_of
from harebell.cluster.stores import FIRST_STORE
from harebell.model.events import Events, without_tables
from harebell.model.log_exchange import LogExchange
from harebell.wire.v09.fields import decode_table, encode_table

if TYPE_CHECKING:
    from harebell.cluster.stores import StoreDirectory

SERVICE = "events"
"""The service at the cluster port that publishes them."""


class Bound(msgspec.Struct, frozen=True):
    """What the owner of store 1 publishes: whether something is bound to each exchange.

    Args:
        events: to the event exchange.
        lines: to the log exchange.
    """

    events: bool = False
    lines: bool = False


class Record(msgspec.Struct, omit_defaults=True):
    """An event, or a line of the log.

    Args:
        key: its routing key; the level of a line.
        headers: of an event, as a field table of AMQP 0-9-1, which has more types than JSON.
        node: the name of the broker that wrote a line.
        line: the line; None for an event.
    """

    key: str
    headers: bytes = b""
    node: str = ""
    line: bytes | None = None


class EventService(LineService):
    """Publishes what the other owners send.

    Args:
        events: the events of this broker.
        log: its log lines.
        flush: called when connections may have output, or a commit is to start.
        report: called with a level and a line.
    """

    def __init__(
        self,
        events: Events,
        log: LogExchange,
        flush: Callable[[], None],
        report: Callable[[str, str], None],
    ) -> None:
        super().__init__(report, CLUSTER_EVENT_BYTES)
        self._events = events
        self._log = log
        self._flush = flush

    async def _talk(self, lines: Lines) -> None:
        await lines.next(Begin)
        sending = asyncio.create_task(self._send_bound(lines))
        try:
            count = 0
            while True:
                self._publish(await lines.next(Record))
                count += 1
                if count % CLUSTER_EVENTS_PER_TURN == 0:
                    await asyncio.sleep(0)
        finally:
            sending.cancel()

    async def _send_bound(self, lines: Lines) -> None:
        """Let the other owner know what is bound, whenever that changes."""
        sent: Bound | None = None
        while True:
            bound = Bound(self._events.bound, self._log.bound)
            if bound != sent:
                sent = bound
                lines.write(bound)
            await asyncio.sleep(CLUSTER_EVENTS_SECONDS)

    def _publish(self, record: Record) -> None:
        if record.line is not None:
            self._log.take(record.key, record.line, record.node)
        else:
            try:
                headers, _ = decode_table(record.headers, 0)
            except ProtocolError as error:
                raise msgspec.ValidationError(f"the headers of an event: {error}") from None
            self._events.take(record.key, headers)
        self._flush()


class EventSender:
    """Sends the events and log lines of one broker.

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
        self._events = events
        self._log = log
        self._node = node
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._has_waiting = asyncio.Event()
        self._reported = 0
        self._reporting: asyncio.TimerHandle | None = None
        self._task = self._loop.create_task(
            follow(
                directory, FIRST_STORE, SERVICE, self._talk, report, CLUSTER_EVENTS_AGAIN_SECONDS
            )
        )

    def close(self) -> None:
        """Send nothing more."""
        self._task.cancel()
        self._set_bound(Bound())
        if self._reporting is not None:
            self._reporting.cancel()

    def _set_bound(self, bound: Bound) -> None:
        """Let the broker make what is bound at the owner of store 1."""
        self._events.elsewhere = self._event if bound.events else None
        self._log.elsewhere = self._line if bound.lines else None

    def _event(self, key: str, headers: Mapping[str, Any]) -> None:
        try:
            table = encode_table(headers)
        except (TypeError, ValueError):
            # A client's table may have the maximum depth already, and here it is one deeper.
            table = encode_table(without_tables(headers))
        self._add(Record(key, headers=table))

    def _line(self, level: str, line: bytes) -> None:
        self._add(Record(level, node=self._node, line=line))

    def _add(self, record: Record) -> None:
        data = line_of(record)
        if self._size + len(data) > CLUSTER_EVENT_BYTES:
            self._lose(1)
            return
        self._waiting.append(data)
        self._size += len(data)
        self._has_waiting.set()

    def _take(self) -> bytes:
        """Return some of what waits."""
        count = min(len(self._waiting), CLUSTER_EVENTS_PER_TURN)
        data = b"".join([self._waiting.popleft() for _ in range(count)])
        self._size -= len(data)
        if not self._waiting:
            self._has_waiting.clear()
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

    async def _talk(self, lines: Lines) -> None:
        sending = self._loop.create_task(self._send(lines))
        try:
            while not sending.done():
                self._set_bound(await lines.next(Bound))
        finally:
            sending.cancel()
            # Nothing is made for an owner that is away: what is bound there later is unknown.
            self._set_bound(Bound())
            self._lose(len(self._waiting))
            self._waiting.clear()
            self._size = 0
            self._has_waiting.clear()

    async def _send(self, lines: Lines) -> None:
        try:
            while True:
                await self._has_waiting.wait()
                lines.writer.write(self._take())
                await lines.writer.drain()
        except OSError:
            lines.close()  # the reading ends, too
