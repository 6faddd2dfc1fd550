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
from harebell.base.limits import STANDBY_END_SECONDS, STANDBY_LOOK_SECONDS
from harebell.base.osfs import OsFiles
from harebell.server.cluster.stores import FIRST_STORE, schema_of
from harebell.server.disk.lock import DirectoryLock
from harebell.server.postgresql.database import (
    Database,
    check_durability,
    commit_guarantee,
    driver,
    missing_right,
)
from harebell.server.postgresql.log_reader import LogReader
from harebell.server.postgresql.log_writer import LogWriter
from harebell.server.postgresql.owned_store import OwnedStore, empty_cache, note_claim, was_owner
from harebell.server.postgresql.ownership import (
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
from harebell.server.postgresql.tables import Tables, is_first, is_later
from harebell.store.definitions import NAME
from harebell.store.journal.replaying import Replica

if TYPE_CHECKING:
    from psycopg import Connection

    from harebell.server.config import Config

_MS = 1_000
_LOOKS = 12
"""Looks at the row of the store per lease."""
_RETRY_SECONDS = 0.25
_PAUSES_MAX = 16
"""So many of them before a log with an error is read again, from its beginning."""
_NOTED_SECONDS = 1.0
_NAMESAKE_BEATS = 3
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
        self._link: Connection[Any] | None = None
        self._waiting: Connection[Any] | None = None
        self._watch = LeaseWatch(node)
        self._running = RunningBrokers(max(RUNNING_SECONDS, 2 * config.storage_lease_ms / _MS))
        self._namesakes: set[int] = set()
        self.ended = False
        self._pauses = 1
        self._noted_at = 0.0
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
        self._reader = LogReader(self._tables, self._replica)

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
        link = self._waiting
        if link is not None:
            with (
                contextlib.suppress(OSError, driver().Error),
                socket.socket(fileno=os.dup(link.fileno())) as shared,
            ):
                shared.shutdown(socket.SHUT_RDWR)

    async def own(self) -> OwnedStore | None:
        """Wait until this broker owns the store; None after `end`.

        Raises:
            StoreError: the server cannot be used, in a sentence for the user.
        """
        said = ""
        while not self.ended:
            try:
                owned = await asyncio.to_thread(self._step)
            except (driver().Error, StoreError) as error:
                said = self.trouble = self._failed(error, said)
                self.looked()
                for _ in range(self._pauses):
                    if not self.ended:
                        await asyncio.sleep(_RETRY_SECONDS)
                continue
            if owned is not None:
                return owned
            if said:
                said = self.trouble = ""
                self._report("info", f"{self.database.shown} answers again")
            self.looked()
            lease = self._config.storage_lease_ms / _MS
            await asyncio.sleep(min(lease / _LOOKS, STANDBY_LOOK_SECONDS))
        return None

    def close(self) -> None:
        """End without owning the store."""
        if self._link is not None:
            with contextlib.suppress(driver().Error):
                forget_node(self._link, self._tables, self.database.node)
        self._drop_link()
        self._replica.close()
        self._lock.release()

    def _failed(self, error: Exception, said: str) -> str:
        """Report that the server cannot be used; return what was said.

        Raises:
            StoreError: waiting for it will not help.
        """
        self._drop_link()
        self._watch.forget()
        final = isinstance(error, StoreError)
        text = str(error) if final else self.database.reason(error)
        if not self._patient and (final or any(each in text for each in _FINAL)):
            self.close()
            raise StoreError(text)
        # A server that comes back may be another one, with another end of the log.
        self._replica.close()
        self._begin()
        if text != said:
            self._report("warning", f"waiting for the store: {text}")
        return text

    # --- in a thread ------------------------------------------------------------------------------

    def _step(self) -> OwnedStore | None:
        """Follow the log, and claim the store if it has no owner."""
        link = self._connected()
        if time.monotonic() - self._noted_at > _NOTED_SECONDS:
            self._noted_at = time.monotonic()
            node = self.database.node
            report_node(link, self._tables, node, self._address, STANDBY, __version__)
            self.nodes = self._running.rows(link, self._tables)
        seen = read_store(link, self._tables)
        asked = now()
        before, self.seen = self.seen, seen
        self._check_name(seen)
        try:
            self._reader.follow(link)
        except StoreError:
            self._pauses = min(2 * self._pauses, _PAUSES_MAX)
            raise
        self._pauses = 1
        mine = was_owner(self._config.data_dir, seen.identity, seen.epoch) and not seen.drained
        if not self._watch.may_claim(seen, asked) and not mine:
            if before is None or before.epoch != seen.epoch:
                self._report("info", f"standing by: {seen.owner} owns {self._store}")
            return None
        return self._claim(link, seen)

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

    def _claim(self, link: Connection[Any], seen: StoreRow) -> OwnedStore | None:
        began = now()
        epoch = claim(link, self._tables, seen, self.database)
        if epoch is None:
            return None
        note_claim(self._config.data_dir, seen.identity, epoch)
        ownership = Ownership(
            self.database, self._tables, epoch, began, __version__, self._report, self._running
        )
        writer = LogWriter(self.database, self._tables, ownership, self._reader, self._report)
        try:
            writer.begin(self._reader, link)
        except Deposed:
            ownership.end(release=False)
            return None
        except Exception:
            ownership.end(release=False)
            raise
        self._replica.close()
        self._drop_link()
        where = self.database.shown
        self._report("info", f"this broker owns {self._store} in {where} (epoch {epoch})")
        return OwnedStore(self._lock, self._root, ownership, writer, self.database, self._number)

    def _connected(self) -> Connection[Any]:
        if self._link is None:
            link = self._waiting = self.database.connect()
            try:
                self._check_schema(link)
                if self.seen is None:
                    self.database.check_pooling(link)
                self._tables.make(link)
                self._check_rights(link)
                if self.seen is None:
                    self._report("info", commit_guarantee(link, self._config.durability))
            except BaseException:
                link.close()
                raise
            self._link = link
        return self._link

    def _check_rights(self, link: Connection[Any]) -> None:
        """Refuse a role that could not remove tables of the log, which another one has made.

        Raises:
            StoreError: it could not.
        """
        missing = missing_right(link, self.database.schema)
        if missing:
            raise StoreError(f"{self.database.shown}: {missing}")

    def _check_schema(self, link: Connection[Any]) -> None:
        """Refuse a schema that is a store of another cluster: store 2 of "a" is in "a_2".

        Raises:
            StoreError: it is.
        """
        schema = self.database.schema
        base, _, number = schema.rpartition("_")
        if self._number != FIRST_STORE:
            wrong = is_first(link, schema)
            what = f"store {self._number} of this cluster, and storage_schema of another one"
        else:
            wrong = number.isdecimal() and is_first(link, base) and is_later(link, schema)
            what = f"store {number} of the cluster with storage_schema '{base}'"
        if wrong:
            raise StoreError(f"the schema '{schema}' is {what}: choose another storage_schema")

    def _drop_link(self) -> None:
        link, self._link, self._waiting = self._link, None, None
        if link is not None:
            with contextlib.suppress(driver().Error):
                link.close()
