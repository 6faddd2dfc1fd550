"""Replay recorded changes in a directory, which becomes equal to the recorded one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import PurePosixPath

import msgspec

from harebell.base.errors import StoreError
from harebell.base.ports import File, Files, write_all
from harebell.store.definitions import NAME
from harebell.store.journal.changes import (
    ALIVE,
    DEFINITION,
    MARK,
    REMOVE,
    RENAME,
    RMDIR,
    SNAPSHOT,
    TRUNCATE,
    WRITE,
    Change,
)
from harebell.store.tables import statements

_OPEN_FILES = 64
_STATEMENTS = statements()


class Replica:
    """A directory in which recorded changes are made.

    Args:
        root: the directory, an absolute path.
        files: the same directory; empty at first.

    Attributes:
        epoch: of the newest claim that was replayed.
        written: bytes that were written.
    """

    def __init__(self, root: str, files: Files) -> None:
        self._database = str(PurePosixPath(root) / NAME)
        self._files = files
        self._open: dict[str, File] = {}
        self._made: set[str] = set()
        self._link: sqlite3.Connection | None = None
        self._has_image = False
        self._skipped = False
        self._failure = ""
        self.epoch = 0
        self.written = 0

    def replay(self, changes: Iterable[Change]) -> None:
        """Make changes, in order.

        Raises:
            OSError: the disk refuses.
            StoreError: the changes do not fit what was replayed before.
        """
        for change in changes:
            self._make(change)
        if self._link is not None and self._link.in_transaction:
            try:
                self._link.execute("COMMIT")
            except sqlite3.Error as error:
                self._lose_image(error)

    @property
    def has_image(self) -> bool:
        """Whether there are definitions that can be changed."""
        return self._has_image

    def fill(self, change: Change) -> bool:
        """Write bytes that may be damaged, unless there is something already where they go.

        Raises:
            OSError: the disk refuses.
        """
        file = self._file(change.name)
        there = min(max(file.size() - change.number, 0), len(change.data))
        if there and any(file.read_at(there, change.number)):
            return False
        self._make(change)
        return True

    def distrust(self) -> None:
        """Have the start look at every record of the files: some are damaged or missing."""
        if self._has_image:
            self._execute("UPDATE meta SET clean = ?", (0,))
        if self._link is not None and self._link.in_transaction:
            self._link.execute("COMMIT")

    def check(self) -> None:
        """Check, after everything was replayed, that no change of the definitions was skipped.

        Raises:
            StoreError: changes were skipped, and no later image of the database has replaced them.
        """
        if self._skipped and not self._has_image:
            why = self._failure or "the log has no definitions: restore the database from a backup"
            raise StoreError(why)

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        if self._link is not None:
            self._link.close()
            self._link = None

    def _make(self, change: Change) -> None:
        kind, number, name, data = change
        if kind == WRITE:
            write_all(self._file(name), data, number)
            self.written += len(data)
        elif kind == DEFINITION:
            self._execute(_STATEMENTS[name, bool(number)], msgspec.msgpack.decode(data))
        elif kind == TRUNCATE:
            self._file(name).truncate(number)
        elif kind == REMOVE:
            self._remove(name)
        elif kind == RENAME:
            self._forget(name)
            self._forget(str(data, "utf-8"))
            with suppress(FileNotFoundError):
                self._files.rename(name, str(data, "utf-8"))
        elif kind == RMDIR:
            self._remove_directory(name)
        elif kind == MARK:
            self._execute("UPDATE meta SET clean = ?", (number,))
        elif kind == SNAPSHOT:
            self._replace(data)
        elif kind == ALIVE:
            self._keep(msgspec.msgpack.decode(data))
        else:
            # A claim says who wrote what follows; the end of a generation says nothing here.
            self.epoch = max(self.epoch, number)

    def _file(self, path: str) -> File:
        file = self._open.get(path)
        if file is None:
            # Not the one used last, but the one opened first: changes of a row are mostly for few
            # files.
            if len(self._open) >= _OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            directory = path.rpartition("/")[0]
            if directory and directory not in self._made:
                self._files.make_directory(directory)
                self._made.add(directory)
            file = self._open[path] = self._files.open(path, create=True)
        return file

    def _forget(self, path: str) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.close()

    def _remove(self, path: str) -> None:
        self._forget(path)
        with suppress(FileNotFoundError):
            self._files.remove(path)

    def _remove_directory(self, directory: str) -> None:
        self._made.discard(directory)
        for name in self._files.names(directory):
            self._remove(f"{directory}/{name}")
        with suppress(FileNotFoundError):
            self._files.remove_directory(directory)

    def _keep(self, alive: dict[str, int]) -> None:
        """Remove files that no longer exist: the rows of their removal are gone from the log."""
        for directory in ("queues", "quarantine"):
            for path in self._below(directory):
                if path not in alive:
                    self._remove(path)
        for path, size in alive.items():
            file = self._file(path)
            if file.size() > size:
                file.truncate(size)

    def _below(self, directory: str) -> list[str]:
        paths = []
        for name in self._files.names(directory):
            path = f"{directory}/{name}"
            below = self._files.names(path) if directory == "queues" else []
            paths += [f"{path}/{each}" for each in below] if directory == "queues" else [path]
        return paths

    def _replace(self, image: bytes | memoryview) -> None:
        """Replace the database of definitions."""
        self._has_image = True
        self._skipped, self._failure = False, ""
        if self._link is not None:
            self._link.close()
            self._link = None
        for name in (NAME, f"{NAME}-wal", f"{NAME}-shm"):
            with suppress(FileNotFoundError):
                self._files.remove(name)
        file = self._files.open(NAME, create=True)
        try:
            write_all(file, image, 0)
        finally:
            file.close()

    def _execute(self, statement: str, values: tuple[object, ...] | list[object]) -> None:
        if not self._has_image:
            # The image that this changed is gone with its generation, because a later one follows.
            self._skipped = True
            return
        try:
            self._change(statement, values)
        except sqlite3.Error as error:
            self._lose_image(error)

    def _change(self, statement: str, values: tuple[object, ...] | list[object]) -> None:
        if self._link is None:
            uri = f"{PurePosixPath(self._database).as_uri()}?mode=rw"
            # One thread at a time has the replica.
            self._link = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False
            )
            # Nothing is synced: the directory is a cache, which is filled again after a crash.
            self._link.execute("PRAGMA synchronous = OFF")
        if not self._link.in_transaction:
            self._link.execute("BEGIN")
        self._link.execute(statement, values)

    def _lose_image(self, error: sqlite3.Error) -> None:
        """Skip changes up to the next image, as if there was none.

        The image may be older than the one that the changes were for, if that one is gone with its
        generation; it may even be of another version.
        """
        self._failure = f"cannot write {self._database}: {error}"
        self._has_image, self._skipped = False, True
        if self._link is not None:
            self._link.close()
            self._link = None
