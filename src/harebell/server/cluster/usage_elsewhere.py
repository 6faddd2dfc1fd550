"""What the other owners of a cluster have that counts towards a limit here.

It is known CLUSTER_USAGE_SECONDS after it has changed, so for that long a limit can be exceeded by
what was opened or declared at several owners at once. Nothing waits for an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError
from harebell.base.limits import CLUSTER_REACH_SECONDS, CLUSTER_USAGE_AGAIN_SECONDS
from harebell.model.settings.ceilings import Declared
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.cluster.link import open_link, streams
from harebell.server.cluster.stores import FIRST_STORE, ClusterAddress
from harebell.server.cluster.usage_wire import BEGIN, SERVICE, SIZE_BYTES, decoded, size_of

if TYPE_CHECKING:
    from harebell.server.cluster.store_directory import StoreDirectory


class UsageElsewhere:
    """Asks every other owner what it has.

    Args:
        directory: knows the owners.
        report: called with a level and a line.
    """

    def __init__(self, directory: StoreDirectory, report: Callable[[str, str], None]) -> None:
        self._directory = directory
        self._report = report
        self._declared: dict[int, Declared] = {}
        self._users: dict[int, dict[str, tuple[int, int]]] = {}
        others = set(range(FIRST_STORE, directory.stores + FIRST_STORE)) - {directory.number}
        self._tasks = BackgroundTasks()
        for store in sorted(others):
            self._tasks.start(self._follow(store))

    def of_user(self, name: str) -> tuple[int, int]:
        """Return how many connections and channels a user with a limit has open elsewhere."""
        connections = channels = 0
        for users in self._users.values():
            some = users.get(name)
            if some is not None:
                connections += some[0]
                channels += some[1]
        return connections, channels

    def declared(self) -> Declared:
        """Return how many vhosts, queues and exchanges the other owners have."""
        found = Declared()
        for some in self._declared.values():
            found = Declared(*map(sum, zip(found, some, strict=True)))
        return found

    def close(self) -> None:
        """Ask no more."""
        self._tasks.cancel()

    async def _follow(self, store: int) -> None:
        """Know what the owner of a store has, whichever broker that is."""
        while True:
            address = self._directory.address_of(store)
            if address is not None:
                try:
                    await self._ask(store, address)
                except ValueError as error:
                    self._report("warning", f"the owner of store {store} sends {error}")
                except (OSError, asyncio.IncompleteReadError, HarebellError):
                    pass  # it has gone, or is not there yet
                # Its connections have ended, or are counted anew. The store keeps what is declared.
                self._users.pop(store, None)
            await asyncio.sleep(CLUSTER_USAGE_AGAIN_SECONDS)

    async def _ask(self, store: int, address: ClusterAddress) -> None:
        """Take what an owner sends, until another one owns the store.

        Raises:
            ValueError: it sends something else.
            OSError, EOFError, HarebellError: the connection has ended, or cannot be made.
        """
        async with asyncio.timeout(CLUSTER_REACH_SECONDS):
            link = await open_link(address, self._directory.secret, {"service": SERVICE})
        reader, writer = streams(link)
        writer.write(BEGIN)
        users = self._users[store] = {}
        try:
            while self._directory.address_of(store) == address:
                try:
                    async with asyncio.timeout(CLUSTER_USAGE_AGAIN_SECONDS):
                        head = await reader.readexactly(SIZE_BYTES)
                except TimeoutError:
                    continue  # nothing has changed
                async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                    record = decoded(await reader.readexactly(size_of(head)))
                self._declared[store] = Declared(record.vhosts, record.queues, record.exchanges)
                for name, use in record.users.items():
                    if use == (0, 0):
                        users.pop(name, None)
                    else:
                        users[name] = use
        finally:
            writer.transport.abort()
