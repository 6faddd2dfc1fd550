"""End the service of an owner in time: before another broker can own the store.

A broker that has lost its store knows nothing for sure any more: what it holds in memory may be
older than what the new owner does. So it closes its connections with 320, and the process begins
anew, with the same process id, as a standby.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from harebell.server.net.handed_sockets import HandedSockets, kept
from harebell.server.postgresql.ownership import Ownership, now

STANDBY_VARIABLE = "_HAREBELL_STANDS_BY"
"""The variable of a process that has begun anew: it waits for the server as long as it takes."""
_LOOKS = 30
"""Looks at the lease per lease."""
_MS = 1_000


class Served(Protocol):
    """The parts of a broker that are ended: see `harebell.server.app.App`."""

    loop: asyncio.AbstractEventLoop
    logger: Any
    listeners: list[Any]
    http_listeners: list[Any]
    registry: Any

    async def close_connections(self, reason: str) -> None:
        """Close every connection with a reason."""


class Fence:
    """Watches the lease of an owner.

    Args:
        app: the broker.
        ownership: its lease.
        lease_ms: the milliseconds of the lease.
        leave: ends the process; it may start again.
    """

    def __init__(
        self,
        app: Served,
        ownership: Ownership,
        lease_ms: int,
        leave: Callable[[HandedSockets], object],
    ) -> None:
        self._app = app
        self._ownership = ownership
        self._seconds = lease_ms / _MS / _LOOKS
        self._leave = leave
        self._ending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look at the lease from now on."""
        self._timer = self._app.loop.call_later(self._seconds, self._look)

    def stop(self) -> None:
        """Look no more: the broker ends in good order."""
        if self._timer is not None:
            self._timer.cancel()

    def forbids_output(self) -> bool:
        """True if nothing may be written to clients; ends the service then."""
        if self._ownership.holds():
            return False
        self.step_down(self._ownership.lost or "the lease is over")
        return True

    def step_down(self, reason: str) -> None:
        """Close everything, and begin anew as a standby."""
        if self._ending is not None:
            return
        app = self._app
        self.stop()
        app.logger.write(
            "error", f"this broker does not own the store any more, and stands by: {reason}"
        )
        sockets = kept(app.listeners, app.http_listeners)
        for listener in app.listeners:
            listener.server.close()
        app.listeners = []
        self._ending = app.loop.create_task(self._end(sockets))

    def _look(self) -> None:
        lost = self._ownership.lost
        if lost or now() >= self._ownership.closes_at:
            self.step_down(lost or "its lease could not be renewed")
            return
        self.start()

    async def _end(self, sockets: HandedSockets) -> None:
        """Close connections while the lease lasts; cut them when it is over."""
        app, left = self._app, self._ownership.ends_at - now()
        if left > 0 and not self._ownership.lost:
            closing: Coroutine[Any, Any, None] = app.close_connections(
                "the store has another owner: connect again"
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(closing, left)
        for connection in list(app.registry.connections):
            if connection.transport is not None:
                connection.transport.abort()
        app.logger.close()
        self._leave(sockets)


def restart_process(sockets: HandedSockets) -> None:
    """Replace the process by a new one with the same arguments.

    Args:
        sockets: go on listening; clients that come meanwhile wait in their backlogs.
    """
    os.environ[STANDBY_VARIABLE] = "1"
    sockets.bequeath(os.environ)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  # itself
