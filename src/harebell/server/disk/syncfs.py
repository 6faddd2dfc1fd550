"""Sync many files with one syncfs(2), where it is reliable.

A commit over many queues would sync each file, and the file system would write its journal for
each. syncfs writes everything at once. Before Linux 5.8 it does not report failed writes, and on
some file systems (FUSE) it does nothing. There, files are synced one by one.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

_RELIABLE = frozenset(("ext4", "xfs"))
_TELLS_OF_FAILURES = (5, 8)
_MOUNTS = Path("/proc/self/mountinfo")


class WholeSync:
    """Syncs the file system of a directory.

    Args:
        directory: any directory of the file system. Only writes that fail after it was opened are
            reported.

    Raises:
        OSError: the directory cannot be opened.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._call = ctypes.CDLL(None, use_errno=True).syncfs
        self._handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self) -> None:
        """Sync everything that was written.

        Raises:
            OSError: a write failed.
        """
        if self._call(self._handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), self._directory)

    def close(self) -> None:
        """Close the directory."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def whole_sync(directory: str) -> WholeSync | None:
    """Return a `WholeSync` for the file system of a directory; None if it is not reliable."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    version = tuple(int(each) for each in release.groups()) if release else (0, 0)
    if version < _TELLS_OF_FAILURES or _kind_of(directory) not in _RELIABLE:
        return None
    try:
        return WholeSync(directory)
    except (OSError, AttributeError):
        return None


def _kind_of(directory: str) -> str:
    """Return the type of the file system of a directory; "" if it is unknown."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        # The name of a directory that is mounted may be no UTF-8.
        mounts = _MOUNTS.read_text(errors="replace")
    except OSError:
        return ""
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [number]:
            return source.partition(" ")[0]
    return ""
