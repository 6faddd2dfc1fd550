"""Waiting for what happens in its own time, on machines that are slow or have other work.

A test never sleeps and hopes: it waits for what it wants to see, for as long as any machine may
need, and goes on as soon as it is there. So the time costs nothing where things go well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SECONDS = 60.0
"""How long anything may take that takes a moment on a machine with nothing else to do."""

_POLL_SECONDS = 0.01


def eventually(happened: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Whether it becomes true in time."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


async def reached(happened: Callable[[], object]) -> None:
    """Let the event loop run until it becomes true; raises TimeoutError if it never does."""
    async with asyncio.timeout(SECONDS):
        while not happened():
            await asyncio.sleep(_POLL_SECONDS)
