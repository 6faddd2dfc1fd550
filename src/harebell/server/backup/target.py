"""Where backups are kept: a directory, or a place in an object store (`object_target.py`).

Both have the same files, which `harebell.store.backup.manifest` draws. A file is written once,
under its final name; the manifest, which comes last, makes the files before it a backup.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from harebell.base.osfs import sync_path
from harebell.base.printable import printable
from harebell.config.values import backup_place
from harebell.server.disk.syncfs import whole_sync
from harebell.store.backup.manifest import (
    FILES,
    MANIFEST,
    BackupError,
    Manifest,
    decode,
    is_name,
    number_of,
)

_LOCK = "LOCK"
_DRAFT = f"{MANIFEST}.new"
_OWN = frozenset((_LOCK, "lost+found"))
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
ADDRESS = "://"


class Target(Protocol):
    """A place of backups. Every method may raise OSError and BackupError.

    Attributes:
        shown: the place, for people.
    """

    shown: str

    def held(self) -> AbstractContextManager[None]:
        """Make the place, and keep other backups out of it where that is possible."""

    def names(self) -> list[str]:
        """Return the names in the place; none if there is no such place."""

    def has_manifest(self, name: str) -> bool:
        """Return whether a backup is finished."""

    def files(self, name: str) -> dict[str, int]:
        """Return the files of a backup by their paths below `files`, with their sizes."""

    def read(self, path: str) -> BinaryIO:
        """Open a file for reading."""

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file; an existing one is replaced."""

    def seal(self) -> None:
        """Return when everything that was written is durable."""

    def publish(self, name: str, manifest: Manifest) -> None:
        """Write the manifest of a backup, durably, as a whole or not at all."""

    def withdraw(self, name: str) -> None:
        """Remove the manifest of a backup: its other files are no backup any more."""

    def remove(self, name: str, paths: list[str], *, all_of_it: bool) -> None:
        """Remove files of a backup, or all of it."""

    def shares_disk_with(self, path: Path) -> bool:
        """Return whether what is written here takes room from a directory."""


class DirectoryTarget:
    """A directory of backups.

    Args:
        directory: an absolute path; it may be missing.
    """

    def __init__(self, directory: Path) -> None:
        self.shown = str(directory)
        self._root = directory
        self._made: set[Path] = set()
        self._sync_all: Callable[[], None] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory, and keep other backups out of it.

        Raises:
            BackupError: another backup writes to it.
            OSError: it cannot be used.
        """
        # Not its parents: the disk of backups may not be mounted.
        self._root.mkdir(_DIRECTORY_MODE, exist_ok=True)
        lock = os.open(self._at(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        together = whole_sync(str(self._root))
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupError(
                    f"another backup writes to {self.shown}: wait for its end, or give another "
                    "directory"
                ) from None
            self._sync_all = together
            yield
        finally:
            self._sync_all = None
            if together is not None:
                together.close()
            os.close(lock)

    def names(self) -> list[str]:
        """Return the names in the directory; none if it does not exist."""
        with suppress(FileNotFoundError):
            return sorted(set(os.listdir(self._root)) - _OWN)
        return []

    def has_manifest(self, name: str) -> bool:
        """Return whether a backup is finished."""
        return self._at(name, MANIFEST).is_file()

    def files(self, name: str) -> dict[str, int]:
        """Return the files of a backup by their paths below `files`, with their sizes."""
        root = self._at(name, FILES)
        files = {}
        for directory, _, names in os.walk(root):
            for each in names:
                path = Path(directory, each)
                status = path.lstat()
                # A link leads elsewhere, and a pipe would be waited for.
                if stat.S_ISREG(status.st_mode):
                    files[str(path.relative_to(root))] = status.st_size
        return files

    def read(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return self._at(path).open("rb", buffering=0)

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file; an existing one is replaced."""
        full = self._at(path)
        if full.parent not in self._made:
            # Not the target itself: one that has vanished, such as a disk, is not made anew.
            for parent in reversed(full.relative_to(self._root).parents[:-1]):
                (self._root / parent).mkdir(_DIRECTORY_MODE, exist_ok=True)
                self._made.add(self._root / parent)
        handle = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
        with open(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if self._sync_all is None:
                os.fsync(handle)

    def seal(self) -> None:
        """Return when everything that was written is durable."""
        if self._sync_all is not None:
            self._sync_all()
        else:
            for directory in self._made:
                sync_path(directory)
        sync_path(self._root)

    def publish(self, name: str, manifest: Manifest) -> None:
        """Write the manifest of a backup, durably, as a whole or not at all."""
        draft = self._at(name, _DRAFT)
        with draft.open("wb") as file:
            file.writelines(manifest.encode())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._at(name, MANIFEST))
        sync_path(self._root / name)

    def withdraw(self, name: str) -> None:
        """Remove the manifest of a backup: its other files are no backup any more."""
        self._at(name, MANIFEST).unlink(missing_ok=True)
        sync_path(self._root / name)

    def remove(self, name: str, paths: list[str], *, all_of_it: bool) -> None:
        """Remove files of a backup, or all of it."""
        if all_of_it:
            shutil.rmtree(self._at(name))
            return
        root = self._at(name, FILES)
        for path in paths:
            (root / path).unlink(missing_ok=True)
            with suppress(OSError):
                (root / path).parent.rmdir()

    def shares_disk_with(self, path: Path) -> bool:
        """Return whether what is written here takes room from a directory."""
        return self._root.stat().st_dev == path.stat().st_dev

    def _at(self, *names: str) -> Path:
        """Return the path of what is in the directory.

        Raises:
            BackupError: a link on the way leads elsewhere; nothing there is to be read or removed.
        """
        path = self._root
        for name in "/".join(names).split("/"):
            path /= name
            if path.is_symlink():
                raise BackupError(
                    f"{path} is a symbolic link, which no backup has: put what it leads to in its "
                    "place"
                )
        return path


def read_manifest(target: Target, name: str, pause: Callable[[], object] = int) -> Manifest:
    """Return the manifest of a backup.

    Args:
        target: where it is.
        name: of the backup.
        pause: called now and then, to let other threads run.

    Raises:
        BackupError: it is damaged, or of a later version.
        OSError: it cannot be read.
    """
    with target.read(f"{name}/{MANIFEST}") as file:
        return decode(name, file.read(), target.shown, pause)


def backups_in(target: Target) -> list[str]:
    """Return the names of all finished backups, the oldest first.

    Raises:
        BackupError: the place has something else than backups.
        OSError: it cannot be read.
    """
    return [name for name in all_names(target) if target.has_manifest(name)]


def all_names(target: Target) -> list[str]:
    """Return the names of all backups, finished or not.

    Raises:
        BackupError: the place has something else than backups.
        OSError: it cannot be read.
    """
    names = target.names()
    for name in names:
        if not is_name(name):
            raise BackupError(
                f"{target.shown} has '{printable(name)}', which is no backup: give an empty "
                "directory, or one that has backups only"
            )
    return sorted(names, key=number_of)


def checked_place(place: str) -> str:
    """Return a place that can be a target, without a look at it.

    Raises:
        BackupError: it cannot.
    """
    try:
        if not backup_place(place):
            raise ValueError("must not be empty")
    except ValueError as error:
        raise BackupError(f"the target of a backup, '{printable(place)}', {error}") from None
    return place


def target_at(place: str) -> Target:
    """Return the target at a path or an address.

    Raises:
        BackupError: it is none.
        OSError: it cannot be looked at.
    """
    if ADDRESS in checked_place(place):
        from harebell.server.backup.object_target import ObjectTarget

        return ObjectTarget(place)
    return DirectoryTarget(Path(os.path.realpath(place)))
