"""Look at a backup as at a data directory, without restoring it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from harebell.base.ports import File, Files
from harebell.cluster.stores import DIRECTORY, FIRST_STORE
from harebell.server.backup.restoring import checked, chosen
from harebell.server.backup.target import ADDRESS, Target, target_at
from harebell.server.disk.storage import decoded_table
from harebell.store.backup.manifest import BackedUp, BackupError, Manifest, is_name
from harebell.store.check import Survey
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.definitions import read_definitions
from harebell.wire.v09.fields import encode_table


class _StoredFile(File):
    """A file of a backup, open for reading.

    Args:
        file: its bytes.
        size: how many there are.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` bytes from an offset."""
        self._file.seek(offset)
        return self._file.read(size)

    def size(self) -> int:
        """Return the size in bytes."""
        return self._size

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class BackupFiles(Files):
    """The files of a backup under their paths in the data directory, for reading.

    Args:
        target: where the backup is.
        files: those of one data directory.
    """

    def __init__(self, target: Target, files: Mapping[str, BackedUp]) -> None:
        self._target = target
        self._files = files
        self._names: dict[str, set[str]] = {}
        for path in files:
            while path:
                path, _, name = path.rpartition("/")
                self._names.setdefault(path, set()).add(name)

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading."""
        file = self._files.get(path)
        if file is None:
            raise FileNotFoundError(2, os.strerror(2), path)
        return _StoredFile(self._target.read(file.stored), file.size)

    def names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        return sorted(self._names.get(directory, ()))

    def free(self) -> int:
        """Return 0: nothing is written."""
        return 0


def has_backups(place: str) -> bool:
    """Return whether a place is the target of backups, and no data directory."""
    if ADDRESS in place:
        return True
    with suppress(OSError):
        return any(map(is_name, os.listdir(place)))
    return False


def stores_in(place: str, name: str) -> int:
    """Return how many stores a backup has.

    Args:
        place: the target, an absolute path or an address.
        name: of the backup; "" for the newest.

    Raises:
        StoreError: there is no such backup.
        OSError: it cannot be read.
    """
    return chosen(target_at(place), name).stores


@contextmanager
def surveyed(place: str, name: str, store: int = FIRST_STORE) -> Iterator[tuple[Survey, list[str]]]:
    """Survey a store of a backup; yield the survey, and a sentence for each file that is damaged.

    Args:
        place: the target, an absolute path or an address.
        name: of the backup; "" for the newest.
        store: the number of the store.

    Raises:
        StoreError: there is no such backup, or its definitions are damaged.
        OSError: it cannot be read.
    """
    target = target_at(place)
    manifest = chosen(target, name)
    prefix = "" if store == FIRST_STORE else f"{DIRECTORY}/{store}/"
    own = {
        path.removeprefix(prefix): file
        for path, file in manifest.files.items()
        if (path.startswith(prefix) if prefix else not path.startswith(f"{DIRECTORY}/"))
    }
    complaints = [text for file in own.values() if (text := _damage(target, manifest, file))]
    files = BackupFiles(target, own)
    with TemporaryDirectory(prefix="harebell-store-") as aside:
        with target.read(own[DEFINITIONS].stored) as file:
            (Path(aside) / DEFINITIONS).write_bytes(file.read())
        definitions = read_definitions(
            "/", files, encode_table, decoded_table, sealed=True, copied=aside
        )
        try:
            survey = Survey(files, definitions)
            yield survey, complaints
            survey.close()
        finally:
            definitions.detach()


def _damage(target: Target, manifest: Manifest, file: BackedUp) -> str:
    try:
        for _ in checked(target, manifest, file):
            pass
    except BackupError as error:
        return str(error)
    return ""
