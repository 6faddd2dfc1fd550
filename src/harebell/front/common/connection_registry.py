"""The connections of a broker: dirty, blocked and waiting ones, and their turns.

The server calls the registry once per turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.arrivals import Arrivals
from harebell.base.c_types import i64
from harebell.base.gauge import Gauge
from harebell.base.share import Shares
from harebell.base.slices import Slices
from harebell.base.work import Work
from harebell.front.common.access_tickets import Tickets
from harebell.front.common.blocked_publishers import BlockedPublishers
from harebell.front.common.checkpoints import Checkpoints
from harebell.front.common.handshake_throttle import HandshakeThrottle
from harebell.front.common.look_times import LookTimes
from harebell.front.common.pace import HeldCredit
from harebell.front.common.pending_logins import PendingLogins
from harebell.front.common.totals import Sums, Totals, VhostAndVersion
from harebell.front.common.turns import Turns
from harebell.front.limits import KEPT_DELIVERIES, SESSIONS_KEPT, STATISTICS_SLICE_OBJECTS

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection

_FEW = 32


class Waiting(Protocol):
    """A waiter for a commit: a connection with held output, or the confirms of a channel."""

    def committed(self) -> None:
        """Continue after a commit; waiters for a later one re-enter the registry's `waiting`."""


def in_turns(connections: list[BaseConnection]) -> list[BaseConnection]:
    """Order many connections so that no user waits for all connections of another."""
    if len(connections) <= _FEW:
        return connections
    users: dict[object, list[BaseConnection]] = {}
    for connection in connections:
        users.setdefault(connection.account, []).append(connection)
    if len(users) == 1:
        return connections
    rounds = zip_longest(*users.values())
    return [connection for each in rounds for connection in each if connection is not None]


class ConnectionRegistry:
    """The connections of one broker.

    Args:
        gauge: the memory that messages and the process use.
        work: the broker's counter of work units.

    Attributes:
        turns: the work budgets of users.
        dirty: connections with output or another change for the server, each once.
        connections: all connections.
        active: those that may keep something, as they did more than to send and receive heartbeats.
        look_times: when each of all is looked at again.
        publishers: what is short, and the connections that are not read because of it.
        waiting: waiters for a commit, in order.
        accepted: the number of accepted connections.
        arrivals: counters of published messages, by version of AMQP.
        logins: numbers of logins that succeeded and that failed, by version of AMQP.
        totals: counters of channels and connections that have ended.
        named_sessions: sessions of AMQP 0-10 by vhost, user and name, on a channel or not.
        pending_logins: the connections that are not open yet.
        handshake_throttle: addresses that keep failing to open a connection.
        sessions: sessions of transitional 0-10 that outlive their channels, by identifier.
        kept_sessions: how many sessions of each user have a lifetime, or a timeout in 0-10.
        links: links of AMQP 1.0 by their names, attached or kept.
        kept_deliveries: how many deliveries of each user are kept for detached links.
        held_credit: links of AMQP 1.0 that wait for the consumers of their queues.
        tickets: the access tickets of versions before 0-9-1.
        checkpoints: saved parts of interrupted bodies; None before the first.
    """

    def __init__(self, gauge: Gauge, work: Work | None = None) -> None:
        self.gauge = gauge
        self.work = Work() if work is None else work
        self.turns = Turns(self.work)
        self.dirty: list[BaseConnection] = []
        self.connections: set[BaseConnection] = set()
        self.active: set[BaseConnection] = set()
        self.look_times = LookTimes()
        self.publishers = BlockedPublishers(gauge, self.turns)
        self.waiting: dict[Waiting, None] = {}
        self.pending_logins = PendingLogins()
        self.handshake_throttle = HandshakeThrottle()
        self.named_sessions: dict[tuple[str, str, bytes], Any] = {}
        self.accepted: i64 = 0
        self.totals = Totals()
        self.logins: dict[str, list[int]] = {}
        self.arrivals: dict[str, Arrivals] = {}
        self.sessions: dict[bytes, Any] = {}
        self.kept_sessions = Shares(
            "sessions that outlive their channels", SESSIONS_KEPT, "end some"
        )
        self.links: dict[tuple[Any, ...], Any] = {}
        self.kept_deliveries = Shares(
            "deliveries of detached links", KEPT_DELIVERIES, "settle them"
        )
        self.tickets = Tickets()
        self.held_credit = HeldCredit()
        self.checkpoints: Checkpoints | None = None

    def add(self, connection: BaseConnection) -> None:
        """Add a connection."""
        self.connections.add(connection)
        self.look_times.add(connection)

    def remove(self, connection: BaseConnection) -> None:
        """Remove a connection that has ended or was replaced."""
        self.connections.discard(connection)
        self.active.discard(connection)
        self.look_times.remove(connection)

    def in_pieces(self, units: int, *, only_active: bool = False) -> Iterator[list[BaseConnection]]:
        """Yield connections in pieces; between two of them others may have their turn.

        Args:
            units: connections and channels from which on a piece ends.
            only_active: whether those that rest are left out.
        """
        piece: list[BaseConnection] = []
        left = units
        # A copy: connections come and go between two pieces.
        for connection in list(self.active if only_active else self.connections):
            piece.append(connection)
            left -= 1 + len(connection.channels)
            if left <= 0:
                yield piece
                piece, left = [], units
        if piece:
            yield piece

    def count_login(self, version: str, *, failed: bool) -> None:
        """Count a login."""
        self.logins.setdefault(version, [0, 0])[failed] += 1

    def arrivals_of(self, version: str) -> Arrivals:
        """Return the counters of published messages of a version."""
        arrivals = self.arrivals.get(version)
        if arrivals is None:
            arrivals = self.arrivals[version] = Arrivals()
        return arrivals

    def take_dirty(self) -> list[BaseConnection]:
        """Take the dirty connections."""
        taken, self.dirty = self.dirty, []
        for connection in taken:
            connection.dirty = False
        return taken

    def dirty_again(self, connections: list[BaseConnection]) -> None:
        """Put connections back in front of the dirty list: the turn had no time for them."""
        late = [connection for connection in connections if not connection.dirty]
        for connection in late:
            connection.dirty = True
        self.dirty[:0] = late

    def sums(self) -> Slices[dict[VhostAndVersion, Sums]]:
        """Return the counters of all channels and connections, by vhost and version of AMQP.

        They never fall: those of what has ended are in them.
        """
        pieces = self.in_pieces(STATISTICS_SLICE_OBJECTS)
        return self.totals.sums(pieces, self.named_sessions)

    def committed(self) -> None:
        """Release the waiters for a commit that is on disk."""
        waiting, self.waiting = self.waiting, {}
        for each in waiting:
            self.turns.failures.guard(each.committed)
