"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time

import pytest

from harebell.management.control.loop_lag import longest_lag


@pytest.mark.asyncio
async def test_a_turn_that_takes_long_is_seen() -> None:
    watching = asyncio.create_task(longest_lag(0.5))
    # Its first timer runs from here on, so this turn is measured however late the machine is.
    await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251 - the turn that nobody else gets
    assert (await watching).late >= 0.15


@pytest.mark.asyncio
async def test_a_turn_that_computes_is_told_from_one_that_waits() -> None:
    watching = asyncio.create_task(longest_lag(1.0))
    await asyncio.sleep(0)
    time.sleep(0.3)  # noqa: ASYNC251 - the turn that nobody else gets
    begin = time.thread_time()
    while time.thread_time() < begin + 0.1:
        pass
    found = await watching
    assert found.late >= 0.35
    assert 0.1 <= found.busy < 0.3
