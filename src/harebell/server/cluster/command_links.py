"""Connections to the owners of other stores that have run a command, and may run the next one.

A new connection costs its handshake, of TLS too. So some are kept for a moment, as long as the
same broker owns the store. One is kept only after a command and its one answer: after questions of
the owner, or an interruption, it is closed, so no answer can be taken for that of another command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harebell.base.limits import CLUSTER_IDLE_LINKS
from harebell.server.cluster.command_wire import LineReader
from harebell.server.cluster.link import open_link, streams
from harebell.server.cluster.stores import ClusterAddress

SERVICE = "command"
"""The service at the cluster port that runs commands."""


class CommandLink:
    """A connection to an owner.

    Args:
        where: the owner.
        reader: the connection to it.
        writer: the same connection.

    Attributes:
        where: as given.
        writer: as given.
        lines: what the owner sends.
        used: whether it has run a command before.
    """

    def __init__(
        self, where: ClusterAddress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.where = where
        self.writer = writer
        self.lines = LineReader(reader)
        self.used = False
        self._reader = reader
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether the owner has not closed it, as far as is known here."""
        return not self._reader.at_eof() and not self.writer.is_closing()

    def rest(self, seconds: float, over: Callable[[CommandLink], None]) -> None:
        """Wait for the next command, and call `over` if none comes in time."""
        self.used = True
        self._timer = asyncio.get_running_loop().call_later(seconds, over, self)

    def wake(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """End the connection."""
        self.wake()
        self.writer.close()


class CommandLinks:
    """The connections that wait for the next command.

    Args:
        seconds: how long they wait.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._idle: dict[int, list[CommandLink]] = {}

    def take(self, store: int, where: ClusterAddress) -> CommandLink | None:
        """Return one to the owner of a store; None if there is none.

        Args:
            store: the number of the store.
            where: its owner now; connections to an earlier one are closed.
        """
        idle = self._idle.get(store, [])
        while idle:
            link = idle.pop()
            if link.where == where and link.is_open:
                link.wake()
                return link
            link.close()
        return None

    async def open(self, where: ClusterAddress, secret: bytes) -> CommandLink:
        """Return a new one.

        Raises:
            OSError: nothing answers there.
            LinkError: what answers is not the broker in question.
        """
        transport = await open_link(where, secret, {"service": SERVICE})
        return CommandLink(where, *streams(transport))

    def keep(self, store: int, link: CommandLink) -> None:
        """Keep one that has run its command, if there is room."""
        idle = self._idle.setdefault(store, [])
        if len(idle) >= CLUSTER_IDLE_LINKS or not link.is_open:
            link.close()
            return
        idle.append(link)
        link.rest(self._seconds, lambda tired: self._end(idle, tired))

    def close(self) -> None:
        """End all that wait."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def _end(self, idle: list[CommandLink], link: CommandLink) -> None:
        idle.remove(link)
        link.close()
