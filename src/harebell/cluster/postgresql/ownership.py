"""Who owns a store: claims, the lease of the owner, and its end.

    owner      beat 7 ... beat 8 ... beat 9 ......... (killed)
    standby       sees 7      sees 8      sees 9 ........ 9 for a whole lease: claims epoch + 1

The owner renews its lease by a growing number, the beat. A standby claims when it has seen the same
beat for a whole lease by its own clock, so the clocks of the machines need not agree, and may jump.
The owner counts its lease from the moment before it asked for the last renewal that succeeded. So
its lease ends before a standby can claim.

The lease keeps two brokers from delivering at once. What is written is safe without it: an append
of an owner whose epoch is over fails in PostgreSQL.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.base.errors import StoreError
from harebell.cluster.limits import DRAINED_SECONDS
from harebell.cluster.postgresql.database import Database, commit_guarantee, driver
from harebell.cluster.postgresql.standby_lag import LogHistory
from harebell.cluster.postgresql.tables import Tables

if TYPE_CHECKING:
    from psycopg import Connection

_MS = 1_000
_RENEWALS = 4
"""Renewals per lease."""
_MARGIN = 0.15
"""The share of the lease that is left for closing connections, and for clocks that drift."""
_RETRY_SECONDS = 0.05
RUNNING_SECONDS = 5.0
"""How long a broker counts as running without a beat, or twice the lease if that is longer."""

GONE_SECONDS = 86_400.0
"""After so long without a beat a broker is not listed any more."""

OWNER, STANDBY = "owner", "standby"


class Deposed(OSError):
    """This broker does not own the store any more: nothing of it may be confirmed or delivered."""


class StoreRow(NamedTuple):
    """The row of the store, as a broker has read it.

    Args:
        epoch: grows with each claim.
        beat: grows with each renewal.
        released: whether the owner gave the store back.
        owner: the name of its broker.
        addresses: where it accepts connections, "host:port" by scheme; empty before it does.
        lease_ms: the milliseconds of its lease.
        identity: of the store, unlike that of any other.
        drained: whether it gave the store back so that another broker takes it.
        successor: the name of the broker that is meant to; "" for any other.
    """

    epoch: int
    beat: int
    released: bool
    owner: str
    addresses: dict[str, str]
    lease_ms: int
    identity: str
    drained: bool
    successor: str


class BrokerRow(NamedTuple):
    """The row of a broker.

    Args:
        name: its `node_name`.
        address: where clients reach it, "host:port"; "" before they do.
        state: "owner" or "standby".
        version: of Harebell.
        running: whether its beat grows.
        number: of the last row of the log that it has read, if it stands by; 0 if it does not say.
    """

    name: str
    address: str
    state: str
    version: str
    running: bool
    number: int = 0


def now() -> float:
    """Return the seconds since the machine started, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_store(connection: Connection[Any], tables: Tables) -> StoreRow:
    """Read the row of the store.

    Raises:
        psycopg.Error: the server is away or refuses.
        StoreError: the row is gone.
    """
    statement = (
        "SELECT epoch, beat, released, owner, addresses, lease_ms, identity, drained, successor"
        " FROM {store}"
    )
    row = connection.execute(tables.statement(statement)).fetchone()
    if row is None:
        raise StoreError("the row of the table 'store' is gone: restore it from a backup")
    epoch, beat, released, owner, addresses, *rest = row
    return StoreRow(epoch, beat, released, owner, json.loads(addresses), *rest)


def claim(
    connection: Connection[Any], tables: Tables, seen: StoreRow, database: Database
) -> int | None:
    """Claim a store that has no owner; None if another broker was faster.

    Raises:
        psycopg.Error: the outcome is unknown, or the server refuses.
    """
    row = connection.execute(
        tables.statement(
            "UPDATE {store} SET epoch = epoch + 1, beat = beat + 1, released = false, owner = %s,"
            " addresses = '{{}}', lease_ms = %s, drained = false, successor = ''"
            " WHERE epoch = %s AND beat = %s RETURNING epoch"
        ),
        (database.node, database.lease_ms, seen.epoch, seen.beat),
    ).fetchone()
    return None if row is None else int(row[0])


def report_node(
    connection: Connection[Any],
    tables: Tables,
    name: str,
    address: str,
    state: str,
    version: str,
    number: int = 0,
) -> None:
    """Write the row of a broker that runs; the arguments are as in `BrokerRow`."""
    connection.execute(
        tables.statement(
            "INSERT INTO {node} (name, address, state, version, number) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (name) DO UPDATE SET address = excluded.address, state = excluded.state,"
            " version = excluded.version, number = excluded.number, beat = {node}.beat + 1"
        ),
        (name, address, state, version, number),
    )


def forget_node(connection: Connection[Any], tables: Tables, name: str) -> None:
    """Remove the row of a broker that ends."""
    connection.execute(tables.statement("DELETE FROM {node} WHERE name = %s"), (name,))


class LeaseWatch:
    """Decides, by the clock of this machine, when a store may be claimed.

    Args:
        name: of this broker.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def may_claim(self, seen: StoreRow, read_at: float) -> bool:
        """True if the owner gave the store back, or has not renewed its lease for a whole one.

        Args:
            seen: the row.
            read_at: when the answer had come; a later time is always safe.
        """
        if seen.released and self._is_meant(seen):
            return True
        # The beat counts, not a time in the row: clocks of other machines may be wrong.
        if (seen.epoch, seen.beat) != self._seen:
            self._seen = (seen.epoch, seen.beat)
            self._since = read_at
            return False
        # A drained store waits for its successor first, and then for any broker.
        seconds = DRAINED_SECONDS if seen.released else seen.lease_ms / _MS
        return read_at - self._since > seconds

    def _is_meant(self, seen: StoreRow) -> bool:
        """True if the store was given back to this broker among others."""
        if not seen.drained:
            return True
        return seen.successor == self._name if seen.successor else seen.owner != self._name

    def forget(self) -> None:
        """Begin anew, after the server was away: its row may be of an earlier time."""
        self._seen = None


class RunningBrokers:
    """Knows which brokers run, by beats that grow, and by the clock of this machine.

    Args:
        seconds: how long a beat may stay the same.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._beats: dict[str, tuple[int, float]] = {}

    def rows(self, connection: Connection[Any], tables: Tables) -> list[BrokerRow]:
        """Read the rows of all brokers.

        Raises:
            psycopg.Error: the server is away or refuses.
        """
        statement = "SELECT name, address, state, version, number, beat FROM {node} ORDER BY name"
        rows = []
        read_at = now()
        for *of, number, beat in connection.execute(tables.statement(statement)):
            name, address, state, version = of
            last_beat, since = self._beats.get(name, (-1, 0.0))
            if last_beat != beat:
                # A row that is seen for the first time counts as one that has just changed.
                self._beats[name] = beat, read_at
                since = read_at
            running = read_at - since <= self._seconds
            rows.append(BrokerRow(name, address, state, version, running, number))
        return rows

    def forget_gone(self, connection: Connection[Any], tables: Tables, seconds: float) -> list[str]:
        """Remove the rows of brokers that have not reported for a long time; return their names.

        Args:
            connection: to the database.
            tables: of the store.
            seconds: how long.

        Raises:
            psycopg.Error: the server is away or refuses.
        """
        before = now() - seconds
        gone = [(name, beat) for name, (beat, since) in self._beats.items() if since < before]
        for name, beat in gone:
            # With another beat it is back.
            connection.execute(
                tables.statement("DELETE FROM {node} WHERE name = %s AND beat = %s"), (name, beat)
            )
            del self._beats[name]
        return [name for name, _ in gone]


class Ownership:
    """The lease of the owner, renewed in a thread.

    Args:
        database: where the store is.
        tables: the statements for its tables.
        epoch: of the claim.
        began: the time before the claim was sent.
        version: of Harebell, for the row of the broker.
        report: called in the thread with a level and a line.
        running: what was seen of the brokers before the claim, so that one that is gone does not
            count as one that has just come; None for nothing.

    Attributes:
        epoch: as given.
        lost: why the lease was lost; "" while it holds.
        nodes: the brokers of the store, as of the last renewal.
        log: where the log has ended; noted at each renewal.
        log_end: returns the number of the last row of the log, and the bytes that were written.
    """

    def __init__(
        self,
        database: Database,
        tables: Tables,
        epoch: int,
        began: float,
        version: str,
        report: Callable[[str, str], None],
        running: RunningBrokers | None = None,
    ) -> None:
        self.epoch = epoch
        self.lost = ""
        self._database = database
        self._tables = tables
        self._version = version
        self._report = report
        self.nodes: list[BrokerRow] = []
        self.log = LogHistory()
        self.log_end: Callable[[], tuple[int, int]] = lambda: (0, 0)
        seconds = max(RUNNING_SECONDS, 2 * database.lease_ms / _MS)
        self._running = RunningBrokers(seconds) if running is None else running
        self._addresses: dict[str, str] = {}
        self._successor: str | None = None
        self._connection: Connection[Any] | None = None
        self._guarantee = ""
        self._seconds = database.lease_ms / _MS
        self._until = began + self._seconds
        self._ended = False
        self._soon = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    @property
    def ends_at(self) -> float:
        """When the lease ends, in seconds of `now`; later after each renewal."""
        return self._until

    @property
    def closes_at(self) -> float:
        """When connections have to be closed, unless the lease is renewed before."""
        return self._until - self._seconds * _MARGIN

    def holds(self) -> bool:
        """True if this broker may deliver and confirm."""
        return not self.lost and now() < self._until

    @property
    def seconds_left(self) -> float:
        """The seconds that are left of the lease; 0 when it is over."""
        return 0.0 if self.lost else max(0.0, self._until - now())

    def publish(self, addresses: dict[str, str]) -> None:
        """Let standbys pass connections on to these addresses.

        Args:
            addresses: "host:port" by scheme.
        """
        self._addresses = addresses
        self._soon.set()

    def give_to(self, successor: str) -> None:
        """Leave the store to another broker when it is given back.

        Args:
            successor: the name of the broker; "" for any other.
        """
        self._successor = successor

    def depose(self, reason: str) -> None:
        """Note that another broker owns the store."""
        self.lost = self.lost or reason

    def end(self, *, release: bool) -> None:
        """End the renewals, and give the store back so that a standby need not wait.

        Args:
            release: whether everything is written.
        """
        self._ended = True
        self._soon.set()
        self._thread.join(self._seconds)
        # A thread that still waits for an answer has the connection: then the lease runs out.
        if not release or self.lost or self._thread.is_alive():
            return
        with contextlib.suppress(driver().Error, StoreError):
            if self._connection is None:
                self._connection = self._database.connect()
            self._connection.execute(
                self._tables.statement(
                    "UPDATE {store} SET released = true, addresses = '{{}}', drained = %s,"
                    " successor = %s WHERE epoch = %s"
                ),
                (self._successor is not None, self._successor or "", self.epoch),
            )
            forget_node(self._connection, self._tables, self._database.node)
            self._connection.close()

    def _renew(self) -> None:
        failure = ""
        wait = 0.0
        while True:
            self._soon.wait(wait)
            self._soon.clear()
            if self._ended:
                return
            wait = self._seconds / _RENEWALS
            began = now()
            try:
                renewed = self._renew_once(began)
                wait = max(0.0, wait - (now() - began))
            except (driver().Error, StoreError) as error:
                text = self._database.reason(error)
                if text != failure and not self._ended:
                    failure = text
                    self._report("warning", f"cannot renew the lease of the store: {text}")
                self._drop_connection()
                wait = _RETRY_SECONDS
                if now() > self._until:
                    self.depose("its lease could not be renewed")
                    return
                continue
            if not renewed:
                self.depose("another broker has claimed it")
                return
            if failure:
                failure = ""
                self._report("info", "the lease of the store is renewed again")

    def _renew_once(self, began: float) -> bool:
        """Renew the lease; False if another broker has claimed the store.

        Args:
            began: the time before this.
        """
        if self._connection is None:
            self._connection = self._database.connect()
        cursor = self._connection.execute(
            self._tables.statement(
                "UPDATE {store} SET beat = beat + 1, addresses = %s WHERE epoch = %s"
            ),
            (json.dumps(self._addresses), self.epoch),
        )
        if cursor.rowcount != 1:
            return False
        # Before what follows, which is for people: with a slow server it may take as long again.
        self._until = began + self._seconds
        report_node(
            self._connection,
            self._tables,
            self._database.node,
            self._addresses.get("amqp") or next(iter(self._addresses.values()), ""),
            OWNER,
            self._version,
        )
        self.log.note(began, *self.log_end())
        self.nodes = self._running.rows(self._connection, self._tables)
        for name in self._running.forget_gone(self._connection, self._tables, GONE_SECONDS):
            self._report("info", f"broker '{name}' has been gone for a day, and is forgotten")
        self._check_settings(self._connection)
        return True

    def _check_settings(self, connection: Connection[Any]) -> None:
        """Report when the server was set to something else while it runs."""
        level = "warning"
        try:
            guarantee = commit_guarantee(connection, self._database.durability)
        except StoreError as error:
            level, guarantee = "error", str(error)
        before, self._guarantee = self._guarantee, guarantee
        if before not in ("", guarantee):
            self._report(level, f"the settings of the server have changed: {guarantee}")

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(driver().Error):
                connection.close()
