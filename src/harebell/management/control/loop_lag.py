"""Measure the delay of the event loop and the CPU time of its turns, on request."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from harebell.management.limits import LAG_STEP_SECONDS


class Lag(NamedTuple):
    """The largest delays of the event loop.

    Args:
        late: the largest delay of the timer, in seconds; no connection was served in that time.
        busy: the most CPU time of the thread between two timers, in seconds. On a busy machine it
            shows how much of the delay was caused by the broker itself.
    """

    late: float
    busy: float


async def longest_lag(seconds: float) -> Lag:
    """Measure the event loop for a time.

    A short timer is set repeatedly. Its delay is the duration of the turn that it had to wait for.
    Without a request there is no cost.
    """
    now, used = time.monotonic(), time.thread_time()
    until = now + seconds
    late = busy = 0.0
    while now < until:
        before, used_before = now, used
        await asyncio.sleep(LAG_STEP_SECONDS)
        now, used = time.monotonic(), time.thread_time()
        late = max(late, now - before - LAG_STEP_SECONDS)
        busy = max(busy, used - used_before)
    return Lag(late, busy)
