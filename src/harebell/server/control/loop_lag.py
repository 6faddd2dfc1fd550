"""Measure how late the event loop is, and how long its turns compute, on request."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from harebell.base.limits import LAG_STEP_SECONDS


class Lag(NamedTuple):
    """What was seen of the loop.

    Args:
        late: the most by which it was late, in seconds: nobody was served for that long.
        busy: the most CPU time that it used between two looks, in seconds. Where other processes
            keep the machine busy it says how much of the lateness is the broker's own.
    """

    late: float
    busy: float


async def longest_lag(seconds: float) -> Lag:
    """Watch the loop for a time.

    A timer is set again and again. What it is late by is what the turn took that it had to wait
    for. It costs nothing without a request.
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
