"""Remove the file of a segment whose records are all settled, after the commit that says so."""

from __future__ import annotations

import errno
from contextlib import suppress

from harebell.base.ports import Files
from harebell.store.log.segment import index_path

_NO_HANDLES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Removal:
    """A file of a segment to be removed.

    The order of removals counts: a younger segment has settlements of older ones. If it went first
    and the power failed, settled messages of the older segment would be ready again. So the
    directory is synced after each removal, and a removal that has to wait holds up the next ones.

    Args:
        files: the disk.
        directory: of the log.
        path: of the file.

    Attributes:
        stalled: a passing error; the removal has to be tried again.
        failed: a final error: it is unknown whether the file is gone on the disk.
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
        """Remove the file with its index, and sync its directory.

        Raises:
            OSError: the disk refuses; `syncing` says whether it was the sync.
        """
        self.syncing = False
        # The whole log may have been removed meanwhile, or an earlier attempt came so far.
        with suppress(OSError):
            # Without its segment an index does no harm, and the next start removes it.
            self._files.remove(index_path(self._path))
        with suppress(FileNotFoundError):
            self._files.remove(self._path)
        self.syncing = True
        with suppress(FileNotFoundError):
            self._files.sync_directory(self._directory)
