"""Counters of the whole broker, which never fall: those of open channels and of closed ones.

    channel.counters   -- at its close -->   added to the total of its vhost and version, which is
                                             the channel's from then on: late work is counted too
    connection.traffic -- at its end   -->   the same

So the hot path increments the counters of one channel only, and a total is a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.counters import Counters, Traffic
from harebell.base.slices import Slices

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
        self._counts: list[_Count] = []

    def ended(self, vhost: str, version: str) -> Counters:
        """Return the counters of the channels that were closed, of one vhost and version."""
        return _sums(self._ended, (vhost, version)).counters

    def channel_closed(self, channel: AnyChannel) -> None:
        """Add the counters of a channel that was closed, once."""
        sums = _sums(self._ended, (channel.vhost.name, channel.connection.version))
        if channel.counters is not sums.counters:
            for count in self._counts:
                count.channel_closed(channel)
            sums.counters.add(channel.counters)
            channel.counters = sums.counters

    def channel_opened(self, channel: AnyChannel) -> None:
        """Give a session that was closed before, and is resumed, counters of its own again."""
        sums = self._ended.get((channel.vhost.name, channel.connection.version))
        if sums is not None and channel.counters is sums.counters:
            channel.counters = Counters()
            # Consumers count in the counters of their channel: not in the total any more.
            for consumer in (channel.consumers or {}).values():
                consumer.counters = channel.counters

    def connection_ended(self, connection: BaseConnection) -> None:
        """Add the traffic of a connection that has ended, once."""
        sums = _sums(self._ended, place_of(connection))
        if connection.traffic is not sums.traffic:
            for count in self._counts:
                count.connection_ended(connection)
            sums.traffic.add(connection.traffic)
            connection.traffic = sums.traffic

    def sums(
        self, pieces: Iterable[list[BaseConnection]], sessions: Mapping[Any, AnyChannel]
    ) -> Slices[dict[VhostAndVersion, Sums]]:
        """Return the totals of what has ended and of what is open, by vhost and version.

        What ends between two slices is in the totals once, whether it was counted before or not.

        Args:
            pieces: the open connections, so many in a slice.
            sessions: the sessions of AMQP 0-10 that are kept, on a connection or not.
        """
        count = _Count(sessions)
        for place, ended in self._ended.items():
            sums = _sums(count.found, place)
            sums.counters.add(ended.counters)
            sums.traffic.add(ended.traffic)
        self._counts.append(count)
        try:
            for piece in pieces:
                for connection in piece:
                    count.add(connection)
                yield
        finally:
            # Also when the caller gives up: what ends later must not be added to it.
            self._counts.remove(count)
        count.add_detached(sessions)
        return count.found


class _Count:
    """One count of everything, over several slices.

    Args:
        sessions: the sessions of AMQP 0-10 that are kept.

    Attributes:
        found: what is counted, by vhost and version.
    """

    def __init__(self, sessions: Mapping[Any, AnyChannel]) -> None:
        self.found: dict[VhostAndVersion, Sums] = {}
        self._seen: set[BaseConnection] = set()
        self._kept = set(sessions.values())
        self._counted: set[AnyChannel] = set()
        self.add_detached(sessions)

    def add(self, connection: BaseConnection) -> None:
        """Count a connection and its channels."""
        self._seen.add(connection)
        sums = _sums(self.found, place_of(connection))
        sums.traffic.add(connection.traffic)
        channels = list(connection.channels.values())
        # A session may be attached to another connection between two slices; a channel cannot move.
        if self._kept:
            channels = [each for each in channels if each not in self._counted]
            self._counted.update(self._kept.intersection(channels))
        for channel in channels:
            sums.counters.add(channel.counters)

    def add_detached(self, sessions: Mapping[Any, AnyChannel]) -> None:
        """Count the sessions that are on no connection, each once."""
        for each in sessions.values():
            attached = each.connection.channels.get(each.number) is each
            if not attached and each not in self._counted:
                self._counted.add(each)
                place = (each.vhost.name, each.connection.version)
                _sums(self.found, place).counters.add(each.counters)

    def channel_closed(self, channel: AnyChannel) -> None:
        """Count a channel that ends before its connection is counted."""
        if channel.connection not in self._seen and channel not in self._counted:
            place = (channel.vhost.name, channel.connection.version)
            _sums(self.found, place).counters.add(channel.counters)

    def connection_ended(self, connection: BaseConnection) -> None:
        """Count a connection that ends before it is counted."""
        if connection not in self._seen:
            _sums(self.found, place_of(connection)).traffic.add(connection.traffic)


def _sums(found: dict[VhostAndVersion, Sums], place: VhostAndVersion) -> Sums:
    sums = found.get(place)
    if sums is None:
        sums = found[place] = Sums()
    return sums


def place_of(connection: BaseConnection) -> VhostAndVersion:
    """Return the vhost and the version of a connection."""
    vhost = connection.vhost
    return ("" if vhost is None else vhost.name, connection.version)
