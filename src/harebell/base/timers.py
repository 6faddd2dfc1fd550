"""Timers: who is to be woken when, without a clock of their own.

The shell sets the clock and calls `run` when `due` has come; until then a timer costs nothing. A
timer that is moved or stopped leaves its old entry in the heap, which is passed over later:

    heap     (12:00:01 a) (12:00:02 b, moved since) (12:00:07 c) ...
    due       12:00:01
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from harebell.base.clock import Clock
from harebell.base.work import Work

NEVER = 2**62
"""Later than everything, in milliseconds."""
_SLACK = 64


def _nobody(due: int) -> None:
    """Ignore when the next timer is due."""


class Timer:
    """Calls once when its time has come, and may be set again then.

    Args:
        timers: those that it belongs to.
        call: what to do.

    Attributes:
        due: when, in milliseconds of the clock that never jumps; NEVER while it is off.
    """

    __slots__ = ("_timers", "call", "due")

    def __init__(self, timers: Timers, call: Callable[[], None]) -> None:
        self._timers = timers
        self.call = call
        self.due = NEVER

    def set(self, due: int) -> None:
        """Call at this time, and at no other."""
        if due != self.due:
            self.due = due
            self._timers.add(self, due)

    def set_earlier(self, due: int) -> None:
        """Call at this time unless that is to happen earlier anyway."""
        if due < self.due:
            self.due = due
            self._timers.add(self, due)

    def stop(self) -> None:
        """Do not call."""
        self.due = NEVER


class Timers:
    """All timers of a broker.

    Args:
        clock: tells the time.
        work: counts what is done; of the broker.

    Attributes:
        clock: as given.
        work: as given.
        due: when the next timer is due, or an entry that was left behind; NEVER without any.
        wake: called with the time whenever `due` becomes earlier.
    """

    def __init__(self, clock: Clock, work: Work | None = None) -> None:
        self.clock = clock
        self.work = Work() if work is None else work
        self.due = NEVER
        self.wake: Callable[[int], None] = _nobody
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._most = _SLACK

    def timer(self, call: Callable[[], None]) -> Timer:
        """A timer that is off."""
        return Timer(self, call)

    def add(self, timer: Timer, due: int) -> None:
        """Note when a timer is due; for `Timer`."""
        self._number += 1
        heappush(self._heap, (due, self._number, timer))
        if len(self._heap) > self._most:
            self._tidy()
        if due < self.due:
            self.due = due
            self.wake(due)

    def run(self) -> None:
        """Call every timer whose time has come; those that are set again wait for the next run.

        So do those that are left when the budget of work is spent.
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
        for at, (_, timer) in enumerate(ripe):
            timer.call()
            if self.work.charge(1):
                for due, late in ripe[at + 1 :]:
                    # Before those that were called and are due again: they would be the first for
                    # ever, and spend the budget every time.
                    late.set_earlier(min(due, now - 1))
                break

    def _tidy(self) -> None:
        """Throw out what was left behind, before it is more than what counts."""
        self._heap = [entry for entry in self._heap if entry[2].due == entry[0]]
        heapify(self._heap)
        self._most = 2 * len(self._heap) + _SLACK
