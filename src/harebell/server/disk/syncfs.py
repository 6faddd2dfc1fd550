"""One sync for many files: syncfs(2), where it can be relied on.

A commit over many queues would sync file after file, and the file system would write its journal
for each. syncfs writes everything at once. It does not tell of failed writes before Linux 5.8, and
some file systems, such as those in user space, do nothing when they are asked: there files are
synced one by one.
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
    """Syncs the file system that a folder is on.

    Args:
        folder: any folder there. Writes that fail from now on are told of.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._call = ctypes.CDLL(None, use_errno=True).syncfs
        self._handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self) -> None:
        """Return when everything that was written is on disk.

        Raises:
            OSError: something could not be written.
        """
        if self._call(self._handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), self._folder)

    def close(self) -> None:
        """Let the folder go."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def whole_sync(folder: str) -> WholeSync | None:
    """What syncs the file system of a folder at once; None where that cannot be relied on."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    version = tuple(int(each) for each in release.groups()) if release else (0, 0)
    if version < _TELLS_OF_FAILURES or _kind_of(folder) not in _RELIABLE:
        return None
    try:
        return WholeSync(folder)
    except (OSError, AttributeError):
        return None


def _kind_of(folder: str) -> str:
    """The type of the file system of a folder; "" when the system does not say."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text()
    except OSError:
        return ""
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            return source.partition(" ")[0]
    return ""
