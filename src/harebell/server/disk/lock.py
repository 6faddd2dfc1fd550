"""Allow one process per data directory: the one that holds the lock on the file LOCK.

The kernel releases the lock when the process ends, in any way, so the mere existence of the file
means nothing. It contains the process id of the owner, as information for administrators.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from harebell.base.errors import DiskError, StoreError

NAME = "LOCK"
RESTORING = "restoring"
"""A file in a data directory as long as a backup is being restored to it."""
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
"""Errors of file systems that cannot sync directories, or are read-only."""


def in_use(data_dir: Path) -> str:
    """Return the error text for a second process."""
    return (
        f"another broker runs on the data directory {data_dir}: stop it, or choose another "
        "directory with --data-dir"
    )


def cannot_use(data_dir: Path, error: OSError) -> str:
    """Return the error text for a directory that cannot be used."""
    return (
        f"cannot use the data directory {data_dir}: {error.strerror or error}; choose another "
        "with --data-dir"
    )


class DirectoryLock:
    """The lock of a data directory, held until `release`.

    Args:
        data_dir: the directory; created if it is missing.
        looking: true for read-only use: nothing is written, not even the lock's own file.
        restoring: whether the directory may have a part of a backup: it is being restored.

    Raises:
        StoreError: another process holds the lock, the directory cannot be used, or a restore of it
            did not end.
    """

    def __init__(self, data_dir: Path, *, looking: bool = False, restoring: bool = False) -> None:
        if not restoring and (data_dir / RESTORING).exists():
            raise StoreError(
                f"{data_dir} has a part of a backup, as its restore did not end: run `harebell "
                "restore` again"
            )
        if looking:
            self._handle = _open_to_look(data_dir)
            if self._handle >= 0:
                self._lock(data_dir)
            return
        try:
            _make(data_dir)
            self._handle = _open(data_dir, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(cannot_use(data_dir, error)) from None
        self._lock(data_dir, note=f"{os.getpid()}\n")

    def _lock(self, data_dir: Path, note: str = "") -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if note:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, note.encode(), 0)
        except OSError as error:
            os.close(self._handle)
            if isinstance(error, BlockingIOError):
                raise StoreError(in_use(data_dir)) from None
            raise StoreError(cannot_use(data_dir, error)) from None

    def release(self) -> None:
        """Release the lock.

        The file stays: after a deletion two processes could hold locks on two files of that name.
        """
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _open(data_dir: Path, flags: int) -> int:
    return os.open(data_dir / NAME, flags | os.O_CLOEXEC, _FILE_MODE)


def _open_to_look(data_dir: Path) -> int:
    """Open the file read-only; -1 if there is none, because then no broker uses the directory."""
    try:
        return _open(data_dir, os.O_RDONLY)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise StoreError(cannot_use(data_dir, error)) from None


def _make(data_dir: Path) -> None:
    """Create a missing directory with mode 0700, and sync its parent.

    The parent is synced at every start, because an earlier start may have crashed between mkdir and
    sync. If the directory exists and its parent may not be opened, the parent is not synced.

    Raises:
        DiskError: the sync failed.
    """
    missing = [each for each in (data_dir, *data_dir.parents) if not each.exists()]
    data_dir.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
    for directory in reversed(missing or [data_dir]):
        _sync(directory.parent, data_dir, bool(missing))


def _sync(directory: Path, data_dir: Path, made: bool) -> None:
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        if made:
            raise
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno in _NO_SYNC:
            return
        raise DiskError(
            f"cannot sync {directory}, the parent of the data directory {data_dir}: "
            f"{error.strerror or error}; the directory could be gone after a loss of power"
        ) from None
    finally:
        os.close(handle)
