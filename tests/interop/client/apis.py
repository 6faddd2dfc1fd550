"""One way to write a test for both APIs of the client.

`do` waits for what a verb returns: it awaits what the asyncio API gives, and takes what the
blocking API gives as it is. Everything else about a test is then the same.
"""

from __future__ import annotations

import inspect
import time
from typing import Any
from uuid import uuid4

from harebell.client import aio, blocking
from harebell.client.errors import AMQPError
from tests.patience import SECONDS

QUIET_SECONDS = 0.4
"""How long a consumer is listened to that should not get any more."""


async def do(result: Any) -> Any:
    """The answer of a verb of either API."""
    if isinstance(result, blocking.PendingConfirm):
        return result.wait()
    if inspect.isawaitable(result):
        return await result
    return result


async def take(consumer: Any, limit: int | None = None) -> list[Any]:
    """Messages of a consumer of either API: until it ends, or so many."""
    taken: list[Any] = []
    if limit == 0:
        return taken
    if isinstance(consumer, aio.Consumer):
        async for message in consumer:
            taken.append(message)
            if len(taken) == limit:
                break
    else:
        for message in consumer:
            taken.append(message)
            if len(taken) == limit:
                break
    return taken


async def take_just(consumer: Any, count: int) -> list[Any]:
    """So many messages of a consumer of either API, after which no more come for a while."""
    consumer._idle_seconds = SECONDS
    taken = await take(consumer, count)
    consumer._idle_seconds = QUIET_SECONDS
    return taken + await take(consumer)


async def pause(connection: Any, seconds: float) -> None:
    """Let time pass while the connection is served."""
    if isinstance(connection, aio.Connection):
        import asyncio

        await asyncio.sleep(seconds)
        return
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        connection.pump(left)


def unique(prefix: str = "q") -> str:
    """A name that no other test uses."""
    return f"{prefix}-{uuid4().hex[:12]}"


class Api:
    """The asyncio or the blocking API.

    Args:
        name: asyncio or blocking.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._connections: list[Any] = []

    async def connect(self, url: str, **options: Any) -> Any:
        """A connection that is closed after the test."""
        module = aio if self.name == "asyncio" else blocking
        connection = await do(module.connect(url, **options))
        self._connections.append(connection)
        return connection

    async def channel(self, url: str, **options: Any) -> Any:
        """A channel on a connection of its own."""
        connection = await self.connect(url)
        return await do(connection.channel(**options))

    async def close(self) -> None:
        """Close what the test has left open."""
        for connection in self._connections:
            try:
                await do(connection.close())
            except AMQPError:
                # The test may have killed the broker under it.
                continue
