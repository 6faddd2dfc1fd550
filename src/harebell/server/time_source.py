"""Where a broker has the time from: the clocks of the machine, or those of a test.

What a client can notice of time goes through a `TimeSource`: message TTLs, delays, retries, leases,
heartbeats, and the age of connections. Budgets of a turn and writes to disk use the clocks of the
machine in any case.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from harebell.base.c_types import C, i64
from harebell.base.clock import Clock

_MS: C[float] = 1_000.0


class Cancellable(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Do not call."""


class TimeSource(Protocol):
    """The clocks of a broker, and calls at a later time."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Cancellable:
        """Call back after a time, in the thread of the event loop."""


class MachineTime:
    """The clocks of the machine, and timers of the event loop."""

    def monotonic(self) -> C[float]:
        """Return the monotonic clock in seconds."""
        return time.monotonic()

    def wall_ms(self) -> i64:
        """Return the wall clock in milliseconds since 1970."""
        seconds: float = time.time()
        return int(seconds * _MS)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Cancellable:
        """Call back from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class BrokerClock(Clock):
    """The clock of a broker's messages, which is read once per turn.

    Args:
        source: the clocks.
    """

    def __init__(self, source: TimeSource) -> None:
        super().__init__(source.wall_ms())
        self._source = source
        # These are asked once for every read of a socket: without the calls in between.
        self._of_machine = type(source) is MachineTime
        # What `steady` is ahead of the monotonic clock: at the start it shows the wall clock.
        self._passed: i64 = self.ms - int(source.monotonic() * _MS)

    def read(self) -> C[float]:
        """Set both readings; return the monotonic clock in seconds."""
        now: float
        if self._of_machine:
            seconds: float = time.time()
            now = time.monotonic()
            self.ms = int(seconds * _MS)
        else:
            now = self._source.monotonic()
            self.ms = self._source.wall_ms()
        passed: i64 = int(now * _MS)
        self.steady = self._passed + passed
        return now
