"""Timers below the waterline, without a clock of their own.

The server sets the clock and calls `run` at `due`; until then a timer costs nothing. A timer whose
function raises is due again a little later, and the others are called all the same. A timer that
is moved or stopped leaves its old entry in the heap, which is skipped later:

    heap     (12:00:01 a) (12:00:02 b, moved since) (12:00:07 c) ...
    due       12:00:01
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from harebell.base.clock import Clock
from harebell.base.failures import Failures
from harebell.base.limits import TIMER_AGAIN_MS
from harebell.base.work import Work

NEVER = 2**62
"""A time later than all others, in milliseconds."""
_SLACK = 64


def _no_wake(due: int) -> None:
    """Ignore when the next timer is due."""


class Timer:
    """A timer that calls a function once; it may be set again.

    Args:
        timers: the timers it belongs to.
        call: the function.

    Attributes:
        due: when, in milliseconds of the monotonic clock; NEVER while it is off.
    """

    __slots__ = ("_timers", "call", "due")

    def __init__(self, timers: Timers, call: Callable[[], None]) -> None:
        self._timers = timers
        self.call = call
        self.due = NEVER

    def set(self, due: int) -> None:
        """Set the timer to this time only."""
        if due != self.due:
            self.due = due
            self._timers.add(self, due)

    def set_earlier(self, due: int) -> None:
        """Set the timer to this time unless it is due earlier."""
        if due < self.due:
            self.due = due
            self._timers.add(self, due)

    def stop(self) -> None:
        """Stop the timer."""
        self.due = NEVER


class Timers:
    """All timers of a broker.

    Args:
        clock: tells what is due, by its monotonic time.
        work: the work budget of the broker.
        failures: counts functions that raise.

    Attributes:
        clock: as given.
        work: as given.
        failures: as given.
        due: when the next timer or stale entry is due; NEVER without any.
        wake: called with the time whenever `due` becomes earlier.
    """

    def __init__(
        self, clock: Clock, work: Work | None = None, failures: Failures | None = None
    ) -> None:
        self.clock = clock
        self.failures = Failures() if failures is None else failures
        self.work = Work() if work is None else work
        self.due = NEVER
        self.wake: Callable[[int], None] = _no_wake
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._limit = _SLACK

    def timer(self, call: Callable[[], None]) -> Timer:
        """Return a timer that is off."""
        return Timer(self, call)

    def add(self, timer: Timer, due: int) -> None:
        """Add an entry to the heap; for `Timer`."""
        self._number += 1
        heappush(self._heap, (due, self._number, timer))
        if len(self._heap) > self._limit:
            self._tidy()
        if due < self.due:
            self.due = due
            self.wake(due)

    def run(self) -> None:
        """Call all timers that are due; those that are set again wait for the next run.

        So do the rest when the work budget is used up.
        """
        now = self.clock.steady
        heap = self._heap
        ripe = []
        while heap and heap[0][0] <= now:
            due, _, timer = heappop(heap)
            if timer.due == due:
                timer.due = NEVER
                ripe.append((due, timer))
        self.due = heap[0][0] if heap else NEVER
        at = 0
        try:
            while at < len(ripe):
                timer = ripe[at][1]
                at += 1
                if not self.failures.guard(timer.call):
                    # What it works for waits no longer than necessary, whatever it has done.
                    timer.set_earlier(now + TIMER_AGAIN_MS)
                if self.work.charge(1):
                    break
        finally:
            for due, late in ripe[at:]:
                # Before those that were called and are due again: they would be first for ever,
                # and use up the budget every time.
                late.set_earlier(min(due, now - 1))

    def _tidy(self) -> None:
        """Remove stale entries before they are more than the others."""
        self._heap = [entry for entry in self._heap if entry[2].due == entry[0]]
        heapify(self._heap)
        self._limit = 2 * len(self._heap) + _SLACK
