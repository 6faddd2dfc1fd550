"""Count what the other owners add to theirs: the service "usage" of the cluster port.

Limits of users and of the whole cluster hold for all owners together. Each owner counts its part
every CLUSTER_USAGE_SECONDS, over several turns, and only while another owner asks.
"""

from __future__ import annotations

import asyncio

from harebell.auth.users import Users
from harebell.base.limits import CLUSTER_USAGE_PER_TURN, CLUSTER_USAGE_SECONDS
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.model.broker import Broker
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.cluster.link import Header, streams
from harebell.server.cluster.usage_wire import BEGIN, Usage, encoded
from harebell.wire.v09.states import ConnectionState

_NONE = (0, 0)


class UsageService:
    """Counts and sends.

    Args:
        broker: has the vhosts.
        registry: has the connections.
        users: have the limits.
    """

    def __init__(self, broker: Broker, registry: ConnectionRegistry, users: Users) -> None:
        self._broker = broker
        self._registry = registry
        self._users = users
        self._tasks = BackgroundTasks()
        self._counting: asyncio.Task[None] | None = None
        self._counted = Usage()
        self._renewed = asyncio.Event()

    def serve(self, _header: Header, transport: asyncio.Transport) -> None:
        """Serve the connection of another owner."""
        if self._counting is None or self._counting.done():
            self._counting = self._tasks.start(self._count())
        self._tasks.start(self._send(*streams(transport)))

    def close(self) -> None:
        """End all connections."""
        self._tasks.cancel()

    async def _count(self) -> None:
        """Count again and again, until no other owner asks."""
        # One of the tasks is this one.
        while len(self._tasks) > 1:
            users = await self._in_use()
            declared = self._broker.ceilings.counted()
            self._counted = Usage(*declared, users)
            renewed, self._renewed = self._renewed, asyncio.Event()
            renewed.set()
            await asyncio.sleep(CLUSTER_USAGE_SECONDS)

    async def _in_use(self) -> dict[str, tuple[int, int]]:
        """Return the open connections and channels of users who have a limit."""
        found: dict[str, tuple[int, int]] = {}
        for count, each in enumerate(list(self._registry.connections), start=1):
            if count % CLUSTER_USAGE_PER_TURN == 0:
                await asyncio.sleep(0)
            if each.state is not ConnectionState.OPEN:
                continue
            user = self._users.get(each.user.name)
            if user is not None and (user.max_connections >= 0 or user.max_channels >= 0):
                connections, channels = found.get(user.name, _NONE)
                found[user.name] = connections + 1, channels + len(each.channels)
        return found

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = Usage()
        try:
            await reader.readexactly(len(BEGIN))
            writer.write(encoded(sent))
            while not reader.at_eof():
                renewed = self._renewed
                await renewed.wait()
                # While a slow owner takes the records, the next count may be done.
                counted = self._counted
                for record in news(sent, counted):
                    writer.write(encoded(record))
                    await writer.drain()
                sent = counted
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other broker has gone
        finally:
            writer.close()


def news(old: Usage, new: Usage) -> list[Usage]:
    """Return what has changed as records, none if nothing has."""
    users = {name: new.users.get(name, _NONE) for name in old.users.keys() | new.users.keys()}
    changed = [(name, use) for name, use in users.items() if use != old.users.get(name, _NONE)]
    declared = (new.vhosts, new.queues, new.exchanges)
    if not changed and declared == (old.vhosts, old.queues, old.exchanges):
        return []
    starts = range(0, max(1, len(changed)), CLUSTER_USAGE_PER_TURN)
    return [Usage(*declared, dict(changed[at : at + CLUSTER_USAGE_PER_TURN])) for at in starts]
