"""Time that passes only when a test advances it."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Awaitable, Callable

_NS_PER_MS = 1_000_000
_MS_PER_SECOND = 1_000


class _Call:
    """A scheduled call.

    Args:
        callback: what is called; None after it was cancelled.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call."""
        self.callback = None


class VirtualTime:
    """A `TimeSource` that stands still until `advance` moves it.

    It begins at the time of the machine, so that timestamps look as usual. All methods are called
    in the thread of the broker's event loop.

    Attributes:
        passed: seconds since the begin.
    """

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = time.monotonic()
        self._began_ms = time.time_ns() // _NS_PER_MS
        self._order = itertools.count()
        self._calls: list[tuple[float, int, _Call]] = []

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._began + self.passed

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return self._began_ms + int(self.passed * _MS_PER_SECOND)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Call:
        """Call back when that time has passed."""
        call = _Call(callback)
        due = self.passed + max(seconds, 0.0)
        heapq.heappush(self._calls, (due, next(self._order), call))
        return call

    async def advance(
        self,
        seconds: float,
        settle: Callable[[], Awaitable[None]],
        moved: Callable[[float], None],
    ) -> None:
        """Let time pass: every timer that becomes due runs at its own time, in order.

        Args:
            seconds: how long.
            settle: waits until the broker is idle.
            moved: called with each step of time, in seconds, before the timers of its end run.
        """
        until = self.passed + seconds
        await settle()
        while self._calls and self._calls[0][0] <= until:
            due, _, call = heapq.heappop(self._calls)
            if call.callback is None:
                continue
            moved(due - self.passed)
            self.passed = due
            call.callback()
            await settle()
        moved(until - self.passed)
        self.passed = until
        await settle()

    def forget(self) -> None:
        """Drop all scheduled calls: the broker that asked for them has ended."""
        self._calls.clear()
