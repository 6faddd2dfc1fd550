"""The turns of a broker in its event loop: input, output, timers, ticks and deferred work.

A turn is one pass of the event loop. Every readable socket is read, the output is collected in the
buffers of the connections, and at the end of the turn each buffer is written once.

    receive     input of a connection        when its socket has been read
    flush       output of connections        at the end of a turn that made some
    next turn   work over a user's budget    in the turn after
    timers      such as message TTLs         when the next one is due
    tick        heartbeats and deadlines     every TICK_SECONDS, of the connections that are due
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base import limits as base_limits
from harebell.base.c_types import C, Cpdef, isize
from harebell.base.heap import read_buffer
from harebell.base.histogram import LAG_SECONDS, Histogram
from harebell.front.common.connection_registry import in_turns
from harebell.server import limits
from harebell.server.memory_tuning import collect_new
from harebell.server.time_source import BrokerClock

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
    from harebell.model.broker import Broker
    from harebell.server.disk.flusher import Flusher
    from harebell.server.disk.storage import Storage
    from harebell.server.time_source import Cancellable, TimeSource

_CLOCK_WRITES = 16
"""Connections that are written between two looks at the clock."""
_MS = 1_000


class EventTurns:
    """Runs what a broker does by itself in its event loop.

    Args:
        loop: the event loop.
        time_source: the clocks.
        broker: its timers, its failures and its deferred work.
        registry: its connections.
        storage: its clock.
        overdue: the deadlines of acknowledgements.
        log: takes a level and a line.
        periodic: called once per tick, with the time, after the connections were checked.

    Attributes:
        read_buffer: every socket is read into it; its content is consumed before the next read.
        small_buffer: its first SMALL_READ_BYTES.
        paced_buffer: a longer begin, for publishers that are slowed down.
        flusher: commits what the turns have written; None until the broker is restored.
        forbids_output: whether nothing may be sent, as another broker can own the store.
        lag: by how many seconds ticks were late.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        time_source: TimeSource,
        broker: Broker,
        registry: ConnectionRegistry,
        storage: Storage,
        overdue: DeliveryAckTimeout,
        log: Callable[[str, str], object],
        periodic: Callable[[float], None],
    ) -> None:
        self._loop = loop
        self._time = time_source
        self._clock = time_source.monotonic
        self._broker = broker
        self._registry = registry
        self._wall: BrokerClock = storage.wall
        self._overdue = overdue
        self._log = log
        self._periodic = periodic
        self._timers = broker.timers
        self._alarm: Cancellable | None = None
        self._flushing = False
        self._ticking: Cancellable | None = None
        self._tick_due = 0.0
        self.read_buffer = read_buffer(base_limits.READ_BUFFER_BYTES)
        self.small_buffer = self.read_buffer[: limits.SMALL_READ_BYTES]
        self.paced_buffer = self.read_buffer[: limits.PACE_READ_BYTES]
        self.flusher: Flusher | None = None
        self.forbids_output: Callable[[], bool] | None = None
        self.lag = Histogram(LAG_SECONDS)

    def start(self) -> None:
        """Run timers and ticks from now on."""
        self._timers.wake = self._wake_at
        self._wake_at(self._timers.due)
        self._look_at_commits()
        self._tick_later()

    def stop(self) -> None:
        """Run no more timers and ticks."""
        for handle in (self._ticking, self._alarm):
            if handle is not None:
                handle.cancel()

    # --- input ------------------------------------------------------------------------------------

    def buffer(self, is_open: bool, outruns: bool) -> C[memoryview]:
        """Return the buffer for a read.

        If users are waiting for a turn, input may have to be copied and kept, so reads are small.
        That is so as well before a connection is open: it may wait for the login.

        Args:
            is_open: whether the connection is open.
            outruns: as in `BaseConnection`.
        """
        if is_open and not self._registry.turns.crowded:
            return self.paced_buffer if outruns else self.read_buffer
        return self.small_buffer

    def receive(self, connection: BaseConnection, byte_count: isize) -> C[None]:
        """Pass the bytes that were read to their connection, and write what it answers."""
        now: float = self._wall.read()
        if self._timers.due <= self._wall.steady:
            self.run_due()
        connection.receive(self.read_buffer[:byte_count], now)
        if self._registry.dirty:
            self.flush()
        else:
            self._look_at_commits()

    # --- output -----------------------------------------------------------------------------------

    def flush_soon(self) -> C[None]:
        """Schedule `flush` for the end of this turn."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.flush()

    def flush(self) -> C[None]:
        """Write every connection that has output; new output is written in the next turn."""
        if self.forbids_output is not None and self.forbids_output():
            return
        now: float = self._clock()
        registry = self._registry
        registry.publishers.relieve()
        self._look_at_commits()
        if registry.held_credit.links:
            registry.held_credit.look()
        dirty = in_turns(registry.take_dirty())
        until: float = time.monotonic() + limits.WRITE_TURN_SECONDS
        index: isize
        for index, connection in enumerate(dirty):
            transport = connection.transport
            if transport is not None:
                try:
                    transport.flush(now)
                except Exception as error:  # others have output, too
                    self._broker.failures.caught(transport.flush, error)
            if index % _CLOCK_WRITES == _CLOCK_WRITES - 1 and time.monotonic() > until:
                registry.dirty_again(dirty[index + 1 :])
                break
        if registry.dirty:
            self.flush_soon()

    def _look_at_commits(self) -> C[None]:
        # A start that fails has none yet, but its last lines are still published as messages, which
        # asks for a turn.
        if self.flusher is not None:
            self.flusher.look()

    def committed(self) -> None:
        """A commit is on disk: send the confirms and answers that waited for it."""
        turns = self._registry.turns
        turns.begin_anyway(turns.own)
        try:
            self._broker.committed()
        finally:
            turns.end()
        self.flush()

    # --- deferred work ----------------------------------------------------------------------------

    def turn_soon(self) -> None:
        """Schedule the deferred work for the next turn."""
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._wall.read()
        turns = self._registry.turns
        crowded = turns.busy
        try:
            turns.next_turn()
        finally:
            if crowded:
                collect_new()
            self.flush()

    # --- timers -----------------------------------------------------------------------------------

    def run_due(self) -> C[None]:
        """Run the due timers within the work budget of this turn."""
        turns = self._registry.turns
        if turns.begin(turns.own):
            try:
                self._timers.run()
            finally:
                turns.end()

    def _wake_at(self, due: int) -> None:
        """Schedule the timers for `due`; the tick runs those that are further away."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay = (due - self._wall.steady) / _MS
        self._alarm = None
        if delay < limits.TICK_SECONDS * 2:
            self._alarm = self._time.call_later(max(delay, 0.0), self._run_timers)

    def _run_timers(self) -> None:
        self._wall.read()
        self.run_due()
        self._wake_at(self._timers.due)
        if self._registry.dirty:
            self.flush_soon()
        self._look_at_commits()

    # --- ticks ------------------------------------------------------------------------------------

    def _tick_later(self) -> None:
        self._tick_due = self._clock() + limits.TICK_SECONDS
        self._ticking = self._time.call_later(limits.TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = self._wall.read()
        late = max(now - self._tick_due, 0.0)
        # First: whatever a part of this tick raises, there is another tick.
        self._tick_later()
        self.lag.observe(late)
        if late > base_limits.TICK_LATE_SECONDS:
            self._excuse(late)
        self._tick_connections(self._registry.look_times.due(now), now)
        self._periodic(now)
        self._wake_at(self._timers.due)
        if self._registry.dirty:
            self.flush_soon()
        if self.flusher is not None:
            self.flusher.tick()
        self._look_at_commits()

    def _tick_connections(self, connections: list[BaseConnection], now: float) -> Cpdef[None]:
        """Check heartbeats and deadlines, those of many connections in several turns."""
        look_times = self._registry.look_times
        connection: BaseConnection
        for connection in connections[: limits.CONNECTIONS_PER_TURN]:
            try:
                connection.tick(now)
                look_times.set(connection.place, connection.next_look())
            except Exception as error:  # others have deadlines, too
                self._broker.failures.caught(connection.tick, error)
        rest = connections[limits.CONNECTIONS_PER_TURN :]
        if rest:
            self._loop.call_soon(self._tick_connections, rest, now)
        if self._registry.dirty:
            self.flush_soon()

    def _excuse(self, late: float) -> None:
        """Extend heartbeat and acknowledgement deadlines after the process was stopped or starved.

        Frames that the peers sent meanwhile are still unread in the sockets.
        """
        self._log("warning", f"the broker stood still for {late:.1f} s")
        for connection in self._registry.connections:
            connection.excuse(late)
        self._overdue.excuse(late)
