"""Counters of the whole broker, which never fall: those of open channels and of closed ones.

    channel.counters   -- at its close -->   added to the total of its vhost and version, which is
                                             the channel's from then on: late work is counted too
    connection.traffic -- at its end   -->   the same

So the hot path increments the counters of one channel only, and a total is a sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harebell.base.counters import Counters, Traffic

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel

VhostAndVersion = tuple[str, str]
"""The name of a vhost ("" before one is open) and a version of AMQP ("" before the header)."""


class Sums:
    """Counters of one vhost and version.

    Attributes:
        counters: of messages.
        traffic: of bytes.
    """

    __slots__ = ("counters", "traffic")

    def __init__(self) -> None:
        self.counters = Counters()
        self.traffic = Traffic()


class Totals:
    """The counters of what has ended, by vhost and version."""

    def __init__(self) -> None:
        self._ended: dict[VhostAndVersion, Sums] = {}

    def channel_closed(self, channel: AnyChannel) -> None:
        """Add the counters of a channel that was closed, once."""
        sums = _sums(self._ended, (channel.vhost.name, channel.connection.version))
        if channel.counters is not sums.counters:
            sums.counters.add(channel.counters)
            channel.counters = sums.counters

    def channel_opened(self, channel: AnyChannel) -> None:
        """Give a session that was closed before, and is resumed, counters of its own again."""
        sums = self._ended.get((channel.vhost.name, channel.connection.version))
        if sums is not None and channel.counters is sums.counters:
            channel.counters = Counters()
            for consumer in (channel.consumers or {}).values():
                consumer.counters = channel.counters

    def connection_ended(self, connection: BaseConnection) -> None:
        """Add the traffic of a connection that has ended, once."""
        sums = _sums(self._ended, place_of(connection))
        if connection.traffic is not sums.traffic:
            sums.traffic.add(connection.traffic)
            connection.traffic = sums.traffic

    def summed(
        self, connections: Iterable[BaseConnection], sessions: Iterable[AnyChannel] = ()
    ) -> dict[VhostAndVersion, Sums]:
        """Return the totals of what has ended and of what is open, by vhost and version.

        Args:
            connections: the open connections.
            sessions: the sessions of AMQP 0-10 that are kept, on a connection or not.
        """
        found: dict[VhostAndVersion, Sums] = {}
        for place, ended in self._ended.items():
            sums = _sums(found, place)
            sums.counters.add(ended.counters)
            sums.traffic.add(ended.traffic)
        for connection in connections:
            add_connection(found, connection)
        for session in sessions:
            if session.connection.channels.get(session.number) is not session:
                place = (session.vhost.name, session.connection.version)
                _sums(found, place).counters.add(session.counters)
        return found


def _sums(found: dict[VhostAndVersion, Sums], place: VhostAndVersion) -> Sums:
    sums = found.get(place)
    if sums is None:
        sums = found[place] = Sums()
    return sums


def place_of(connection: BaseConnection) -> VhostAndVersion:
    """Return the vhost and the version of a connection."""
    vhost = connection.vhost
    return ("" if vhost is None else vhost.name, connection.version)


def add_connection(found: dict[VhostAndVersion, Sums], connection: BaseConnection) -> None:
    """Add the counters of a connection and its channels."""
    sums = _sums(found, place_of(connection))
    sums.traffic.add(connection.traffic)
    for channel in connection.channels.values():
        sums.counters.add(channel.counters)
