"""Work has a budget: what is done in a turn is counted, in units of about a microsecond.

The user who is served may spend so many units; then the others have their turn. A frame that is
read counts by itself. What costs more than an ordinary frame is charged where it is done:

    begin(4000) ... charge(25) ... charge(3) -> True: stop here, go on in another turn ... end()

Units are estimates, made of counts alone, so the same input is cut at the same places in every
test. A shell that passes a clock has the estimate corrected by it every now and then: an operation
that charges too little is paid for, too.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.limits import WORK_FRAME_UNITS, WORK_LOOK_UNITS

NO_LIMIT = 2**62
"""More units than are ever spent."""
_LOOK_UNITS = WORK_LOOK_UNITS
_FRAME_UNITS = WORK_FRAME_UNITS
_UNITS_PER_SECOND = 1_000_000

Step = Callable[[], bool]
"""A slice of a long operation: it works until `charge` says to stop; True when all is done."""


def _at_once(step: Step) -> None:
    """Without turns there is nothing to wait for."""
    while not step():
        pass


class Work:
    """Counts what is done, and knows when the budget of the user who is served is spent.

    Args:
        clock: the time in seconds; without it only what is charged counts.

    Attributes:
        spent: units, since the start.
        look_at: at so many units `look` has something to decide.
        later: has the rest of a long operation done in the coming turns, on the account of the user
            who is served now; at once where there are no turns.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._since = 0.0
        self._begun = 0
        self._stop_at = NO_LIMIT
        self.spent = 0
        self.look_at = NO_LIMIT
        self.later: Callable[[Step], None] = _at_once

    def begin(self, units: int) -> int:
        """Begin to serve a user who may spend so many units."""
        self._begun = self.spent
        self._stop_at = self.spent + units
        self.look_at = min(self._stop_at, self.spent + _LOOK_UNITS)
        if self._clock is not None:
            self._since = self._clock()
        return 0

    def end(self) -> int:
        """It is over for now; returns what was spent."""
        self._correct()
        self._stop_at = self.look_at = NO_LIMIT
        return self.spent - self._begun

    def charge(self, units: int) -> bool:
        """Count what was done; True when the rest has to wait for another turn."""
        self.spent += units
        return self.spent >= self.look_at and self.look()

    def frame(self) -> bool:
        """The same for a frame that was read."""
        self.spent += _FRAME_UNITS
        return self.spent >= self.look_at and self.look()

    def look(self) -> bool:
        """Compare the estimate with the clock; True when the budget is spent."""
        self._correct()
        self.look_at = min(self._stop_at, self.spent + _LOOK_UNITS)
        return self.spent >= self._stop_at

    def _correct(self) -> int:
        if self._clock is not None:
            passed = self._begun + int((self._clock() - self._since) * _UNITS_PER_SECOND)
            if passed > self.spent:
                self.spent = passed
        return 0
