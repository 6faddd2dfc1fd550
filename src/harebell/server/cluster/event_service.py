"""Publish the events and log lines of the other owners: the service "events" of the cluster port.

The owner of store 1 has the vhost "/" with the exchanges for them. The others learn what is
bound there, and send nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harebell.base.limits import CLUSTER_EVENTS_PER_TURN, CLUSTER_EVENTS_SECONDS
from harebell.model.events import Events
from harebell.model.log_exchange import LogExchange
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.cluster.event_wire import (
    BEGIN,
    EVENTS,
    LINES,
    SIZE_BYTES,
    Record,
    decoded,
    size_of,
)
from harebell.server.cluster.link import Header, streams


class EventService:
    """Publishes what comes.

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
        self._events = events
        self._log = log
        self._flush = flush
        self._report = report
        self._tasks = BackgroundTasks()

    def serve(self, _header: Header, transport: asyncio.Transport) -> None:
        """Serve the connection of another owner."""
        self._tasks.start(self._publish(*streams(transport)))

    def close(self) -> None:
        """End all connections."""
        self._tasks.cancel()

    async def _send_bound(self, writer: asyncio.StreamWriter) -> None:
        """Let the other owner know what is bound, whenever that changes."""
        sent = -1
        while True:
            bound = EVENTS * self._events.bound + LINES * self._log.bound
            if bound != sent:
                sent = bound
                writer.write(bytes((bound,)))
            await asyncio.sleep(CLUSTER_EVENTS_SECONDS)

    async def _publish(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count = 0
        sending = None
        try:
            await reader.readexactly(len(BEGIN))
            sending = self._tasks.start(self._send_bound(writer))
            while True:
                size = size_of(await reader.readexactly(SIZE_BYTES))
                self._take(decoded(await reader.readexactly(size)))
                count += 1
                if count % CLUSTER_EVENTS_PER_TURN == 0:
                    await asyncio.sleep(0)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other broker has gone
        except ValueError as error:
            self._report("warning", f"cluster port: another owner sends {error}")
        finally:
            if sending is not None:
                sending.cancel()
            writer.close()

    def _take(self, record: Record) -> None:
        if record.kind == EVENTS:
            self._events.take(record.key, record.headers)
        else:
            self._log.take(record.key, record.body, str(record.headers.get("node", "")))
        self._flush()
