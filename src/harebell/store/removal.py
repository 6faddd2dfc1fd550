"""Remove the file of a segment whose records are all settled, after the commit that says so."""

from __future__ import annotations

import errno
from contextlib import suppress

from harebell.base.ports import Files

_NO_HANDLES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Removal:
    """A file of a segment to be removed.

    The order counts: a younger segment must not be removed before an older one, for which it has
    settlements. So the names are synced after each, and one that has to wait holds up the others.

    Args:
        files: the disk.
        directory: of the log.
        path: of the file.

    Attributes:
        stalled: why it cannot be done for now; try it again later.
        failed: why it must not be tried again: whether the file is gone on the disk is unknown.
        syncing: whether the last error, if any, was that of a sync.
    """

    __slots__ = ("_directory", "_files", "_path", "failed", "stalled", "syncing")

    def __init__(self, files: Files, directory: str, path: str) -> None:
        self._files = files
        self._directory = directory
        self._path = path
        self.stalled: OSError | None = None
        self.failed: Exception | None = None
        self.syncing = False

    def perform(self) -> None:
        """Remove the file. Never raises: `stalled` or `failed` say what went wrong."""
        self.stalled = None
        try:
            self.remove()
        except OSError as error:
            # A directory that cannot be opened was not synced, and no sync has failed.
            if error.errno in _NO_HANDLES or (error.errno in _FULL and not self.syncing):
                self.stalled = error
            else:
                self.failed = error
        except Exception as error:  # a thread cannot raise: the server ends the process
            self.failed = error

    def remove(self) -> None:
        """Remove the file, and sync its directory.

        Raises:
            OSError: the disk refuses; `syncing` says whether it was the sync.
        """
        self.syncing = False
        # The whole log may have been removed meanwhile, or an earlier attempt came so far.
        with suppress(FileNotFoundError):
            self._files.remove(self._path)
        self.syncing = True
        with suppress(FileNotFoundError):
            self._files.sync_directory(self._directory)
