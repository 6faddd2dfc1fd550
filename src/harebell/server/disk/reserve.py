"""Reserve disk space for the time when the disk is full.

Removing acknowledged messages needs a small write first. On a full disk this write would fail, and
consumers could not free any space. So a preallocated file reserves some bytes. It is deleted when a
write fails with ENOSPC. Publishers are blocked until there is enough free space to create it again.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from harebell.server.limits import RESERVE_BYTES, RESERVE_SHARE

NAME = "reserve"
FULL = (errno.ENOSPC, errno.EDQUOT)
_FILE_MODE = 0o600


class Reserve:
    """The preallocated file.

    Args:
        directory: the data directory.
        total: size of the file system in bytes; the reserve is smaller on a small one.

    Attributes:
        byte_count: size of the file in bytes.
        spent: true if the file was deleted and has to be created again.
    """

    def __init__(self, directory: Path, total: int) -> None:
        self.byte_count = min(RESERVE_BYTES, total // RESERVE_SHARE)
        self.spent = True
        self._path = directory / NAME

    def renew(self, free: int) -> None:
        """Create the file if `free` bytes are at least twice its size."""
        with suppress(OSError):
            if self._path.stat().st_size >= self.byte_count:
                self.spent = False
                return
        if free < 2 * self.byte_count:
            return
        self.spent = False
        try:
            self._make()
        except OSError as error:
            # After another error (no fallocate, read-only) the broker runs without a reserve.
            self.spent = error.errno in FULL
            with suppress(OSError):
                self._path.unlink()

    def spend(self) -> bool:
        """Delete the file to free its space; True if there was one."""
        try:
            self._path.unlink()
        except OSError:
            return False
        self.spent = True
        return True

    def _make(self) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            os.posix_fallocate(handle, 0, max(self.byte_count, 1))
        finally:
            os.close(handle)
