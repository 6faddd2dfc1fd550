"""Look at the broker at every multiple of a few seconds, within the work budget of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from harebell.base.slices import Slices, stepped

if TYPE_CHECKING:
    from harebell.front.common.turns import Turns

_MS = 1_000
_LATE_MS = 5
"""By how much a pass is later than a multiple, so that no timer runs before it."""


class Looks(Protocol):
    """What looks at the broker: a `Sampler`, or a `Watch`."""

    @property
    def every_ms(self) -> int:
        """Milliseconds between two looks; 0 for none."""

    def take(self, now: int) -> Slices[None]:
        """Look at the broker, now in milliseconds since 1970."""


class Sampling:
    """The passes of what looks at the broker.

    Args:
        loop: the event loop.
        now: returns milliseconds since 1970, exactly.
        turns: the work budgets.
        units: the cost of one slice in units of work.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now: Callable[[], int], turns: Turns, units: int
    ) -> None:
        self._loop = loop
        self._now = now
        self._turns = turns
        self._units = units
        self._looks: Looks | None = None
        self._next: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Whether there are looks."""
        return self._next is not None

    def start(self, looks: Looks) -> None:
        """Look now, and again regularly, if that is wanted."""
        if not self.runs and looks.every_ms:
            self._looks = looks
            self._pass()

    def stop(self) -> None:
        """Look no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _pass(self) -> None:
        assert self._looks is not None, "only `start` schedules a pass"
        now = self._now()
        interval = max(self._looks.every_ms, 1)
        delay = (interval - now % interval + _LATE_MS) / _MS
        self._next = self._loop.call_later(delay, self._pass)
        turns = self._turns
        step = stepped(self._looks.take(now), turns.work, self._units, bool)
        turns.begin_anyway(turns.own)
        try:
            if not step():
                turns.later(step)
        finally:
            turns.end()
