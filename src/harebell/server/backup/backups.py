"""The backups of a running broker, as its event loop sees them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.server.backup.kept import KeptFiles
from harebell.server.limits import (
    BACKUP_END_SECONDS,
    BACKUP_LOOK_SECONDS,
    BACKUP_OTHERS_SECONDS,
    BACKUP_RETRY_SECONDS,
    BACKUP_ROWS,
)
from harebell.store.backup.cut import Cut
from harebell.store.backup.manifest import BackupError

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.server.backup.making import Making
    from harebell.server.backup.part import OwnPart, Part
    from harebell.server.disk.storage import Storage

RUNNING, DONE, FAILED = "running", "done", "failed"
_POSTGRESQL = (
    "this broker keeps everything in PostgreSQL: back the database up by its own means, such as "
    "base backups with archived WAL, or pg_dump; docs/guides/postgresql.md says how"
)


class Backups:
    """Makes backups, one at a time, when it is told to or when one is due.

    Args:
        loop: the event loop.
        storage: the open data directory.
        config: returns the configuration.
        node: the name of the broker.
        log: called with a level and a line.

    Attributes:
        failures: how many have failed since the start.
        made: how many were completed since the start.
        others: returns the data directories of the other workers; raises BackupError if one is
            away.
        in_charge: whether this process makes the backups of the configuration.
        all_there: returns whether all other workers serve.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        storage: Storage,
        config: Callable[[], Config],
        node: str,
        log: Callable[[str, str], None],
    ) -> None:
        self.failures = self.made = 0
        self.others: Callable[[], list[Part]] = list
        self.in_charge = True
        self.all_there: Callable[[], bool] = lambda: True
        self._began = time.monotonic()
        self._newest: float | None = None
        self._last: tuple[float, int, int] | tuple[None, None, None] = (None, None, None)
        self._loop = loop
        self._storage = storage
        self._config = config
        self._node = node
        self._log = log
        self._next = 0
        self._rows: deque[dict[str, Any]] = deque(maxlen=BACKUP_ROWS)
        self._making: Making | None = None
        self._thread: threading.Thread | None = None
        self._due = 0.0

    # --- for commands -----------------------------------------------------------------------------

    def start(self, place: str, keep: int, rate: int) -> dict[str, Any]:
        """Start a backup; return its row.

        Args:
            place: the target, a path or an address.
            keep: how many backups to keep there; 0 for all.
            rate: most bytes per second that are copied; 0 for no limit.

        Raises:
            BackupError: it cannot be started, in a sentence for the user.
        """
        if self._making is not None:
            raise BackupError(
                f"a backup to {self._making.order.place} is being made: wait for its end, "
                "or end it with `harebell backups cancel`"
            )
        self._begin(place, keep, rate)
        return self.rows()[-1]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each backup since the start, the last ones if they are many."""
        making = self._making
        if making is not None:
            self._rows[-1].update(_figures(making))
        return list(self._rows)

    def cancel(self) -> None:
        """End the backup that is being made.

        Raises:
            BackupError: there is none.
        """
        if self._making is None:
            raise BackupError("no backup is being made")
        self._making.stop.set()

    def figures(self) -> tuple[float | None, ...]:
        """Return the values of the metrics; None for what is not known."""
        running = int(self._making is not None)
        return self._newest, *self._last, self.made, self.failures, running

    # --- now and then -----------------------------------------------------------------------------

    def look(self) -> None:
        """Start the backup of the configuration if it is due."""
        config = self._config()
        every = config.backup_interval_seconds
        now = time.monotonic()
        # With several workers that of store 1 makes the backups of all.
        if not self.in_charge or not config.backup_target or not every:
            return
        if self._making is not None or now < self._due:
            return
        if not self.all_there() and now < self._began + BACKUP_OTHERS_SECONDS:
            return
        self._due = now + min(every, BACKUP_LOOK_SECONDS)
        try:
            self._begin(config.backup_target, config.backup_keep, config.backup_rate, every)
        except BackupError as error:
            self.failures += 1
            self._log("error", str(error))

    async def stop(self) -> None:
        """End the backup that is being made; a target that hangs is not waited for."""
        if self._making is not None and self._thread is not None:
            self._making.stop.set()
            await asyncio.to_thread(self._thread.join, BACKUP_END_SECONDS)

    # --- inside -----------------------------------------------------------------------------------

    def _begin(self, place: str, keep: int, rate: int, every: float = 0) -> None:
        """Start the thread of a backup; with `every`, it ends if a backup is not so old yet."""
        storage, config = self._storage, self._config()
        if storage.owned is not None:
            raise BackupError(_POSTGRESQL)
        # Imported when a backup is made: most brokers make none for a long time.
        from harebell.server.backup.making import Making, Order
        from harebell.server.backup.target import checked_place

        checked_place(place)
        about = {"node": self._node, "version": __version__}
        order = Order(place, keep, rate, about, config.backup_timeout_seconds, every)
        making = Making(order, [self.part(), *self.others()], storage.free_limit)
        self._making = making
        self._next += 1
        self._rows.append(
            {
                "id": self._next,
                "target": place,
                "state": RUNNING,
                "problem": "",
                "began": _now(),
                "ended": "",
                **_figures(making),
            }
        )
        self._thread = threading.Thread(
            target=self._run, args=(making,), name="backup", daemon=True
        )
        self._thread.start()

    def part(self) -> OwnPart:
        """Return the data directory of this process, for one backup."""
        from harebell.server.backup.part import OwnPart

        kept = KeptFiles(self._storage.files)
        return OwnPart(self._config().data_dir, kept, self._cut_soon)

    def _run(self, making: Making) -> None:
        """Make a backup, in its thread."""
        problem = making.run()
        # After a stop nothing waits for it, and the loop may be closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended, making, problem)

    def _cut_soon(self, link: sqlite3.Connection, keep: Callable[[str], None]) -> Future[Cut]:
        """Begin a cut when no batch is being written; called in the thread."""
        done: Future[Cut] = Future()
        commit = self._storage.store.commit
        self._loop.call_soon_threadsafe(commit.between, lambda: self._cut(link, keep, done))
        return done

    def _cut(
        self, link: sqlite3.Connection, keep: Callable[[str], None], done: Future[Cut]
    ) -> None:
        """Begin a cut: what is on disk is what the last commit left."""
        store = self._storage.store
        try:
            # This transaction reads the definitions of this moment until it ends.
            link.execute("BEGIN")
            link.execute("SELECT version FROM meta").fetchone()
        except sqlite3.Error as error:
            done.set_exception(error)
            return
        # A log that is deleted by the commit that gathers is among the dirty ones alone.
        logs = [*store.logs.values(), *store.commit.dirty]
        store.commit.cut = Cut(store.commit.done, logs, keep)
        self._note(store.commit.cut, done)

    def _note(self, cut: Cut, done: Future[Cut]) -> None:
        """Note some logs; the others follow in the next turns."""
        if not cut.note_some():
            self._loop.call_soon(self._note, cut, done)
            return
        self._storage.store.commit.cut = None
        done.set_result(cut)

    def _ended(self, making: Making, problem: str) -> None:
        self._making = self._thread = None
        row = self._rows[-1]
        if making.newest is not None:
            from harebell.server.backup.making import made_at

            self._newest = made_at(making.newest)
        if making.not_due_seconds:
            self._due = time.monotonic() + min(making.not_due_seconds, BACKUP_LOOK_SECONDS)
            self._rows.pop()
            return
        row.update(_figures(making), ended=_now(), problem=problem)
        row["state"] = FAILED if problem else DONE
        if problem:
            self.failures += 1
            self._due = min(self._due, time.monotonic() + BACKUP_RETRY_SECONDS)
            self._log("error", problem)
            return
        self.made += 1
        self._last = (making.seconds, making.byte_count, making.copied_bytes)
        self._log(
            "info",
            f"backup {making.name} in {row['target']} is complete: {making.files} files, of which "
            f"{making.copied_files} with {making.copied_bytes} bytes were copied",
        )


def _figures(making: Making) -> dict[str, Any]:
    return {
        "name": making.name,
        "commit": making.commit,
        "files": making.files,
        "bytes": making.byte_count,
        "copied_files": making.copied_files,
        "copied_bytes": making.copied_bytes,
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
