"""What all owners have that counts towards a limit: the service "usage" of the cluster port.

Limits of users and of the whole cluster hold for all owners together. Each owner counts its part
every CLUSTER_USAGE_SECONDS, over several turns, and only while another owner asks. So for that long
a limit can be exceeded by what was opened or declared at several owners at once.

    owner that asks             owner that counts
    {}                     -->
                           <--  {"vhosts": 1, "queues": 2, "exchanges": 7, "connections": 5,
                                 "users": {...}}
                           <--  {...}, when that has changed

A line has the numbers of vhosts, queues, exchanges and open connections, and those users whose
numbers of open connections and channels are others than before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from harebell.auth.users import Users
from harebell.cluster.limits import (
    CLUSTER_USAGE_AGAIN_SECONDS,
    CLUSTER_USAGE_BYTES,
    CLUSTER_USAGE_PER_TURN,
    CLUSTER_USAGE_SECONDS,
)
from harebell.cluster.lines import Begin, Lines, LineService, follow
from harebell.cluster.stores import FIRST_STORE
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Declared
from harebell.server.background_tasks import BackgroundTasks
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.cluster.stores import StoreDirectory

SERVICE = "usage"
"""The service at the cluster port that sends it."""
_NONE = (0, 0)


class Usage(msgspec.Struct, frozen=True):
    """What one owner has.

    Args:
        vhosts: how many.
        queues: of all its vhosts.
        exchanges: of all its vhosts.
        connections: open ones.
        channels: of open connections.
        users: the open connections and channels of users who have a limit, by name.
    """

    vhosts: int = 0
    queues: int = 0
    exchanges: int = 0
    connections: int = 0
    channels: int = 0
    users: dict[str, tuple[int, int]] = {}

    @property
    def declared(self) -> Declared:
        """Return what counts towards the limits of the cluster."""
        return Declared(self.vhosts, self.queues, self.exchanges)

    @property
    def opened(self) -> tuple[int, int]:
        """Return how many connections and channels are open."""
        return self.connections, self.channels


class UsageService(LineService):
    """Counts what this owner has, and sends it to the others.

    Args:
        broker: has the vhosts.
        registry: has the connections.
        users: have the limits.
        report: called with a level and a line.
    """

    def __init__(
        self,
        broker: Broker,
        registry: ConnectionRegistry,
        users: Users,
        report: Callable[[str, str], None],
    ) -> None:
        super().__init__(report)
        self._broker = broker
        self._registry = registry
        self._users = users
        self._counting: asyncio.Task[None] | None = None
        self._counted = Usage()
        self._renewed = asyncio.Event()

    def close(self) -> None:
        """End all connections."""
        super().close()
        if self._counting is not None:
            self._counting.cancel()

    async def _count(self) -> None:
        """Count again and again, until no other owner asks."""
        while len(self.connections):
            opened, users = await self._in_use()
            self._counted = Usage(*self._broker.ceilings.counted(), *opened, users)
            # Wakes those who wait now; one that is still sending waits for the next count.
            self._renewed.set()
            self._renewed.clear()
            await asyncio.sleep(CLUSTER_USAGE_SECONDS)

    async def _in_use(self) -> tuple[tuple[int, int], dict[str, tuple[int, int]]]:
        """Return the open connections and channels: of all, and of each user who has a limit."""
        usage: dict[str, tuple[int, int]] = {}
        opened = opened_channels = 0
        for count, each in enumerate(list(self._registry.connections), start=1):
            if count % CLUSTER_USAGE_PER_TURN == 0:
                await asyncio.sleep(0)
            if each.state is not ConnectionState.OPEN:
                continue
            opened += 1
            opened_channels += len(each.channels)
            user = self._users.get(each.user.name)
            if user is not None and (user.max_connections >= 0 or user.max_channels >= 0):
                connections, channels = usage.get(user.name, _NONE)
                usage[user.name] = connections + 1, channels + len(each.channels)
        return (opened, opened_channels), usage

    async def _talk(self, lines: Lines) -> None:
        await lines.next(Begin)
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())
        sent = Usage()
        await lines.send(sent)
        while lines.is_open:
            await self._renewed.wait()
            # While a slow owner takes the lines, the next count may be done.
            counted = self._counted
            for changes in news(sent, counted):
                await lines.send(changes)
            sent = counted


def news(old: Usage, new: Usage) -> list[Usage]:
    """Return what has changed, users in several parts; nothing if nothing has."""
    users = {name: new.users.get(name, _NONE) for name in old.users.keys() | new.users.keys()}
    changed = [(name, use) for name, use in users.items() if use != old.users.get(name, _NONE)]
    if not changed and (new.declared, new.opened) == (old.declared, old.opened):
        return []
    starts = range(0, max(1, len(changed)), CLUSTER_USAGE_PER_TURN)
    return [
        Usage(*new.declared, *new.opened, dict(changed[first : first + CLUSTER_USAGE_PER_TURN]))
        for first in starts
    ]


class UsageElsewhere:
    """Knows what every other owner has. Nothing waits for an answer.

    Args:
        directory: knows the owners.
        is_here: returns whether the owner of a store is a process of the same node.
        report: called with a level and a line.
    """

    def __init__(
        self,
        directory: StoreDirectory,
        is_here: Callable[[int], bool],
        report: Callable[[str, str], None],
    ) -> None:
        self._is_here = is_here
        self._declared: dict[int, Declared] = {}
        self._opened: dict[int, tuple[int, int]] = {}
        self._users: dict[int, dict[str, tuple[int, int]]] = {}
        self._tasks = BackgroundTasks()
        for store in range(FIRST_STORE, directory.stores + FIRST_STORE):
            if store != directory.number:
                self._tasks.start(
                    follow(
                        directory,
                        store,
                        SERVICE,
                        partial(self._talk, store),
                        report,
                        CLUSTER_USAGE_AGAIN_SECONDS,
                        CLUSTER_USAGE_BYTES,
                    )
                )

    def of_user(self, name: str) -> tuple[int, int]:
        """Return how many connections and channels a user with a limit has open elsewhere."""
        uses = [users.get(name, _NONE) for users in self._users.values()]
        return sum(use[0] for use in uses), sum(use[1] for use in uses)

    def of_node(self) -> tuple[int, int]:
        """Return how many connections and channels the other processes of this node have open."""
        uses = [use for store, use in self._opened.items() if self._is_here(store)]
        return sum(use[0] for use in uses), sum(use[1] for use in uses)

    def declared(self) -> Declared:
        """Return how many vhosts, queues and exchanges the other owners have."""
        totals = Declared()
        for declared in self._declared.values():
            totals = Declared(*map(sum, zip(totals, declared, strict=True)))
        return totals

    def close(self) -> None:
        """Ask no more."""
        self._tasks.cancel()

    async def _talk(self, store: int, lines: Lines) -> None:
        users = self._users[store] = {}
        try:
            while True:
                usage = await lines.next(Usage)
                self._declared[store] = usage.declared
                self._opened[store] = usage.opened
                users.update(usage.users)
                for name in [name for name, use in usage.users.items() if use == _NONE]:
                    del users[name]
        finally:
            # The connections of an owner end with it; what is declared stays in its store.
            del self._users[store]
            self._opened.pop(store, None)
