"""Stand by: follow the log of a store, and claim the store when it has no owner."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.cluster.limits import STANDBY_END_SECONDS, STANDBY_LOOK_SECONDS
from harebell.cluster.postgresql.database import (
    Database,
    check_durability,
    commit_guarantee,
    driver,
    missing_right,
)
from harebell.cluster.postgresql.fenced_log_writer import FencedLogWriter
from harebell.cluster.postgresql.log_reader import DamagedRow, LogReader
from harebell.cluster.postgresql.owned_store import OwnedStore, empty_cache, note_claim, was_owner
from harebell.cluster.postgresql.ownership import (
    RUNNING_SECONDS,
    STANDBY,
    BrokerRow,
    Deposed,
    LeaseWatch,
    Ownership,
    RunningBrokers,
    StoreRow,
    claim,
    forget_node,
    now,
    read_store,
    report_node,
)
from harebell.cluster.postgresql.tables import Tables, is_first, is_later
from harebell.cluster.stores import FIRST_STORE, schema_of
from harebell.server.disk.lock import DirectoryLock
from harebell.store.definitions import NAME
from harebell.store.journal.replaying import Replica

if TYPE_CHECKING:
    from psycopg import Connection

    from harebell.config import Config

_MS = 1_000
_LOOKS = 12
"""Looks at the row of the store per lease."""
_RETRY_SECONDS = 0.25
_PAUSES_MAX = 16
"""So many of them before a log with an error is read again, from its beginning."""
_NOTED_SECONDS = 1.0
_NAMESAKE_BEATS = 3
_DAMAGE_SAID = 100
"""Most damaged rows that are reported one by one."""
EVIDENCE = "damaged-rows"
"""The directory in the data directory with what was read of damaged rows of the log."""
_FINAL = (
    "authentication failed",
    "no password supplied",
    "is not permitted to log in",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "pooling mode",
    "definition of service",
    "server does not support SSL",
    "certificate verify failed",
    "does not match host name",
    "requires a valid client certificate",
    "has group or world access",
    "unacceptable schema name",
)
"""What a server says when trying again will not help."""


class Standby:
    """A broker that does not own the store yet.

    Args:
        config: where the store is, and how long a lease is.
        node: the name of this broker.
        number: of the store in its cluster.
        report: called with a level and a line.
        patient: whether to wait for a server that refuses; else only for one that is away.

    Attributes:
        database: where the store is.
        seen: the row of the store at the last look; None before the first.
        nodes: the brokers of the store, as of a second ago.
        trouble: why the store cannot be looked at; "" while it can.
        ended: whether `end` was called.
        looked: called in the event loop after each look that did not end in a claim.

    Raises:
        StoreError: the data directory cannot be used, or the durability makes no sense.
    """

    def __init__(
        self,
        config: Config,
        node: str,
        number: int,
        report: Callable[[str, str], None],
        *,
        patient: bool = False,
    ) -> None:
        self.seen: StoreRow | None = None
        self.nodes: list[BrokerRow] = []
        self._address = self.trouble = ""
        self.looked: Callable[[], None] = lambda: None
        check_durability(config.durability)
        self._config = config
        self.database = Database(
            config.storage,
            schema_of(config.storage_schema, number),
            config.storage_lease_ms,
            node,
            config.durability,
        )
        self._report = report
        self._patient = patient
        self._number = number
        self._store = "the store" if config.storage_stores == 1 else f"store {number}"
        self._tables = Tables(self.database.schema)
        self._lock = DirectoryLock(config.data_dir)
        self._warn_of_local_messages()
        self._connection: Connection[Any] | None = None
        self._waiting: Connection[Any] | None = None
        self._watch = LeaseWatch(node)
        self._running = RunningBrokers(max(RUNNING_SECONDS, 2 * config.storage_lease_ms / _MS))
        self._namesakes: set[int] = set()
        self.ended = False
        self._pauses = 1
        self._noted_at = 0.0
        # What was said of damaged rows: the log is read again after each lost connection.
        self._damaged: set[str] = set()
        self._new = 0
        # When each damaged row was kept that an earlier start has reported, in seconds since 1970.
        self._kept_at: list[float] = []
        self._begin()

    def _warn_of_local_messages(self) -> None:
        if (self._config.data_dir / NAME).exists():
            self._report(
                "warning",
                f"the data directory {self._config.data_dir} has queues of its own, which are not "
                "used while storage is in PostgreSQL",
            )

    def _begin(self) -> None:
        self._root = empty_cache(self._config.data_dir)
        self._replica = Replica(str(self._root), OsFiles(str(self._root)))
        self._reader = LogReader(self._tables, self._replica, self._keep_damaged, self._note)

    def _keep_damaged(self, row: DamagedRow) -> None:
        """Report a damaged row of the log, once, and keep what was read of it.

        An earlier start may have reported it: the copy that it kept tells.
        """
        if row.text in self._damaged:
            return
        self._damaged.add(row.text)
        path = self._config.data_dir / EVIDENCE / f"{self.database.schema}-row-{row.number}"
        try:
            if path.is_file() and path.read_bytes() == row.content:
                self._kept_at.append(path.stat().st_mtime)
                return
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_bytes(row.content)
        except OSError as error:
            kept = f"; it could not be kept as {path}: {error.strerror or error}"
        else:
            kept = f"; it is kept as {path}" if row.content else ""
        self._new += 1
        if self._new <= _DAMAGE_SAID:
            self._report("error", f"{self._store}: {row.text}{kept}")

    def _sum_up_damage(self) -> None:
        """Say how many damaged rows there are that were not reported one by one."""
        more, self._new = self._new - _DAMAGE_SAID, min(self._new, _DAMAGE_SAID)
        if more > 0:
            self._report("error", f"{self._store}: {more} more rows of the log are damaged")
        kept_at, self._kept_at = self._kept_at, []
        if kept_at:
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(kept_at)))
            count = "1 row is" if len(kept_at) == 1 else f"{len(kept_at)} rows are"
            directory = self._config.data_dir / EVIDENCE
            self._report(
                "warning",
                f"{self._store}: {count} still damaged, reported since {since} and kept in "
                f"{directory}: `harebell store check` says what is lost",
            )

    def be_reached_at(self, address: str) -> None:
        """Let the other brokers know where clients reach this one."""
        self._address = address
        self._noted_at = 0.0

    def end(self) -> None:
        """Let `own` return soon, without the store; for the event loop."""
        if not self.ended:
            self.ended = True
            # The thread may wait for a server that never answers.
            asyncio.get_running_loop().call_later(STANDBY_END_SECONDS, self._cut)

    def _cut(self) -> None:
        """Shut the connection down, so that a statement that waits for its answer fails."""
        connection = self._waiting
        if connection is not None:
            with (
                contextlib.suppress(OSError, driver().Error),
                socket.socket(fileno=os.dup(connection.fileno())) as shared,
            ):
                shared.shutdown(socket.SHUT_RDWR)

    async def own(self) -> OwnedStore | None:
        """Wait until this broker owns the store; None after `end`.

        Raises:
            StoreError: the server cannot be used, in a sentence for the user.
        """
        reported = ""
        while not self.ended:
            try:
                owned = await asyncio.to_thread(self._step)
            except (driver().Error, StoreError) as error:
                reported = self.trouble = self._failed(error, reported)
                self.looked()
                for _ in range(self._pauses):
                    if not self.ended:
                        await asyncio.sleep(_RETRY_SECONDS)
                continue
            if owned is not None:
                return owned
            if reported:
                reported = self.trouble = ""
                self._report("info", f"{self.database.shown} answers again")
            self.looked()
            lease = self._config.storage_lease_ms / _MS
            await asyncio.sleep(min(lease / _LOOKS, STANDBY_LOOK_SECONDS))
        return None

    def close(self) -> None:
        """End without owning the store."""
        if self._connection is not None:
            with contextlib.suppress(driver().Error):
                forget_node(self._connection, self._tables, self.database.node)
        self._drop_connection()
        self._replica.close()
        self._lock.release()

    def _failed(self, error: Exception, reported: str) -> str:
        """Report that the server cannot be used; return what was reported.

        Raises:
            StoreError: waiting for it will not help.
        """
        self._drop_connection()
        self._watch.forget()
        final = isinstance(error, StoreError)
        text = str(error) if final else self.database.reason(error)
        if not self._patient and (final or any(each in text for each in _FINAL)):
            self.close()
            raise StoreError(text)
        # A server that comes back may be another one, with another end of the log.
        self._replica.close()
        self._begin()
        if text != reported:
            self._report("warning", f"waiting for the store: {text}")
        return text

    def _step(self) -> OwnedStore | None:
        """Follow the log, and claim the store if it has no owner."""
        connection = self._connected()
        self._note(connection)
        seen = read_store(connection, self._tables)
        read_at = now()
        before, self.seen = self.seen, seen
        self._check_name(seen)
        # Before a claim: who cannot read the log leaves the store to others.
        try:
            self._reader.follow(connection)
        except StoreError:
            self._pauses = min(2 * self._pauses, _PAUSES_MAX)
            raise
        self._sum_up_damage()
        self._pauses = 1
        # The owner was the process before this one, which has its directory: no lease to wait for.
        mine = was_owner(self._config.data_dir, seen.identity, seen.epoch) and not seen.drained
        if not self._watch.may_claim(seen, read_at) and not mine:
            if before is None or before.epoch != seen.epoch:
                self._report("info", f"standing by: {seen.owner} owns {self._store}")
            return None
        return self._claim(connection, seen)

    def _note(self, connection: Connection[Any]) -> None:
        """Say that this broker runs and how far it has read, and look for the others."""
        if time.monotonic() - self._noted_at > _NOTED_SECONDS:
            self._noted_at = time.monotonic()
            broker = (self.database.node, self._address, STANDBY, __version__)
            report_node(connection, self._tables, *broker, self._reader.number)
            self.nodes = self._running.rows(connection, self._tables)

    def _check_name(self, seen: StoreRow) -> None:
        """Check that the owner is not another broker with the same name.

        Raises:
            StoreError: it is.
        """
        if seen.released or seen.owner != self.database.node:
            self._namesakes.clear()
            return
        # A statement of the process before this one may still have been on its way.
        self._namesakes.add(seen.beat)
        if len(self._namesakes) > _NAMESAKE_BEATS:
            raise StoreError(
                f"another broker that is named '{seen.owner}' owns the store: set node_name, so "
                "that each broker of a store has a name of its own"
            )

    def _claim(self, connection: Connection[Any], seen: StoreRow) -> OwnedStore | None:
        # Before the statement is sent: the lease must not end later here than others think.
        began = now()
        epoch = claim(connection, self._tables, seen, self.database)
        if epoch is None:
            return None
        # If this process ends from here on, the next one finds that the lease is its own.
        note_claim(self._config.data_dir, seen.identity, epoch)
        ownership = Ownership(
            self.database, self._tables, epoch, began, __version__, self._report, self._running
        )
        writer = FencedLogWriter(self.database, self._tables, ownership, self._reader, self._report)
        try:
            writer.begin(self._reader, connection)
        except Deposed:
            ownership.end(release=False)
            return None
        except Exception:
            ownership.end(release=False)
            raise
        self._replica.close()
        self._drop_connection()
        where = self.database.shown
        self._report("info", f"this broker owns {self._store} in {where} (epoch {epoch})")
        return OwnedStore(
            self._lock, self._root, ownership, writer, self.database, self._number, self._config
        )

    def _connected(self) -> Connection[Any]:
        if self._connection is None:
            connection = self._waiting = self.database.connect()
            try:
                self._check_schema(connection)
                if self.seen is None:
                    self.database.check_pooling(connection)
                self._tables.make(connection)
                self._check_rights(connection)
                if self.seen is None:
                    self._report("info", commit_guarantee(connection, self._config.durability))
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _check_rights(self, connection: Connection[Any]) -> None:
        """Refuse a role that could not remove tables of the log, which another one has made.

        Raises:
            StoreError: it could not.
        """
        missing = missing_right(connection, self.database.schema)
        if missing:
            raise StoreError(f"{self.database.shown}: {missing}")

    def _check_schema(self, connection: Connection[Any]) -> None:
        """Refuse a schema that is a store of another cluster: store 2 of "a" is in "a_2".

        Raises:
            StoreError: it is.
        """
        schema = self.database.schema
        base, _, number = schema.rpartition("_")
        if self._number != FIRST_STORE:
            wrong = is_first(connection, schema)
            what = f"store {self._number} of this cluster, and storage_schema of another one"
        else:
            wrong = (
                number.isdecimal() and is_first(connection, base) and is_later(connection, schema)
            )
            what = f"store {number} of the cluster with storage_schema '{base}'"
        if wrong:
            raise StoreError(f"the schema '{schema}' is {what}: choose another storage_schema")

    def _drop_connection(self) -> None:
        connection, self._connection, self._waiting = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(driver().Error):
                connection.close()
