"""Alarms: what is short, so that publishers wait, and since when.

The log, the events, the HTTP API and the web interface tell of every alarm, whatever is short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.front.common.blocked_publishers import DISK, FILES, MEMORY, Alarm
from harebell.front.common.connection_registry import ConnectionRegistry

if TYPE_CHECKING:
    from harebell.model.broker import Broker
    from harebell.server.disk.flusher import Flusher
    from harebell.server.disk.storage import Storage


class Alarms:
    """Blocks publishers while something is short, and notes when each alarm begins and ends.

    Args:
        broker: gets the events, and has the memory gauge and the clock.
        registry: knows what is short, and gets the alarms.
        storage: knows the room on the disk.
        flusher: commits staged batches only while there is room for them.
        write: writes a log line of a level.
    """

    def __init__(
        self,
        broker: Broker,
        registry: ConnectionRegistry,
        storage: Storage,
        flusher: Flusher,
        write: Callable[[str, str], object],
    ) -> None:
        self._broker = broker
        self._registry = registry
        self._storage = storage
        self._flusher = flusher
        self._write = write

    def look(self) -> None:
        """Block or unblock publishers; note which alarms began or ended since the last call."""
        self._flusher.set_low(self._broker.stages.set_low(self._storage.low()))
        self._registry.publishers.relieve()
        alarms, short = self._registry.publishers.alarms, self._registry.publishers.short_of()
        for what in sorted(short - alarms.keys()):
            about = self._about(what)
            alarms[what] = Alarm(self._broker.clock.ms, about)
            self._write("warning", f"{what} is short, publishers wait: {about}")
        for what in sorted(alarms.keys() - short):
            del alarms[what]
            self._write("info", f"{what} is no longer short: {self._about(what)}")
        self._broker.events.alarms(short)

    def _about(self, what: str) -> str:
        """Describe how much there is of something, and its limit."""
        gauge = self._broker.gauge
        return {
            MEMORY: (
                f"the process uses {gauge.resident()} bytes, {gauge.used} of them for messages, "
                f"memory_high_watermark is {gauge.high}"
            ),
            DISK: self._storage.room(),
            FILES: "raise the limit of open files and sockets (ulimit -Hn)",
        }[what]
