"""When each connection is looked at again: for its heartbeats and deadlines.

Ten thousand connections that rest are not touched twice a second: their times are apart from them,
in one list that is quick to go through.

    connections   a     b     c     ...
    times         7.5   0.0   9.0   ...      0: at the next tick
"""

from __future__ import annotations

from typing import Any

from harebell.base.c_types import C, Done, isize


class LookTimes:
    """The connections, each at the place that it keeps as `place`, and their times."""

    def __init__(self) -> None:
        self._connections: list[Any] = []
        self._times: list[float] = []

    def add(self, connection: Any) -> Done:
        """Add a connection, to be looked at in the next tick."""
        connection.place = len(self._connections)
        self._connections.append(connection)
        self._times.append(0.0)
        return 0

    def remove(self, connection: Any) -> Done:
        """Remove a connection; the last one takes its place."""
        place: isize = connection.place
        if place < 0:
            return 0
        connection.place = -1
        last = self._connections.pop()
        time = self._times.pop()
        if last is not connection:
            last.place = place
            self._connections[place] = last
            self._times[place] = time
        return 0

    def set(self, place: isize, time: float) -> Done:
        """Look at the connection of a place at that time, or in the next tick after it."""
        if place >= 0:
            self._times[place] = time
        return 0

    def due(self, now: float) -> C[list[Any]]:
        """Return the connections whose time has come."""
        found: list[Any] = []
        place: isize
        for place in range(len(self._times)):
            time: float = self._times[place]
            if time <= now:
                found.append(self._connections[place])
        return found
