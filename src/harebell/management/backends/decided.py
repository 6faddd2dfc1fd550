"""Run a command that may need decisions about permissions which are not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harebell.auth.authority import Undecided
from harebell.auth.users import User

_T = TypeVar("_T")


async def decided(user: User, run: Callable[[], Awaitable[_T]]) -> _T:
    """Run something, again after each decision that it needs; nothing is done before the check.

    Args:
        user: whose permissions are checked.
        run: runs it from the start.
    """
    try:
        while True:
            try:
                return await run()
            except Undecided as undecided:
                there = asyncio.Event()
                undecided.ask(there.set)
                await there.wait()
    finally:
        user.settled()
