"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time

import pytest

from harebell.server.lag import longest_lag


@pytest.mark.asyncio
async def test_a_turn_that_takes_long_is_seen() -> None:
    watching = asyncio.create_task(longest_lag(0.5))
    await asyncio.sleep(0.05)
    time.sleep(0.2)  # noqa: ASYNC251 - the turn that nobody else gets
    assert await watching >= 0.15
