"""Passes clients on to the owner of their store, byte for byte.

    client --- near --- far --- owner

Nothing is read from a client before its owner is reached. So a client that waits can still be
served by this process itself, if that becomes the owner.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from harebell.base.errors import HarebellError
from harebell.cluster.limits import RELAY_RETRY_MAX_SECONDS, RELAY_RETRY_SECONDS
from harebell.cluster.link import attach
from harebell.server.net.departed_peers import DepartureWatch, has_left
from harebell.server.net.relay_side import RelaySide, pair

Claim = Any
"""What tells an owner from the next one: the epoch, with the number of the store if it may vary."""


class NotReached(HarebellError):
    """The owner was not reached this time; the text says why."""


class Unreachable(HarebellError):
    """The owner may not get this client, however long it waits; the text says why."""


class Client(NamedTuple):
    """A client that waits for its owner.

    Args:
        sock: its socket.
        reach: tries once to connect a side to the owner, and returns the claim of that; raises
            NotReached to be called again after a pause, Unreachable to give up.
        failed: called with the reason when the client is closed, as no owner was reached.
        scheme: of the port that it came to.
        transport: its connection, of which reading is paused; None if it has none yet.
        sent: what it has sent before; the owner gets it first.
    """

    sock: socket.socket
    reach: Callable[[RelaySide], Awaitable[Claim]]
    failed: Callable[[str], None]
    scheme: str = ""
    transport: asyncio.Transport | None = None
    sent: bytes = b""

    def close(self) -> None:
        """End its connection."""
        (self.transport or self.sock).close()


class Forwarder:
    """Clients that wait for an owner, and those that are passed on.

    Args:
        target: what clients are passed on to, for the log.
        seconds: how long a client may wait.
        limit: how many clients there may be.
        report: called with a level and a line.
    """

    def __init__(
        self, target: str, seconds: float, limit: int, report: Callable[[str, str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._seconds = seconds
        self._limit = limit
        self._report = report
        self._full = False
        self._waiting: dict[asyncio.Task[None], Client] = {}
        self._claims: dict[RelaySide, Claim] = {}
        self._watch = DepartureWatch(self._loop, self._drop_departed)

    @property
    def connections(self) -> int:
        """Return how many clients are passed on."""
        return len(self._claims)

    @property
    def waiting(self) -> int:
        """Return how many clients wait for an owner."""
        return len(self._waiting)

    def has_room(self) -> bool:
        """True if another client may come; the log says when the limit is reached."""
        full = len(self._waiting) + len(self._claims) >= self._limit
        if full and not self._full:
            self._report(
                "warning",
                f"{self._limit} connections are passed on to {self._target} and more are turned "
                "away, for each takes two of the files that the process may have (ulimit -Hn)",
            )
        self._full = full
        return not full

    def forward(self, client: Client) -> asyncio.Task[None]:
        """Pass a client on; the task ends when the client does not wait any more."""
        task = self._loop.create_task(self._forward(client))
        self._waiting[task] = client
        task.add_done_callback(lambda done: self._waiting.pop(done, None))
        self._watch.begin()
        return task

    def cut(self, is_over: Callable[[Claim], bool]) -> None:
        """Cut the clients of owners whose claims are over: they connect again."""
        for near, claim in list(self._claims.items()):
            if near.transport is not None and is_over(claim):
                near.transport.abort()

    def end(self) -> list[Client]:
        """Cut what is passed on; returns the clients that wait, which the caller has to close."""
        self._watch.end()
        clients = list(self._waiting.values())
        for task in list(self._waiting):
            task.cancel()
        self._waiting = {}
        self.cut(lambda _: True)
        return clients

    def _drop_departed(self) -> bool:
        """Forget the clients that have left; True while others wait."""
        for task, client in list(self._waiting.items()):
            if has_left(client.sock):
                del self._waiting[task]
                task.cancel()
                client.close()
        return bool(self._waiting)

    async def _forward(self, client: Client) -> None:
        near, far = RelaySide(self._loop, self._lost), RelaySide(self._loop)
        pair(near, far)
        claim = None
        try:
            claim = await self._reach(client, far)
        except (TimeoutError, Unreachable) as error:
            client.close()
            client.failed(str(error))
        finally:
            # A client that was cancelled or is late may have a connection to the owner already.
            if claim is None and far.transport is not None:
                far.transport.abort()
        if claim is None:
            return
        task = asyncio.current_task()
        if task is None or self._waiting.pop(task, None) is None:
            # `end` has returned the client, too late to interrupt the last step.
            far.transport.abort()
            return
        # Now, so that the client counts and may be cut while its connection is made.
        self._claims[near] = claim
        try:
            if client.transport is None:
                await self._loop.connect_accepted_socket(lambda: near, client.sock)
            else:
                attach(client.transport, near)
        except OSError:
            client.close()
        if near.transport is None or near.transport.is_closing():
            self._lost(near)
            far.transport.abort()
        elif far.transport.is_closing():
            near.transport.close()
        else:
            far.transport.write(client.sent)
            near.begin()
            far.begin()

    async def _reach(self, client: Client, far: RelaySide) -> Claim:
        """Connect to the owner as soon as there is one that answers; return its claim.

        Raises:
            TimeoutError: none answers in time; the text says why, or is "" if there is no owner.
            Unreachable: the owner may not get this client.
        """
        pause, reason = RELAY_RETRY_SECONDS, ""
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    try:
                        return await client.reach(far)
                    except NotReached as error:
                        # Without an owner there is no text; what was tried before says more.
                        reason = str(error) or reason
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, RELAY_RETRY_MAX_SECONDS)
        except TimeoutError:
            raise TimeoutError(reason) from None

    def _lost(self, near: RelaySide) -> None:
        self._claims.pop(near, None)
