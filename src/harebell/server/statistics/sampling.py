"""Run the sampler every few seconds, within the work budget of a turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harebell.base.clock import Clock
from harebell.base.limits import STATISTICS_SLICE_OBJECTS
from harebell.base.slices import stepped

if TYPE_CHECKING:
    from harebell.front.common.turns import Turns
    from harebell.server.statistics.sampler import Sampler

_UNITS = STATISTICS_SLICE_OBJECTS // 2
"""The cost of a slice in units of work: half a microsecond for each object."""


class Sampling:
    """The passes of a sampler.

    Args:
        loop: the event loop.
        clock: the clock of the broker.
        turns: the work budgets.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, turns: Turns) -> None:
        self._loop = loop
        self._clock = clock
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
        self._next = self._loop.call_later(self._sampler.plan.seconds, self._pass)
        turns = self._turns
        step = stepped(self._sampler.take(self._clock.ms), turns.work, _UNITS, bool)
        turns.begin_anyway(turns.own)
        try:
            if not step():
                turns.later(step)
        finally:
            turns.end()
