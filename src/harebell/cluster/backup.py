"""The stores of the other workers in a backup: the service "backup" of the cluster port.

    worker of store 1                 another worker
    {}                           -->
                                 <--  {"segments": [["queues/...", 4096, "kept/0"], ...]}
                                 <--  {"ticket": 7, "over": true}
    {"release": "queues/..."}    -->
    closes the connection        -->

It begins a cut of its store, copies its definitions to `kept/`, and sends what the commit has left.
The worker of store 1 reads the files themselves, as they are in its own data directory. Until the
connection ends, a segment that is removed is set aside, unless it was released.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.base.errors import HarebellError
from harebell.cluster.limits import BACKUP_SEGMENTS_PER_LINE, CLUSTER_REACH_SECONDS
from harebell.cluster.lines import Begin, Lines, LineService
from harebell.cluster.link import open_link
from harebell.cluster.stores import DIRECTORY, FIRST_STORE, data_dir_of
from harebell.store.backup.manifest import BackupError
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.disk import KEPT

if TYPE_CHECKING:
    from harebell.cluster.cluster_directory import ClusterDirectory
    from harebell.server.backup.part import OwnPart

SERVICE = "backup"
"""The service at the cluster port that begins a cut."""


class Segments(msgspec.Struct, omit_defaults=True):
    """Some of what a commit has left.

    Args:
        segments: for each the path in the data directory, the length in bytes, and where it is when
            it was set aside.
        ticket: the number of the commit, in the last line.
        over: whether it is the last line.
        problem: why there is no cut, in a sentence; "" if there is one.
    """

    segments: list[tuple[str, int, str]] = []
    ticket: int = 0
    over: bool = False
    problem: str = ""


class Release(msgspec.Struct):
    """A segment that was copied.

    Args:
        release: its path in the data directory.
    """

    release: str


class BackupService(LineService):
    """Begins cuts of the store of this process.

    Args:
        part: returns its data directory, for one backup.
        report: called with a level and a line.
    """

    def __init__(self, part: Callable[[], OwnPart], report: Callable[[str, str], None]) -> None:
        super().__init__(report)
        self._part = part
        # The files that one backup has set aside are removed by the next one.
        self._one = asyncio.Lock()

    async def _talk(self, lines: Lines) -> None:
        await lines.next(Begin)
        async with self._one:
            part = self._part()
            try:
                await self._begin(part, lines)
                while True:
                    part.release((await lines.next(Release)).release)
            finally:
                await asyncio.to_thread(part.end)

    async def _begin(self, part: OwnPart, lines: Lines) -> None:
        try:
            cut = await asyncio.wrap_future(await asyncio.to_thread(part.begin))
            await asyncio.to_thread(part.image, lambda: _check(lines))
        except (OSError, sqlite3.Error, HarebellError) as error:
            await lines.send(Segments(problem=str(error), over=True))
            raise BackupError(str(error)) from None
        found = [(path, size, str(part.aside(path))) for path, size in cut.segments]
        for first in range(0, len(found), BACKUP_SEGMENTS_PER_LINE):
            await lines.send(Segments(found[first : first + BACKUP_SEGMENTS_PER_LINE]))
        await lines.send(Segments(ticket=cut.ticket, over=True))


def _check(lines: Lines) -> None:
    if not lines.is_open:
        raise BackupError("the backup was given up")


class OtherPart:
    """The data directory of another worker; see `harebell.server.backup.part.Part`.

    Its methods are called by the thread of the backup.

    Args:
        directory: knows where the workers are.
        store: its number.
        root: the data directory of store 1.
        loop: the event loop of this process.

    Attributes:
        prefix: what its paths in the backup begin with.
        directory: its data directory.
        any_kept: True: only the other worker knows.
        ticket: the number of the commit.
        segments: what that has left.
    """

    any_kept = True

    def __init__(
        self,
        directory: ClusterDirectory,
        store: int,
        root: Path,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.prefix = f"{DIRECTORY}/{store}/"
        self.directory = data_dir_of(root.absolute(), FIRST_STORE, store)
        self.ticket = 0
        self.segments: list[tuple[str, int]] = []
        self._workers = directory
        self._store = store
        self._loop = loop
        self._lines: Lines | None = None
        self._beginning: Future[OtherPart] | None = None
        self._aside: dict[str, str] = {}
        self._over = False

    def begin(self) -> Future[Any]:
        """Begin a cut; the result is this object."""
        self._beginning = asyncio.run_coroutine_threadsafe(self._begin(), self._loop)
        return self._beginning

    def image(self, check: Callable[[], object]) -> Path:
        """Return the copy of the definitions that the other worker has made."""
        check()
        return self.directory / KEPT / DEFINITIONS

    def aside(self, path: str) -> Path:
        """Return where a segment is if it was set aside."""
        return Path(self._aside[path])

    def release(self, path: str) -> None:
        """Let a segment be removed: it is copied."""
        self._loop.call_soon_threadsafe(self._send, Release(path))

    def check(self) -> None:
        """Raise BackupError if the other worker has ended."""
        if self._lines is None or not self._lines.is_open:
            raise self._away()

    def end(self) -> None:
        """Let the other worker keep nothing any more."""
        if self._beginning is not None:
            self._beginning.cancel()
        # Not after the loop has ended: the connection has ended with it.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    def _away(self) -> BackupError:
        return BackupError(
            f"store {self._store} cannot be backed up, because its process has ended or does not "
            "answer: make the backup again when that is back (`harebell cluster status`)"
        )

    def _send(self, line: object) -> None:
        if self._lines is not None and self._lines.is_open:
            self._lines.write(line)

    def _close(self) -> None:
        self._over = True
        if self._lines is not None:
            self._lines.writer.transport.abort()

    async def _begin(self) -> OtherPart:
        address = self._workers.address_of(self._store)
        if address is None:
            raise self._away()
        try:
            async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                link = await open_link(address, self._workers.secret, {"service": SERVICE})
            lines = self._lines = Lines(link)
            if self._over:
                self._close()
            await lines.send(Begin())
            last = Segments()
            while not last.over:
                last = await lines.next(Segments)
                if last.problem:
                    raise BackupError(f"store {self._store} cannot be backed up: {last.problem}")
                for path, size, aside in last.segments:
                    self.segments.append((path, size))
                    self._aside[path] = aside
        except (OSError, TimeoutError, msgspec.MsgspecError):
            raise self._away() from None
        self.ticket = last.ticket
        return self
