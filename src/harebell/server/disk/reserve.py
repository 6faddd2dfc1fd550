"""Room that is kept for a full disk.

To let go what consumers have settled, a little has to be written first. On a disk that the broker
itself has filled to the end there would be no room for that, and what is taken out would free
nothing. So a file keeps some, and goes when a write finds none. Until there is enough for another
one, publishers wait.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from harebell.base.limits import RESERVE_BYTES, RESERVE_SHARE

NAME = "reserve"
FULL = (errno.ENOSPC, errno.EDQUOT)
_FILE_MODE = 0o600


class Reserve:
    """The file that keeps room.

    Args:
        folder: the data directory.
        total: octets that the whole file system has; a small one keeps less.

    Attributes:
        octets: how many it keeps.
        spent: whether it is gone, and should be made again.
    """

    def __init__(self, folder: Path, total: int) -> None:
        self.octets = min(RESERVE_BYTES, total // RESERVE_SHARE)
        self.spent = True
        self._path = folder / NAME

    def renew(self, free: int) -> None:
        """Make it if so many free octets are enough for it, and as much again is left."""
        with suppress(OSError):
            if self._path.stat().st_size >= self.octets:
                self.spent = False
                return
        if free < 2 * self.octets:
            return
        self.spent = False
        try:
            self._make()
        except OSError as error:
            # Where such a file cannot be made for another reason there is none.
            self.spent = error.errno in FULL
            with suppress(OSError):
                self._path.unlink()

    def spend(self) -> bool:
        """Let its room go; whether there was any."""
        try:
            self._path.unlink()
        except OSError:
            return False
        self.spent = True
        return True

    def _make(self) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            os.posix_fallocate(handle, 0, max(self.octets, 1))
        finally:
            os.close(handle)
