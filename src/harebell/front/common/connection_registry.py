"""The connections of a broker: dirty, blocked and waiting ones, and their turns.

The server calls the registry once per turn. Which publishers are blocked, and what they are sent,
depends on AMQP, so it is decided here and not in the server.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.arrivals import Arrivals
from harebell.base.gauge import Gauge
from harebell.base.work import Work
from harebell.front.common.access_tickets import Tickets
from harebell.front.common.checkpoints import Checkpoints
from harebell.front.common.handshake_throttle import HandshakeThrottle
from harebell.front.common.pending_logins import PendingLogins
from harebell.front.common.totals import Sums, Totals, VhostAndVersion
from harebell.front.common.turns import Turns

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection


_FEW = 32
MEMORY = "memory"
"""Queued messages use more memory than the watermark."""
DISK = "disk"
"""The data directory is full, or nearly."""
FILES = "file handles"
"""No more files can be opened."""


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
        gauge: the memory that queued messages use.
        work: the broker's counter of work units.

    Attributes:
        turns: the work budgets of users.
        dirty: connections with output or another change for the server, each once.
        connections: all connections.
        blocked: connections that are not read because a resource is short.
        blocked_ms: how long connections were blocked, all together, in milliseconds; without the
            blocks that go on.
        waiting: waiters for a commit, in order.
        shortages: the short resources beside memory: DISK, FILES.
        short: whether a resource is short.
        accepted: the number of accepted connections.
        arrivals: counters of published messages, by version of AMQP.
        logins: numbers of logins that succeeded and that failed, by version of AMQP.
        totals: counters of channels and connections that have ended.
        finishing: the publisher that may finish its message or transaction although memory is
            short.
        named_sessions: sessions of AMQP 0-10 by vhost, user and name, on a channel or not.
        pending_logins: the connections that are not open yet.
        handshake_throttle: addresses that keep failing to open a connection.
        sessions: sessions of transitional 0-10 that outlive their channels, by identifier.
        tickets: the access tickets of versions before 0-9-1.
        checkpoints: saved parts of interrupted bodies; None before the first.
    """

    def __init__(self, gauge: Gauge, work: Work | None = None) -> None:
        self.gauge = gauge
        self.work = Work() if work is None else work
        self.turns = Turns(self.work)
        self.dirty: list[BaseConnection] = []
        self.connections: set[BaseConnection] = set()
        self.blocked: list[BaseConnection] = []
        self.blocked_ms = 0
        self.waiting: dict[Waiting, None] = {}
        self.shortages: set[str] = set()
        self.short = False
        self.finishing: BaseConnection | None = None
        self.pending_logins = PendingLogins()
        self.handshake_throttle = HandshakeThrottle()
        self.named_sessions: dict[tuple[str, str, bytes], Any] = {}
        self.accepted = 0
        self.totals = Totals()
        self.logins: dict[str, list[int]] = {}
        self.arrivals: dict[str, Arrivals] = {}
        self.sessions: dict[bytes, Any] = {}
        self.tickets = Tickets()
        self.checkpoints: Checkpoints | None = None

    def count_login(self, version: str, *, failed: bool) -> None:
        """Count a login."""
        self.logins.setdefault(version, [0, 0])[failed] += 1

    def arrivals_of(self, version: str) -> Arrivals:
        """Return the counters of published messages of a version."""
        found = self.arrivals.get(version)
        if found is None:
            found = self.arrivals[version] = Arrivals()
        return found

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

    def relieve(self) -> None:
        """Unblock publishers if no resource is short any more."""
        self.gauge.crossed()
        if not self.blocked or self.short:
            return
        if not self.gauge.over:
            released, self.blocked = self.blocked, []
            for connection in released:
                connection.unblock()
        elif self.finishing is None:
            gauge = self.gauge
            if gauge.used - gauge.unread - gauge.uncommitted < gauge.low:
                self._let_one_finish()

    def _let_one_finish(self) -> None:
        """Let one publisher finish if unfinished messages use all memory, which no consumer frees.

        One publisher after the other finishes its message or its transaction, and is blocked again.
        """
        for connection in self.blocked:
            if connection.has_begun():
                self.finishing = connection
                connection.paused = False
                connection.touch()
                return

    def set_short(self, what: str, short: bool) -> bool:
        """Set or clear a shortage besides memory; True if that is a change."""
        if short == (what in self.shortages):
            return False
        if short:
            self.shortages.add(what)
        else:
            self.shortages.discard(what)
        self.short = bool(self.shortages)
        return True

    def short_of(self) -> set[str]:
        """Return the short resources, memory included."""
        return self.shortages | ({MEMORY} if self.gauge.over else set())

    def reason(self) -> str:
        """Return the reason for connection.blocked."""
        memory = [MEMORY] if self.gauge.over else []
        return "low on " + " & ".join(memory + sorted(self.shortages))

    def sums(self) -> dict[VhostAndVersion, Sums]:
        """Return the counters of all channels and connections, by vhost and version of AMQP.

        They never fall: those of what has ended are in them.
        """
        return self.totals.summed(self.connections, self.named_sessions.values())

    def committed(self) -> None:
        """Release the waiters for a commit that is on disk."""
        waiting, self.waiting = self.waiting, {}
        for each in waiting:
            each.committed()
