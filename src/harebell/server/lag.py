"""How late the event loop is: the longest time that one of its turns took, while somebody asks."""

from __future__ import annotations

import asyncio
import time

from harebell.base.limits import LAG_STEP_SECONDS


async def longest_lag(seconds: float) -> float:
    """Watch the loop for a time: the most by which it was late, in seconds.

    A timer is set again and again. What it is late by is what the turn took that it had to wait
    for: nobody was served meanwhile. It costs nothing when nobody asks.
    """
    now = time.monotonic()
    until = now + seconds
    longest = 0.0
    while now < until:
        before = now
        await asyncio.sleep(LAG_STEP_SECONDS)
        now = time.monotonic()
        longest = max(longest, now - before - LAG_STEP_SECONDS)
    return longest
