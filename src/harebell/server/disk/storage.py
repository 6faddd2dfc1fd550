"""The storage of a running broker: lock, files, definitions and store.

What is stored is in the data directory, or in PostgreSQL with files of the data directory as a
cache.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.durability import FSYNC, INTERVAL, Durability
from harebell.base.errors import StoreError
from harebell.base.gauge import Gauge
from harebell.base.lags import NEVER, lag_of
from harebell.base.osfs import OsFiles
from harebell.base.ports import log_identities
from harebell.model.publishing.stages import Room
from harebell.server.disk.damage import Damage
from harebell.server.disk.lock import DirectoryLock
from harebell.server.disk.reserve import FULL, Reserve
from harebell.server.disk.syncfs import whole_sync
from harebell.server.time_source import BrokerClock, MachineTime, TimeSource
from harebell.store.definitions import open_definitions
from harebell.store.disk import DiskStore
from harebell.store.limits import AHEAD_FROM_BYTES
from harebell.store.owners import Owners
from harebell.wire.v09.fields import decode_table, encode_table

if TYPE_CHECKING:
    from harebell.base.ports import Files
    from harebell.cluster.postgresql.owned_store import OwnedStore
    from harebell.config import Config
    from harebell.store.definitions import SqliteDefinitions
    from harebell.store.journal.recording import RecordedDefinitions

_MS = 1_000
REPLICATED = "replicated"
"""The durability of a store whose commits wait for another machine."""

_WEAKER = {
    INTERVAL: "durability is 'interval': a confirm does not wait for the disk, which is synced "
    "every {ms} ms; a power cut loses what was confirmed since",
    "os": "durability is 'os': a confirm does not wait for the disk, which is left to the system; "
    "a power cut loses what was confirmed lately",
}


def decoded_table(data: bytes) -> Mapping[str, Any]:
    """Decode a table of arguments from the definitions file."""
    return decode_table(data)[0]


class Storage:
    """An open data directory.

    Args:
        config: the path and the durability.
        gauge: counts the bytes of messages in memory.
        report: called with a level and a line for each report of damage.
        time_source: the clocks for timestamps and timers of messages; None for those of the
            machine.
        owned: the store in PostgreSQL; None for one in the data directory.

    Attributes:
        owned: as given.
        wall: the clock for timestamps of records and for timers.
        store: the queues' logs.
        durability: "fsync", "interval" or "os".
        free_limit: free bytes below which publishers are blocked; 0 for no limit.
        free: free bytes at the last check.
        reserve: disk space that is reserved for a full disk.
        damage: the reports of damage since the start.

    Raises:
        StoreError: the directory is in use or unusable; the text is for the user.
    """

    def __init__(
        self,
        config: Config,
        gauge: Gauge,
        report: Callable[[str, str], None],
        time_source: TimeSource | None = None,
        owned: OwnedStore | None = None,
    ) -> None:
        self.owned = owned
        self.wall = BrokerClock(time_source or MachineTime())
        self.durability = config.durability
        durability = Durability(
            config.durability if owned is None else FSYNC,
            config.durability_interval_ms if config.durability == INTERVAL else 0,
        )
        self._began = time.monotonic()
        self._synced_at: dict[int, float] = {}
        self.damage = Damage(report)
        files = self._open_owned(owned) if owned is not None else self._open(config, durability)
        self.store = DiskStore(
            files,
            self.definitions,
            gauge,
            self.wall,
            os.urandom,
            self.damage.report,
            segment_bytes=config.segment_bytes,
            clean=self.definitions.was_clean,
            ahead_from=AHEAD_FROM_BYTES if owned is None else sys.maxsize,
        )
        self.store.owner_of = Owners(self.definitions)
        self.store.stream_segment_bytes = config.stream_segment_bytes
        self.store.interval_ms = config.durability_interval_ms
        self.store.durability = durability
        self.free_limit = free_limit(config.disk_free_limit, self.files.total())
        self.free = self.files.free()
        self.reserve = Reserve(config.data_dir, self.files.total())
        self.reserve.renew(self.free)
        if config.durability in _WEAKER:
            line = _WEAKER[config.durability].format(ms=config.durability_interval_ms)
            report("warning", line)

    def _open(self, config: Config, durability: Durability) -> Files:
        """Open the data directory.

        Raises:
            StoreError: it is in use or unusable, or cannot be as durable as configured.
        """
        if config.durability == REPLICATED:
            raise StoreError(
                "durability is 'replicated', which needs storage in PostgreSQL: set storage to a "
                "URL, or durability to fsync"
            )
        self._lock = DirectoryLock(config.data_dir)
        root = os.fspath(config.data_dir)
        lag = lag_of(durability, config.durability_interval_ms)
        self._together = whole_sync(root)
        self.files = OsFiles(root, lag=lag, together=self._together, clock=time.monotonic)
        self.definitions: SqliteDefinitions | RecordedDefinitions
        try:
            self.definitions = open_definitions(
                root,
                self.files,
                encode_table,
                decoded_table,
                synced=config.durability == FSYNC,
            )
        except Exception:
            self._lock.release()
            raise
        return self.files

    def _open_owned(self, owned: OwnedStore) -> Files:
        """Open the cache of a store in PostgreSQL."""
        self._lock = owned.lock
        self._together = None
        self.files = OsFiles(os.fspath(owned.root), lag=NEVER)
        files, self.definitions = owned.open(self.files, encode_table, decoded_table)
        return files

    def begin(self) -> None:
        """Mark the directory as in use; a start that finds this mark follows a crash.

        Raises:
            StoreError: the mark cannot be written.
        """
        try:
            if self.store.clean(log_identities(self.definitions)):
                self._report_unclaimed()
            self._mark(clean=False)
            if self.owned is not None:
                # Before anything is delivered: else the next owner might trust the end before this
                # beginning, and deliver again without the mark of redelivery.
                self.owned.commit(self.files.syncs)
        except OSError as error:
            raise StoreError(f"cannot use the data directory: {error}") from None

    def _report_unclaimed(self) -> None:
        """Report the logs that belong to no queue: no client can have their messages."""
        # Imported only if there are any: a directory without damage has none.
        from harebell.store.check import Survey

        survey = Survey(self.store.files, self.definitions)
        for holding in survey.unclaimed():
            for text in holding.damage:
                self.damage.report("error", f"queues/{holding.identity}: {text}")
            if not (holding.messages or holding.damage):
                text = f"queues/{holding.identity} is empty, belongs to no queue and is left alone"
                self.damage.report("warning", text)
        survey.close()

    def set_limits(self, config: Config) -> None:
        """Take a new `disk_free_limit`."""
        self.free_limit = free_limit(config.disk_free_limit, self.files.total())

    def low(self) -> bool:
        """Query the free space; True if it is below the limit.

        An error counts as no free space, because an exception would stop the tick.
        """
        try:
            self.free = self.files.free()
        except OSError:
            self.free = 0
        if self.reserve.spent:
            self.reserve.renew(self.free)
        return self.free < self.free_limit or self.reserve.spent

    def room_for_stages(self, config: Config) -> Room:
        """Return the limits for staged messages."""
        return Room(self.free_limit, config.stage_user_limit, config.stage_vhost_limit)

    def room(self) -> str:
        """Describe the free space and the limit, for the log."""
        free = f"{self.free} bytes are free, disk_free_limit is {self.free_limit}"
        if not self.reserve.spent:
            return free
        return f"{free}, and {2 * self.reserve.byte_count} are needed after the disk was full"

    def _mark(self, *, clean: bool) -> None:
        """Write the mark of a clean shutdown; on a full disk, use the reserve."""
        try:
            self.definitions.mark(clean=clean)
        except OSError as error:
            if error.errno not in FULL or not self.reserve.spend():
                raise
            self.definitions.mark(clean=clean)

    def after_batch(self) -> None:
        """Finish a batch, in the flusher's thread: in PostgreSQL commit it, on disk do due syncs.

        Raises:
            OSError: a sync failed; with ENOSPC if PostgreSQL has no room now.
        """
        if self.owned is not None:
            self.owned.commit(self.files.syncs)
            return
        now = time.monotonic()
        for lag in self.files.owed():
            if now >= self._due(lag):
                self._synced_at[lag] = now
                self.files.sync_owed(lag)

    def _due(self, lag: int) -> float:
        """Return the monotonic time when syncs deferred by `lag` are due."""
        return self._synced_at.get(lag, self._began) + lag / _MS

    def sync_in(self) -> float | None:
        """Return the seconds until the next deferred sync is due; None if there is none."""
        owed = self.files.owed()
        if not owed:
            return None
        return max(0.0, min(map(self._due, owed)) - time.monotonic())

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""
        commit = self.store.commit
        return {
            "durability": self.durability,
            "commits": commit.done,
            "disk_free_bytes": self.free,
            "disk_free_limit_bytes": self.free_limit,
            **self.damage.overview(self.files),
            "storage": {"kind": "directory"} if self.owned is None else self.owned.overview(),
        }

    @property
    def longest_end_seconds(self) -> float | None:
        """Return how long the last commits are waited for; None for as long as it takes.

        What is not in PostgreSQL then was confirmed to no client, and another broker can serve.
        """
        return None if self.owned is None else self.owned.database.lease_ms / _MS

    def give_up(self) -> str:
        """Leave a store in PostgreSQL to another owner as it is; return why not all is written.

        A commit that is still on its way fails when the next owner has claimed the store.
        """
        if self.owned is None:
            return "the disk is full"
        self.owned.ownership.end(release=True)
        return "the database has no room, or does not answer"

    def end(self) -> None:
        """Close the directory; every change is on disk and every log is closed before.

        Raises:
            OSError: the last writes failed.
        """
        for lag in self.files.owed():
            self.files.sync_owed(lag)
        self.store.describe()
        self.store.shut()
        self._mark(clean=True)
        if self.owned is not None:
            self.owned.end()
        self.definitions.close()
        if self._together is not None:
            self._together.close()
        self._lock.release()


def free_limit(limit: float | int, total: int) -> int:
    """Return the limit in bytes, from a fraction of the disk (float) or bytes (int)."""
    return int(total * limit) if isinstance(limit, float) else limit
