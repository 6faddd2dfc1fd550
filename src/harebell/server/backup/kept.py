"""Set files aside that the broker removes while a backup still has to copy them."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock

from harebell.base.osfs import OsFiles
from harebell.store.backup.manifest import BackupError
from harebell.store.disk import KEPT


class KeptFiles:
    """The segments of the data directory that one backup needs.

    The loop keeps them, and the thread of the backup releases them. A removal in between moves one
    to `kept/`. A file that cannot be moved is removed: then the backup fails.

    Args:
        files: the data directory.
    """

    def __init__(self, files: OsFiles) -> None:
        self._files = files
        self._places: dict[str, str] = {}
        self._released = 0
        self._active = self._over = False
        self._lock = Lock()

    def begin(self) -> None:
        """Start; what an earlier broker has left is removed.

        Raises:
            BackupError: it has ended: the backup was given up.
            OSError: the disk refuses.
        """
        with self._lock:
            if self._over:
                raise BackupError("the backup was given up")
            self._files.make_directory(KEPT)
            self._remove()
            self._active = True

    def keep(self, path: str) -> None:
        """Have a file set aside if it is removed from now on."""
        with self._lock:
            if self._active:
                place = self._places[path] = f"{KEPT}/{len(self._places)}"
                self._files.kept[path] = place

    def place(self, path: str) -> str:
        """Return where a file is if it was set aside."""
        return self._places[path]

    def release(self, path: str) -> None:
        """Let a file be removed: it is copied."""
        with self._lock:
            if self._active and self._files.kept.pop(path, None) is not None:
                self._released += 1

    @property
    def any_kept(self) -> bool:
        """Return whether files were set aside."""
        return len(self._places) > len(self._files.kept) + self._released

    def end(self) -> None:
        """Keep nothing any more, and remove what was set aside; only the first call does it."""
        with self._lock:
            active, self._active, self._over = self._active, False, True
            if active:
                self._files.kept.clear()
        if active:
            self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            for name in self._files.names(KEPT):
                self._files.remove(f"{KEPT}/{name}")
