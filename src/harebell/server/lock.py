"""One process per data directory: whoever holds the lock on its file LOCK owns the directory.

The kernel lets the lock go with the process, however it ends, so a file that is left behind means
nothing. The number in it is the owner's process, for people who look.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harebell.base.errors import StoreError

NAME = "LOCK"
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def in_use(data_dir: Path) -> str:
    """The sentence for whoever comes second."""
    return (
        f"another broker runs on the data directory {data_dir}: stop it, or choose another "
        "directory with --data-dir"
    )


def cannot_use(data_dir: Path, error: OSError) -> str:
    """The sentence for a directory that the system refuses."""
    return (
        f"cannot use the data directory {data_dir}: {error.strerror or error}; choose another "
        "with --data-dir"
    )


class DirectoryLock:
    """A data directory that is ours until `release`.

    Args:
        data_dir: the directory; made when it is missing.

    Raises:
        StoreError: another process has it, or it cannot be used.
    """

    def __init__(self, data_dir: Path) -> None:
        try:
            _make(data_dir)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._handle = os.open(data_dir / NAME, flags, _FILE_MODE)
        except OSError as error:
            raise StoreError(cannot_use(data_dir, error)) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def _make(data_dir: Path) -> None:
    """Make a missing directory that only its owner can enter, for good."""
    if data_dir.is_dir():
        return
    data_dir.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
    above = os.open(data_dir.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(above)
    finally:
        os.close(above)
