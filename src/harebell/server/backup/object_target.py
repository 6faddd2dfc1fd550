"""Backups in an object store, through pyarrow: s3://bucket/backups and other addresses it knows."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from harebell.store.backup.manifest import FILES, MANIFEST, BackupError, Manifest

_STORES = ("s3", "gcs", "abfs")
"""File systems of pyarrow without directories that have to be made."""
_DRAFT = f"{MANIFEST}.new"


class ObjectTarget:
    """A place in an object store.

    Args:
        address: of the place; credentials are those of the environment.

    Raises:
        BackupError: pyarrow is missing.
        OSError: the address cannot be used.
    """

    def __init__(self, address: str) -> None:
        try:
            # Imported only if it is used: it takes its time, and brokers do not need it.
            import pyarrow as pa
            from pyarrow import fs
        except ImportError:
            raise BackupError(
                f"a backup to {address} needs pyarrow: install it beside Harebell (pip install "
                "pyarrow), or give a directory"
            ) from None
        self.shown = address
        self._fs = fs
        self._kind: type[Exception] = pa.ArrowException
        with self._errors():
            self._store, base = fs.FileSystem.from_uri(address)
        self._base = base.rstrip("/")

    def held(self) -> AbstractContextManager[None]:
        """Do nothing: object stores have no locks."""
        return nullcontext()

    def names(self) -> list[str]:
        """Return the names in the place; none if there is no such place."""
        return sorted(info.base_name for info in self._listed(self._base))

    def has_manifest(self, name: str) -> bool:
        """Return whether a backup is finished."""
        with self._errors():
            return bool(self._store.get_file_info(self._at(name, MANIFEST)).is_file)

    def files(self, name: str) -> dict[str, int]:
        """Return the files of a backup by their paths below `files`, with their sizes."""
        root = self._at(name, FILES)
        return {
            info.path[len(root) + 1 :]: info.size
            for info in self._listed(root, recursive=True)
            if info.is_file
        }

    def read(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        with self._errors():
            file: BinaryIO = self._store.open_input_file(self._at(path))
            return file

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file; an existing one is replaced."""
        full = self._at(path)
        with self._errors():
            if self._store.type_name not in _STORES:
                self._store.create_dir(full.rpartition("/")[0], recursive=True)
            with self._store.open_output_stream(full) as file:
                for piece in pieces:
                    file.write(piece)

    def seal(self) -> None:
        """Do nothing: an object is durable when it is written."""

    def publish(self, name: str, manifest: Manifest) -> None:
        """Write the manifest of a backup as a whole or not at all."""
        self.write(f"{name}/{_DRAFT}", manifest.encode())
        with self._errors():
            self._store.move(self._at(name, _DRAFT), self._at(name, MANIFEST))

    def withdraw(self, name: str) -> None:
        """Remove the manifest of a backup: its other files are no backup any more."""
        with self._errors():
            self._store.delete_file(self._at(name, MANIFEST))

    def remove(self, name: str, paths: list[str], *, all_of_it: bool) -> None:
        """Remove files of a backup, or all of it."""
        with self._errors():
            if all_of_it:
                self._store.delete_dir(self._at(name))
            for path in paths:
                self._store.delete_file(self._at(name, FILES, path))

    def shares_disk_with(self, path: Path) -> bool:
        """Return False: an object store has its own disks."""
        return False

    def _at(self, *names: str) -> str:
        return "/".join((self._base, *names))

    def _listed(self, path: str, *, recursive: bool = False) -> Any:
        selector = self._fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        with self._errors():
            return self._store.get_file_info(selector)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of pyarrow as those of a file system, in one line."""
        try:
            yield
        except self._kind as error:
            raise OSError(errno.EIO, str(error).partition("\n")[0]) from None
