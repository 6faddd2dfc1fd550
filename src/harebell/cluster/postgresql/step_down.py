"""End the service of an owner in time: before another broker can own the store.

    lease   |--------------- the owner serves --------------| closing |
            renewed                                  closes_at    ends_at: another may own the store

The memory of a broker that has lost its store may be older than the store of the new owner. So the
broker closes its connections with 320, and the process starts again, with the same process id, as a
standby. The fence itself is in the database, which refuses writes of an old owner by their epoch:
see `fenced_log_writer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from harebell.cluster.postgresql.ownership import Ownership, now
from harebell.server.net.handed_sockets import HandedSockets, kept

STANDBY_VARIABLE = "_HAREBELL_STANDS_BY"
"""The variable of a process that has begun anew: it waits for the server as long as it takes."""
_CHECKS = 30
"""Lease checks per lease duration."""
_MS = 1_000


class FencedApp(Protocol):
    """The parts of a broker that are ended: see `harebell.server.app.App`."""

    loop: asyncio.AbstractEventLoop
    logger: Any
    listeners: list[Any]
    http_listeners: list[Any]
    registry: Any

    async def close_connections(self, reason: str) -> None:
        """Close every connection with a reason."""


class StepDown:
    """Watches the lease of an owner, and ends its service when the lease is lost.

    Args:
        app: the broker.
        ownership: its lease.
        lease_ms: the milliseconds of the lease.
        leave: ends the process; it may start again.
    """

    def __init__(
        self,
        app: FencedApp,
        ownership: Ownership,
        lease_ms: int,
        leave: Callable[[HandedSockets], object],
    ) -> None:
        self._app = app
        self._ownership = ownership
        self._seconds = lease_ms / _MS / _CHECKS
        self._leave = leave
        self._ending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check the lease from now on."""
        self._timer = self._app.loop.call_later(self._seconds, self._check)

    def stop(self) -> None:
        """Stop checking: the broker ends in good order."""
        if self._timer is not None:
            self._timer.cancel()

    def forbids_output(self) -> bool:
        """True if nothing may be written to clients; ends the service then.

        Called before each write: a process that was suspended beyond its lease must not confirm a
        message when it goes on, and its timer may come later than the output.
        """
        if self._ownership.holds():
            return False
        self.begin(self._ownership.lost or "the lease is over")
        return True

    def begin(self, reason: str) -> None:
        """Close everything, and begin anew as a standby."""
        if self._ending is not None:
            return
        app = self._app
        self.stop()
        app.logger.write(
            "error", f"this broker does not own the store any more, and stands by: {reason}"
        )
        # The sockets stay open over the restart: clients that connect wait in their backlogs.
        sockets = kept(app.listeners, app.http_listeners)
        for listener in app.listeners:
            listener.server.close()
        app.listeners = []
        self._ending = app.loop.create_task(self._end(sockets))

    def _check(self) -> None:
        # The next check is scheduled first, so that an error here does not end the checks.
        self.start()
        lost = self._ownership.lost
        if lost or now() >= self._ownership.closes_at:
            self.begin(lost or "its lease could not be renewed")

    async def _end(self, sockets: HandedSockets) -> None:
        """Close connections while the lease lasts; cut them when it is over.

        A closing connection may still flush output, which only an owner may write.
        """
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
