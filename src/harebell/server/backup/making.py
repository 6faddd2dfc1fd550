"""Make one backup, in a thread of its own: copy what one commit left, a piece at a time.

    watch     .......................................... ends it, or leaves a thread that hangs
    thread    target, clean up | cut? ........... | definitions, segments, manifest | prune
    loop                         ^ between two commits, then notes the logs in slices

The broker is not held up: the loop only notes lengths, and the copying is throttled. What the
broker removes meanwhile is set aside in `kept/` until it is copied. A call to a target that hangs
cannot be ended, so a second thread watches the first one.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from calendar import timegm
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, BinaryIO

from harebell.base.printable import printable
from harebell.server.backup.kept import KeptFiles
from harebell.server.backup.target import (
    Target,
    all_names,
    backups_in,
    read_manifest,
    target_at,
)
from harebell.server.limits import (
    BACKUP_END_SECONDS,
    BACKUP_FILES_PER_PAUSE,
    BACKUP_PAGES,
    BACKUP_PAUSE_SECONDS,
    BACKUP_PIECE_BYTES,
    BACKUP_WAIT_SECONDS,
)
from harebell.store.backup.cut import Cut
from harebell.store.backup.manifest import BackedUp, BackupError, Manifest, next_name
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.definitions import store_number
from harebell.store.disk import KEPT

_STOPPED = "it was stopped"
_MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass
class Order:
    """What a backup is to be.

    Args:
        place: where it goes, a path or an address.
        keep: how many backups to keep there, this one included; 0 for all.
        rate: most bytes per second that are copied; 0 for no limit.
        about: facts for its manifest.
        timeout: seconds that one step may take, until it is given up.
        every: seconds that the newest backup has to be old; 0 to make one anyway.
    """

    place: str
    keep: int
    rate: int
    about: dict[str, Any]
    timeout: float
    every: float = 0


class Making:
    """A backup that is being made.

    Args:
        order: what it is to be.
        data_dir: of the broker.
        kept: sets files aside that the broker removes.
        cut: begins a cut, given a connection to the definitions and what keeps a file; called in
            the thread.
        floor: bytes of the disk of the data directory that have to stay free.

    Attributes:
        name: of the backup; "" before it has one.
        files: how many files it has.
        copied_files: how many of them were copied.
        copied_bytes: their bytes.
        byte_count: the bytes of all.
        commit: the number of the commit.
        newest: the name of the newest complete backup of the target; None if it is not known.
        seconds: how long it took.
        not_due_seconds: in how many seconds it would be due; 0 if it is due.
        stop: set to stop it.
    """

    def __init__(
        self,
        order: Order,
        data_dir: Path,
        kept: KeptFiles,
        cut: Callable[[sqlite3.Connection, Callable[[str], None]], Future[Cut]],
        floor: int,
    ) -> None:
        self.order = order
        self.name = ""
        self.files = self.copied_files = self.copied_bytes = self.byte_count = self.commit = 0
        self.newest: str | None = None
        self.seconds = self.not_due_seconds = 0.0
        self.stop = Event()
        self._data_dir = data_dir
        self._kept = kept
        self._cut = cut
        self._floor = floor
        self._shares_disk = False
        self._store = 0
        self._due = 0.0
        self._why = _STOPPED
        self._moved = time.monotonic()

    def run(self) -> str:
        """Make the backup; return why it failed, in a sentence, and "" if it is complete.

        Whatever happens, nothing of the broker is changed, and what the target has of it goes.
        """
        began = stopped = time.monotonic()
        problems: list[str] = []
        thread = Thread(
            target=lambda: problems.append(self._run()), name="backup-copy", daemon=True
        )
        thread.start()
        while thread.is_alive():
            thread.join(BACKUP_WAIT_SECONDS)
            if not self.stop.is_set():
                stopped = time.monotonic()
                if why := self._short() or self._hangs():
                    self._why = why
                    self.stop.set()
            elif time.monotonic() - stopped > BACKUP_END_SECONDS and thread.is_alive():
                # When its call returns after all, it removes what it wrote.
                self._kept.end()
                return self._not_made()
        self.seconds = time.monotonic() - began
        return problems[0]

    def _run(self) -> str:
        try:
            # In this thread: already a look at a path may hang.
            target = target_at(self.order.place)
            if Path(target.shown).is_relative_to(self._data_dir.resolve()):
                raise BackupError(
                    f"{target.shown} is in the data directory {self._data_dir}: give a directory "
                    "on another disk"
                )
            all_names(target)
            with target.held():
                self._make(target)
        except BackupError as error:
            return str(error)
        except (OSError, sqlite3.Error) as error:
            return self._failure(error)
        except Exception as error:  # a thread cannot raise
            return self._failure(error)
        finally:
            self._kept.end()
        return ""

    def _failure(self, error: Exception) -> str:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        name = getattr(error, "filename", None)
        place = f" ({name})" if name else ""
        return f"the backup to {self.order.place} cannot be made: {reason}{place}"

    def _make(self, target: Target) -> None:
        there = backups_in(target)
        with closing(self._definitions()) as link:
            self._store = store_number(link)
        if there:
            self._check_owner(target, read_manifest(target, there[-1], self._pause))
        if there and self.order.every:
            self.newest = there[-1]
            age = time.time() - made_at(self.newest)
            # One from the future was made while the clock was wrong: it says nothing.
            if 0 <= age < self.order.every:
                self.not_due_seconds = self.order.every - age
                return
        self._shares_disk = target.shares_disk_with(self._data_dir)
        backed_up = self._clean(target, there)
        self.name = next_name(all_names(target), time.strftime(_MOMENT, time.gmtime()))
        try:
            manifest = self._copy(target, backed_up)
            target.seal()
            self._check()
            target.publish(self.name, manifest)
        except BaseException:
            # What stays, as the target may be gone, the next backup removes.
            with suppress(OSError, BackupError):
                target.remove(self.name, [], all_of_it=True)
            raise
        self.newest = self.name
        if self.order.keep:
            left = [*there, self.name][-self.order.keep :]
            for name in there:
                if name not in left:
                    target.withdraw(name)
            self._clean(target, left)

    def _check_owner(self, target: Target, newest: Manifest) -> None:
        """Leave the backups of other data alone: cleaning up would remove them."""
        if (newest.about.get("store") or self._store) != self._store:
            raise BackupError(
                f"{target.shown} has backups of other data, of the broker "
                f"'{printable(str(newest.about.get('node')))}': give this broker a target of its "
                "own, or restore them if they are its data"
            )

    def _definitions(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{(self._data_dir / DEFINITIONS).as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def _clean(self, target: Target, there: list[str]) -> dict[str, BackedUp]:
        """Remove what no backup has; return the files of the newest backup.

        Args:
            target: what is cleaned.
            there: the backups to keep.
        """
        used: dict[str, set[str]] = {}
        newest: dict[str, BackedUp] = {}
        for name in there:
            newest = read_manifest(target, name, self._pause).files
            for file in newest.values():
                used.setdefault(file.place, set()).add(file.path)
        for name in all_names(target):
            self._check()
            if name not in used and name not in there:
                target.remove(name, [], all_of_it=True)
                continue
            idle = [path for path in target.files(name) if path not in used.get(name, ())]
            target.remove(name, idle, all_of_it=False)
        return newest

    def _copy(self, target: Target, backed_up: dict[str, BackedUp]) -> Manifest:
        """Copy everything that the target does not have; return the manifest."""
        places = {file.place for file in backed_up.values()}
        stored = {place: target.files(place) for place in places}
        about = {**self.order.about, "store": self._store}
        manifest = Manifest(self.name, about, pause=self._pause)
        manifest.about["began"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._kept.begin()
        with closing(self._definitions()) as link:
            cut = self._wait_for(self._cut(link, self._kept.keep))
            self.commit = manifest.about["commit"] = cut.ticket
            image = self._data_dir / KEPT / DEFINITIONS
            self._copy_database(link, image)
        with image.open("rb", buffering=0) as copied:
            self._add(target, manifest, DEFINITIONS, image.stat().st_size, copied, "-")
        for path, size in sorted(cut.segments):
            with self._open(path) as file:
                status = os.fstat(file.fileno())
                mark = f"{status.st_ino}-{status.st_mtime_ns}"
                before = backed_up.get(path)
                if (
                    before is not None
                    and (before.size, before.mark) == (min(size, status.st_size), mark)
                    and stored[before.place].get(path) == before.size
                ):
                    self._count(manifest, before)
                else:
                    self._add(target, manifest, path, size, file, mark)
            self._kept.release(path)
            self._check()
        return manifest

    def _wait_for(self, cut: Future[Cut]) -> Cut:
        while True:
            with suppress(TimeoutError):
                return cut.result(BACKUP_WAIT_SECONDS)
            self._check()

    def _copy_database(self, link: sqlite3.Connection, image: Path) -> None:
        """Copy the definitions as of the open transaction of the connection."""
        image.unlink(missing_ok=True)
        with closing(sqlite3.connect(image)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            link.backup(copy, pages=BACKUP_PAGES, progress=lambda *_: self._check())

    def _open(self, path: str) -> BinaryIO:
        """Open a segment, which may be removed and set aside at this moment."""
        try:
            return (self._data_dir / path).open("rb", buffering=0)
        except FileNotFoundError:
            return (self._data_dir / self._kept.place(path)).open("rb", buffering=0)

    def _add(
        self, target: Target, manifest: Manifest, path: str, size: int, file: BinaryIO, mark: str
    ) -> None:
        """Copy a file up to a size."""
        digest = hashlib.sha256()
        total = 0

        def pieces() -> Iterator[bytes]:
            nonlocal total
            while piece := file.read(min(BACKUP_PIECE_BYTES, size - total)):
                digest.update(piece)
                total += len(piece)
                yield piece
                self._throttle(len(piece))

        added = BackedUp(path, 0, "", self.name, mark)
        target.write(added.stored, pieces())
        self._count(manifest, added._replace(size=total, digest=digest.hexdigest()))
        self.copied_files += 1

    def _count(self, manifest: Manifest, file: BackedUp) -> None:
        manifest.files[file.path] = file
        self.files += 1
        self.byte_count += file.size
        if self.files % BACKUP_FILES_PER_PAUSE == 0:
            self._pause()

    def _pause(self) -> None:
        """Let the event loop run: what this thread does between its calls holds it up."""
        self._moved = time.monotonic()
        self.stop.wait(BACKUP_PAUSE_SECONDS)

    def _throttle(self, byte_count: int) -> None:
        """Wait until so many bytes more may be copied."""
        self.copied_bytes += byte_count
        if self.order.rate:
            now = time.monotonic()
            self._due = max(self._due, now) + byte_count / self.order.rate
            # A pause that was asked for is no target that hangs.
            self._moved = self._due
            self.stop.wait(self._due - now)
        self._check()

    def _check(self) -> None:
        """Give up if it was stopped, or if the broker needs the room of its disk."""
        self._moved = time.monotonic()
        if not self.stop.is_set() and (why := self._short()):
            self._why = why
            self.stop.set()
        if self.stop.is_set():
            raise BackupError(self._not_made())

    def _short(self) -> str:
        """Return why the broker needs the room of its disk; "" if it does not."""
        if self._shares_disk or self._kept.any_kept:
            room = os.statvfs(self._data_dir)
            if room.f_bavail * room.f_frsize < self._floor:
                return (
                    "the disk of the data directory has less than disk_free_limit "
                    f"({self._floor} bytes) left"
                )
        return ""

    def _hangs(self) -> str:
        """Return that the target hangs; "" if it does not."""
        if time.monotonic() - self._moved <= self.order.timeout:
            return ""
        return (
            f"the target has not answered for {self.order.timeout:g} seconds "
            "(backup_timeout_seconds): look whether its disk or network works"
        )

    def _not_made(self) -> str:
        return f"the backup to {self.order.place} is not made: {self._why}"


def made_at(name: str) -> float:
    """Return when a backup began, in seconds since 1970, by its name; 0 if that is no time."""
    with suppress(ValueError):
        return timegm(time.strptime(name.partition("-")[2], _MOMENT))
    return 0.0
