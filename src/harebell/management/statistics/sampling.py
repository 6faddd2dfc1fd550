"""Run the sampler at every multiple of a few seconds, within the work budget of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.slices import stepped
from harebell.front.limits import STATISTICS_SLICE_OBJECTS

if TYPE_CHECKING:
    from harebell.front.common.turns import Turns
    from harebell.management.statistics.sampler import Sampler

_UNITS = STATISTICS_SLICE_OBJECTS // 2
"""The cost of a slice in units of work: half a microsecond for each object."""

_MS = 1_000
_LATE_MS = 5
"""By how much a pass is later than a multiple, so that no timer runs before it."""


class Sampling:
    """The passes of a sampler.

    Args:
        loop: the event loop.
        now: returns milliseconds since 1970, exactly.
        turns: the work budgets.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now: Callable[[], int], turns: Turns
    ) -> None:
        self._loop = loop
        self._now = now
        self._turns = turns
        self._sampler: Sampler | None = None
        self._next: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Whether samples are taken."""
        return self._next is not None

    def start(self, sampler: Sampler) -> None:
        """Take the first sample now, and further ones regularly, if any are wanted."""
        if not self.runs and sampler.plan.samples:
            self._sampler = sampler
            self._pass()

    def stop(self) -> None:
        """Take no more samples."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _pass(self) -> None:
        assert self._sampler is not None, "only `start` schedules a pass"
        now = self._now()
        interval = max(round(self._sampler.plan.seconds * _MS), 1)
        delay = (interval - now % interval + _LATE_MS) / _MS
        self._next = self._loop.call_later(delay, self._pass)
        turns = self._turns
        step = stepped(self._sampler.take(now), turns.work, _UNITS, bool)
        turns.begin_anyway(turns.own)
        try:
            if not step():
                turns.later(step)
        finally:
            turns.end()
