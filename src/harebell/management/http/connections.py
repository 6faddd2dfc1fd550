"""The connections of an HTTP port: how many there may be, for how long, and who has to go.

A connection is pending until a request of it has shown a right password or token; then it is its
user's. Pending ones are counted in total and by address, as those of AMQP are. A new one above a
limit takes the place of the oldest that only waits for its client, so idle connections never keep
others out. A user has a share.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from harebell.front.common.pending_logins import PendingLogins
from harebell.management.limits import (
    HTTP_HEAD_BYTES,
    HTTP_STEPS_PER_TURN,
    HTTP_SWEEP_SECONDS,
    HTTP_TURN_SECONDS,
)

if TYPE_CHECKING:
    from harebell.config import Config


class Connection(Protocol):
    """The part of a connection that is used here.

    Attributes:
        number: identifies it.
    """

    number: int

    def is_in_the_way(self) -> bool:
        """True if it only waits for its client."""

    def check(self, now: float) -> None:
        """End it if its client had its time."""

    def cut(self) -> None:
        """End it at once."""


class Turns:
    """Lets the steps of many connections go on one after the other, a few in a turn of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._begun = False

    def wait(self, step: Callable[[], object]) -> None:
        """Run a step in a later turn."""
        self._waiting.append(step)
        if not self._begun:
            self._begun = True
            asyncio.get_running_loop().call_soon(self._run)

    async def turn(self) -> None:
        """Wait for a turn."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wait(lambda: _come(come))
        await come

    def _run(self) -> None:
        end = monotonic() + HTTP_TURN_SECONDS
        try:
            # A step may wake up a task, which works after this: so there is a number of them, too.
            for _ in range(min(len(self._waiting), HTTP_STEPS_PER_TURN)):
                self._waiting.popleft()()
                if monotonic() >= end:
                    break
        finally:
            # The others go on if one has failed.
            self._begun = bool(self._waiting)
            if self._begun:
                asyncio.get_running_loop().call_soon(self._run)


def _come(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class HttpConnections:
    """The connections of a port.

    Args:
        name: of the port, for the log.
        config: the limits.
        files: how many of the files of the process they may be.
        report: takes a level and a line for the log.

    Attributes:
        buffer: what all of them read into.
        turns: lets them go on one after the other.
        report: as given.
        request_seconds: the time that a client has for a request until its login.
        idle_seconds: the time that it has between requests, and without a byte of a body.
    """

    def __init__(
        self, name: str, config: Config, files: int, report: Callable[[str, str], None]
    ) -> None:
        self.buffer = memoryview(bytearray(HTTP_HEAD_BYTES))
        self.turns = Turns()
        self.report = report
        self._name = name
        self._files = files
        self._pending = PendingLogins()
        self._all: dict[int, Connection] = {}
        self._user_of: dict[int, str] = {}
        self._numbers: dict[str, dict[int, None]] = {}
        self._sweeping = False
        self._full = False
        self.configure(config)

    def __len__(self) -> int:
        return len(self._all)

    def configure(self, config: Config) -> None:
        """Use other limits from now on."""
        self.request_seconds = config.management_request_timeout_seconds
        self.idle_seconds = config.management_idle_timeout_seconds
        self.limit = min(config.management_connection_max or self._files, self._files)
        # One address and one user cannot use up all.
        self._share = max(1, self.limit // 2)
        per_address = config.unauthenticated_connection_max_per_address or self._share
        self._pending.max_per_address = min(per_address, self._share)

    def admits(self, address: str) -> bool:
        """Make room for a connection from an address; True if there is some."""
        crowd = self._pending.crowd(address)
        if crowd is None and len(self._all) < self.limit:
            self._full = False
            return True
        if not self._full:
            self._full = True
            self.report(
                "warning",
                f"{self._name}: {len(self._all)} connections are open: the oldest that only wait "
                "for their clients make room for new ones",
            )
        # A crowded address makes room among its own: it must not push out clients of others.
        if crowd is not None:
            return self._evict(crowd)
        # Pending ones first: no request of them has shown a right login.
        return self._evict(chain(self._pending.origins(), self._user_of))

    def add(self, connection: Connection, address: str) -> None:
        """Count a connection that was accepted."""
        self._all[connection.number] = connection
        self._pending.add(connection.number, address)
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(HTTP_SWEEP_SECONDS, self._sweep)

    def remove(self, number: int) -> None:
        """Forget a connection that has ended; an unknown one is ignored."""
        self._all.pop(number, None)
        self._pending.remove(number)
        self._leave(number)

    def logged_in(self, number: int, user: str) -> bool:
        """Count a connection for a user who has logged in; False if the user has too many."""
        # Each request of a connection logs in anew, and is counted once. One that was cut meanwhile
        # is counted no more.
        if self._user_of.get(number) == user or number not in self._all:
            return True
        numbers = self._numbers.get(user, {})
        # A user's connections make room among themselves, before the one that logs in is moved: if
        # there is none, all stays as it was.
        if len(numbers) >= self._share and not self._evict(numbers):
            return False
        self._pending.remove(number)
        self._leave(number)
        self._user_of[number] = user
        self._numbers.setdefault(user, {})[number] = None
        return True

    def _leave(self, number: int) -> None:
        user = self._user_of.pop(number, None)
        if user is None:
            return
        del self._numbers[user][number]
        if not self._numbers[user]:
            del self._numbers[user]

    def _evict(self, numbers: Iterable[int]) -> bool:
        """End the first that only waits for its client; False if there is none."""
        for number in numbers:
            connection = self._all[number]
            if connection.is_in_the_way():
                connection.cut()
                self.remove(number)
                return True
        return False

    def _sweep(self) -> None:
        # First: whatever one connection raises, all are looked at again.
        self._sweeping = bool(self._all)
        if self._sweeping:
            asyncio.get_running_loop().call_later(HTTP_SWEEP_SECONDS, self._sweep)
        now = monotonic()
        for each in list(self._all.values()):
            with suppress(OSError):
                each.check(now)
