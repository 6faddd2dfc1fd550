"""Record the changes that a store makes to its directory and its definitions.

The store works on ordinary files, which are only a cache: the recorded changes are durable. After
each batch the shell takes them and stores them as a whole, so nothing here syncs, and the redo file
is not needed. Files that a start empties or that only this machine needs are not recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from harebell.base.ports import Definitions, File, Files
from harebell.store.definitions import SqliteDefinitions
from harebell.store.journal.changes import (
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
from harebell.store.log.log_index import is_index
from harebell.store.tables import statements

_LOCAL = ("inventory", "inventory.new", "redo", "reserve", "staging", "stages", "transient")
"""Names in the data directory that are not recorded."""

_ROWS = {text: what for what, text in statements().items()}


class Journal:
    """The recorded changes, in order.

    The event loop writes parts of large messages while the flusher's thread takes what there is, so
    the queue is one that both may use without a lock.
    """

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()

    def add(self, change: Change) -> None:
        """Record a change."""
        self._changes.append(change)

    def take(self) -> list[Change]:
        """Return what was recorded until now, and forget it."""
        changes = self._changes
        return [changes.popleft() for _ in range(len(changes))]


class RecordedFile(File):
    """A file whose changes are recorded.

    Args:
        file: the file of the cache.
        path: its name for the journal.
        journal: records the changes.
    """

    __slots__ = ("_file", "_journal", "_path")

    def __init__(self, file: File, path: str, journal: Journal) -> None:
        self._file = file
        self._path = path
        self._journal = journal

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write bytes at an offset, and record those that were written."""
        done = self._file.write_at(data, offset)
        if done > 0:
            view = memoryview(data)[:done]
            # A view of immutable bytes is kept without a copy; a buffer may be overwritten before
            # the batch.
            kept = view if view.readonly else bytes(view)
            self._journal.add(Change(WRITE, offset, self._path, kept))
        return done

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` bytes from an offset."""
        return self._file.read_at(size, offset)

    def size(self) -> int:
        """Return the size in bytes."""
        return self._file.size()

    def truncate(self, size: int) -> None:
        """Truncate or extend the file to a size."""
        self._file.truncate(size)
        self._journal.add(Change(TRUNCATE, size, self._path))

    def sync(self) -> None:
        """No-op: the journal is what lasts."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class RecordedFiles(Files):
    """A directory whose changes are recorded.

    Args:
        files: the cache.
        journal: records the changes.
    """

    __slots__ = ("_files", "_journal")

    def __init__(self, files: Files, journal: Journal) -> None:
        self._files = files
        self._journal = journal

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing."""
        file = self._files.open(path, create=create)
        return RecordedFile(file, path, self._journal) if _lasts(path) else file

    def names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory."""
        return self._files.names(directory)

    def make_directory(self, directory: str) -> None:
        """Create a directory; one without files is not recorded."""
        self._files.make_directory(directory)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace a file of the new name."""
        self._files.rename(old, new)
        if _lasts(new):
            self._journal.add(Change(RENAME, 0, old, new.encode()))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._files.remove(path)
        if _lasts(path):
            self._journal.add(Change(REMOVE, 0, path))

    def remove_directory(self, directory: str) -> None:
        """Remove an empty directory."""
        self._files.remove_directory(directory)
        if _lasts(directory):
            self._journal.add(Change(RMDIR, 0, directory))

    def sync_directory(self, directory: str) -> None:
        """No-op: the journal is what lasts."""

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """No-op: the journal is what lasts."""

    def free(self) -> int:
        """Return the bytes that can still be written to the cache."""
        return self._files.free()


class RecordedDefinitions(Definitions):
    """Definitions whose changes are recorded.

    Args:
        definitions: those of the cache.
        journal: records the changes.
    """

    __slots__ = ("_definitions", "_journal")

    def __init__(self, definitions: SqliteDefinitions, journal: Journal) -> None:
        self._definitions = definitions
        self._journal = journal

    @property
    def was_clean(self) -> bool:
        """Whether the last process closed in good order."""
        return self._definitions.was_clean

    @property
    def gathered(self) -> bool:
        """Whether there are changes for the next commit."""
        return self._definitions.gathered

    def check(self, resource: str, table: Mapping[str, Any]) -> int:
        """Return the size of a table of arguments in bytes, or refuse it."""
        return self._definitions.check(resource, table)

    def whole(self) -> AbstractContextManager[None]:
        """Return a block whose changes are all gathered, or none of them if it raises."""
        return self._definitions.whole()

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition."""
        self._definitions.put(kind, key, fields)

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition if it exists."""
        self._definitions.drop(kind, key)

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Return all committed definitions of a kind."""
        return self._definitions.load(kind)

    def take(self) -> list[Any]:
        """Return the changes since the last call, for a commit."""
        return self._definitions.take()

    def write(self, changes: list[Any]) -> None:
        """Write changes to the cache, and record them."""
        # The cache first: if SQLite refuses a change, nothing is recorded.
        self._definitions.write(changes)
        for text, values in changes:
            kind, puts = _ROWS[text]
            data = msgspec.msgpack.encode(values)
            self._journal.add(Change(DEFINITION, int(puts), kind, data))

    def mark(self, clean: bool) -> None:
        """Store whether the directory is closed in good order."""
        self._definitions.mark(clean)
        self._journal.add(Change(MARK, int(clean)))

    def snapshot(self) -> Change:
        """Return the whole database as a change, in place of all changes before it."""
        return Change(SNAPSHOT, 0, "", self._definitions.image())

    def close(self) -> None:
        """Close the database."""
        self._definitions.close()


def _lasts(path: str) -> bool:
    # The indexes of logs and segments are made again from the segments.
    return path.partition("/")[0] not in _LOCAL and not is_index(path)
