"""A store in PostgreSQL that this broker owns: its cache, its lease and the writer of its log."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.base.errors import StoreError
from harebell.base.histogram import Histogram
from harebell.base.osfs import OsFiles
from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.fenced_log_writer import FencedLogWriter
from harebell.cluster.postgresql.figures import cluster_rows
from harebell.cluster.postgresql.ownership import Ownership
from harebell.server.disk.lock import DirectoryLock
from harebell.store.definitions import open_definitions
from harebell.store.journal.recording import Journal, RecordedDefinitions, RecordedFiles

if TYPE_CHECKING:
    from harebell.base.ports import Files
    from harebell.cluster.postgresql.shared_tables import ClusterTables
    from harebell.config import Config

CACHE = "cache"
"""The directory in the data directory with the files of the store; a start empties it."""
CLAIM = "claim"
"""The file in the data directory with the store and the epoch that its broker claimed last."""


class OwnedStore:
    """A store that this broker owns.

    Args:
        lock: of the data directory.
        root: the cache, which has what the log says.
        ownership: the claim.
        writer: of the log.
        database: where it is.
        number: of the store in its cluster.
        config: the configuration.

    Attributes:
        ownership: as given.
        root: as given.
        lock: as given.
        database: as given.
        number: as given.
        node: the name of this broker.
    """

    def __init__(
        self,
        lock: DirectoryLock,
        root: Path,
        ownership: Ownership,
        writer: FencedLogWriter,
        database: Database,
        number: int,
        config: Config,
    ) -> None:
        self.node = database.node
        self.database = database
        self.number = number
        self.lock = lock
        self.root = root
        self.ownership = ownership
        self._config = config
        self._writer = writer
        self._journal = Journal()
        self._definitions: RecordedDefinitions

    @property
    def socket(self) -> None:
        """The cluster port is one of TCP: see `harebell.cluster.shared.Member`."""

    def shared(self) -> ClusterTables:
        """Return what the stores of the cluster share."""
        return shared_tables(self.database, self._config)

    def claim(self) -> int:
        """Return the epoch of the claim."""
        return self.ownership.epoch

    def publish(self, addresses: dict[str, str]) -> None:
        """Let the other brokers know where this one is reached, by scheme."""
        self.ownership.publish(addresses)

    def open(
        self,
        files: OsFiles,
        encode: Callable[[Mapping[str, Any]], bytes],
        decode: Callable[[bytes], Mapping[str, Any]],
    ) -> tuple[Files, RecordedDefinitions]:
        """Return the files and the definitions of the cache, with their changes recorded.

        Raises:
            StoreError: they cannot be used.
        """
        opened = open_definitions(str(self.root), files, encode, decode, synced=False)
        self._definitions = RecordedDefinitions(opened, self._journal)
        self._writer.attach(files, self._definitions.snapshot)
        # Whole, because opening may have created or upgraded them without a recorded change.
        self._journal.add(self._definitions.snapshot())
        return RecordedFiles(files, self._journal), self._definitions

    def commit(self, syncs: Histogram) -> None:
        """Append to the log what was recorded; called in the flusher's thread.

        Raises:
            Deposed: this broker does not own the store any more.
            OSError: with ENOSPC if the server has no room; call it again then.
        """
        began = time.monotonic()
        self._writer.append(self._journal.take())
        syncs.observe(time.monotonic() - began)

    def send(self) -> int:
        """Send what was recorded, and do not wait; called in the event loop.

        Returns:
            A file descriptor that can be read when there is an answer: call `answered` then. -1 if
            `commit` has to be called in the flusher's thread.
        """
        return self._writer.send(self._journal.take())

    def answered(self) -> bool | None:
        """Return whether what was sent is committed; None if there is no answer yet.

        If it is not or not for sure, `commit` has to find out in the flusher's thread.
        """
        return self._writer.answered()

    def needs_cleaning(self) -> bool:
        """Return whether `clean` has something to do."""
        return self._writer.needs_cleaning()

    def clean(self) -> None:
        """Keep the log small; called in the flusher's thread, when no commit waits.

        Raises:
            Deposed: this broker does not own the store any more.
            OSError: with ENOSPC if the server has no room; call it again then.
        """
        self._writer.clean()

    def nodes(self) -> list[dict[str, Any]]:
        """Return the brokers of the store, as of the last renewal of the lease."""
        return cluster_rows(self.number, self.ownership.nodes, self.ownership.log.lag_of)

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""
        return {
            "kind": "postgresql",
            "store": self.number,
            "epoch": self.ownership.epoch,
            "owner": self.node,
            "lease_seconds": round(self.ownership.seconds_left, 3),
            **self._writer.figures(),
        }

    def end(self) -> None:
        """Append the rest, and give the store back."""
        self._writer.append(self._journal.take())
        self._writer.close()
        self.ownership.end(release=True)


def shared_tables(database: Database, config: Config) -> ClusterTables:
    """Return the tables that the stores of a cluster share."""
    # Imported only if it is used: it loads the driver of PostgreSQL.
    from harebell.cluster.postgresql.shared_tables import ClusterTables

    return ClusterTables(database, config.storage_schema, config.storage_stores)


def note_claim(data_dir: Path, identity: str, epoch: int) -> None:
    """Note in the data directory that its broker claims a store.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        (data_dir / CLAIM).write_text(f"{identity} {epoch}\n")
    except OSError as error:
        raise StoreError(f"cannot write {data_dir / CLAIM}: {error.strerror or error}") from None


def was_owner(data_dir: Path, identity: str, epoch: int) -> bool:
    """True if the owner of a store was the broker of this data directory.

    That broker is gone, since this process has the lock of the directory. So the end of its lease
    need not be waited for.
    """
    try:
        return (data_dir / CLAIM).read_text() == f"{identity} {epoch}\n"
    except (OSError, ValueError):
        return False


def empty_cache(data_dir: Path) -> Path:
    """Return the cache of a data directory, empty.

    Raises:
        StoreError: it cannot be emptied or created.
    """
    root = data_dir / CACHE
    try:
        if root.exists():
            shutil.rmtree(root)
        root.mkdir(mode=0o700)
    except OSError as error:
        raise StoreError(
            f"cannot empty {root}, the cache of the store: {error.strerror or error}"
        ) from None
    return root
