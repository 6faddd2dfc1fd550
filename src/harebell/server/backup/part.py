"""A data directory that a backup copies, as one commit left it.

A broker has one; one with several workers has one for each store. That of another worker is in
`harebell.cluster.backup`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from harebell.server.backup.kept import KeptFiles
from harebell.server.limits import BACKUP_PAGES
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.disk import KEPT


class Noted(Protocol):
    """What a commit has left.

    Attributes:
        ticket: the number of the commit.
        segments: the paths in the data directory and the lengths in bytes.
    """

    ticket: int
    segments: list[tuple[str, int]]


class Part(Protocol):
    """A data directory.

    Attributes:
        prefix: what its paths in the backup begin with.
        directory: the data directory.
    """

    prefix: str
    directory: Path

    @property
    def any_kept(self) -> bool:
        """Return whether files were set aside, as far as is known."""

    def begin(self) -> Future[Any]:
        """Begin a cut; the result is a `Noted`. Its segments are set aside if they are removed.

        Raises:
            BackupError: it cannot begin.
            OSError: the disk refuses.
        """

    def image(self, check: Callable[[], object]) -> Path:
        """Return a copy of the definitions of that commit.

        Args:
            check: called now and then; what it raises ends the copying.
        """

    def aside(self, path: str) -> Path:
        """Return where a segment is if it was set aside."""

    def release(self, path: str) -> None:
        """Let a segment be removed: it is copied."""

    def check(self) -> None:
        """Raise BackupError if its segments may have been removed meanwhile."""

    def end(self) -> None:
        """Keep nothing any more; may be called again, and by another thread."""


class OwnPart:
    """The data directory of this process.

    Args:
        directory: the data directory.
        kept: sets files aside that the broker removes.
        cut: begins a cut, given a connection to the definitions and what keeps a file; called in
            the thread of the backup.
    """

    prefix = ""

    def __init__(
        self,
        directory: Path,
        kept: KeptFiles,
        cut: Callable[[sqlite3.Connection, Callable[[str], None]], Future[Any]],
    ) -> None:
        self.directory = directory
        self._kept = kept
        self._cut = cut
        self._link: sqlite3.Connection | None = None

    @property
    def any_kept(self) -> bool:
        """Return whether files were set aside."""
        return self._kept.any_kept

    def begin(self) -> Future[Any]:
        """Begin a cut; see `Part`."""
        self._kept.begin()
        self._link = open_definitions(self.directory)
        return self._cut(self._link, self._kept.keep)

    def image(self, check: Callable[[], object]) -> Path:
        """Return a copy of the definitions of that commit; see `Part`."""
        assert self._link is not None, "begin() has opened it"
        image = self.directory / KEPT / DEFINITIONS
        image.unlink(missing_ok=True)
        with closing(self._link) as link, closing(sqlite3.connect(image)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            link.backup(copy, pages=BACKUP_PAGES, progress=lambda *_: check())
        return image

    def aside(self, path: str) -> Path:
        """Return where a segment is if it was set aside."""
        return self.directory / self._kept.place(path)

    def release(self, path: str) -> None:
        """Let a segment be removed: it is copied."""
        self._kept.release(path)

    def check(self) -> None:
        """Do nothing: a backup ends with this process."""

    def end(self) -> None:
        """Keep nothing any more."""
        self._kept.end()
        if self._link is not None:
            self._link.close()


def open_definitions(directory: Path) -> sqlite3.Connection:
    """Return a connection to the definitions, which any thread may use."""
    return sqlite3.connect(
        f"{(directory.absolute() / DEFINITIONS).as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
