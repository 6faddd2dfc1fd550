"""One process per data directory: the process that holds the lock on its file LOCK owns it.

The kernel lets the lock go with the process, however it ends, so a file that is left behind means
nothing. The number in it is the owner's process, for people who look.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from harebell.base.errors import DiskError, StoreError

NAME = "LOCK"
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
"""What file systems answer that have no sync of folders, or nothing to write."""
_NOT_TO_WRITE = (errno.EROFS, errno.EACCES, errno.EPERM)


def in_use(data_dir: Path) -> str:
    """The error for a second process."""
    return (
        f"another broker runs on the data directory {data_dir}: stop it, or choose another "
        "directory with --data-dir"
    )


def cannot_use(data_dir: Path, error: OSError) -> str:
    """The error for a directory that the system refuses."""
    return (
        f"cannot use the data directory {data_dir}: {error.strerror or error}; choose another "
        "with --data-dir"
    )


class DirectoryLock:
    """A data directory that is ours until `release`.

    Args:
        data_dir: the directory; made when it is missing.
        looking: whether it is only looked into, which can be done where nothing can be written.

    Raises:
        StoreError: another process has it, or it cannot be used.
    """

    def __init__(self, data_dir: Path, *, looking: bool = False) -> None:
        writing = True
        try:
            if not looking or not data_dir.is_dir():
                _make(data_dir)
            self._handle = _open(data_dir, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if not looking or error.errno not in _NOT_TO_WRITE:
                raise StoreError(cannot_use(data_dir, error)) from None
            writing = False
            self._handle = _open_to_look(data_dir)
        if self._handle < 0:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if writing:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._handle)
            if isinstance(error, BlockingIOError):
                raise StoreError(in_use(data_dir)) from None
            raise StoreError(cannot_use(data_dir, error)) from None

    def release(self) -> None:
        """Let the directory go; the file stays, or two could hold locks on two files."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _open(data_dir: Path, flags: int) -> int:
    return os.open(data_dir / NAME, flags | os.O_CLOEXEC, _FILE_MODE)


def _open_to_look(data_dir: Path) -> int:
    """The file where nothing can be written; -1 without one, for then nobody uses the directory."""
    try:
        return _open(data_dir, os.O_RDONLY)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise StoreError(cannot_use(data_dir, error)) from None


def _make(data_dir: Path) -> None:
    """Make a missing directory that only its owner can enter, and its name durable.

    The folder above is synced at every start, as a start before may have ended in between. One
    that may not be opened is left to the owner of the directory.

    Raises:
        DiskError: the disk did not take the name.
    """
    missing = [each for each in (data_dir, *data_dir.parents) if not each.exists()]
    data_dir.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
    for folder in reversed(missing or [data_dir]):
        _sync(folder.parent, data_dir, bool(missing))


def _sync(folder: Path, data_dir: Path, made: bool) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
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
            f"cannot sync {folder}, the folder of the data directory {data_dir}: "
            f"{error.strerror or error}; the directory could be gone after a loss of power"
        ) from None
    finally:
        os.close(handle)
