"""The work budget: work done in a turn is counted, in units of about a microsecond.

A user may spend a number of units in a turn; then other users are served. Each frame is charged
when it is read. Work that costs more than an ordinary frame is charged where it is done:

    begin(4000) ... charge(25) ... charge(3) -> True: stop, continue in another turn ... end()

Units are estimates from counts alone, so tests split the same input at the same places. With a
clock the estimate is corrected from time to time, for operations that charge too little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.c_types import C, Done, i64
from harebell.base.limits import WORK_FRAME_UNITS, WORK_LOOK_UNITS

NO_LIMIT = 2**62
"""More units than are ever spent."""
_CHECK_UNITS: i64 = WORK_LOOK_UNITS
_FRAME_UNITS: i64 = WORK_FRAME_UNITS
_UNITS_PER_SECOND: C[float] = 1_000_000

Step = Callable[[], bool]
"""A step of a long operation: it works until `charge` returns True; returns True when done."""


def _at_once(step: Step) -> None:
    """Run the rest now: without turns there is nothing to wait for."""
    while not step():
        pass


class Work:
    """Counts work, and tells when the budget of the current user is used up.

    Args:
        clock: returns the time in seconds; None to count only what is charged.

    Attributes:
        spent: units since the start.
        check_at: the number of units at which `check` is called.
        ahead: a queue with consumers to which more was published lately than they have room for;
            None without one.
        later: runs the rest of a long operation in later turns, charged to the current user; at
            once if there are no turns.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._since = 0.0
        self._begun: i64 = 0
        self._stop_at: i64 = NO_LIMIT
        self.spent: i64 = 0
        self.check_at: i64 = NO_LIMIT
        self.ahead: Any = None
        self.later: Callable[[Step], None] = _at_once

    def begin(self, units: i64) -> Done:
        """Begin the turn of a user with a budget."""
        self._begun = self.spent
        self._stop_at = self.spent + units
        self.check_at = min(self._stop_at, self.spent + _CHECK_UNITS)
        if self._clock is not None:
            self._since = self._clock()
        return 0

    def end(self) -> i64:
        """End the turn; return the units spent."""
        self._correct()
        self._stop_at = self.check_at = NO_LIMIT
        return self.spent - self._begun

    def charge(self, units: i64) -> C[bool]:
        """Charge units; True if the rest of the work has to wait for another turn."""
        self.spent += units
        return self.spent >= self.check_at and self.check()

    def frame(self) -> C[bool]:
        """Charge a frame that was read; as `charge`."""
        self.spent += _FRAME_UNITS
        return self.spent >= self.check_at and self.check()

    def check(self) -> C[bool]:
        """Compare the estimate with the clock; True if the budget is used up."""
        self._correct()
        self.check_at = min(self._stop_at, self.spent + _CHECK_UNITS)
        return self.spent >= self._stop_at

    def _correct(self) -> Done:
        if self._clock is not None:
            now: float = self._clock()
            units: i64 = int((now - self._since) * _UNITS_PER_SECOND)
            if units > self.spent - self._begun:
                self.spent = self._begun + units
        return 0
