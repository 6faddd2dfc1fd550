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
import time
from calendar import timegm
from collections.abc import Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, BinaryIO

from harebell.base.printable import printable
from harebell.server.backup.part import Noted, Part, open_definitions
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
    BACKUP_PAUSE_SECONDS,
    BACKUP_PIECE_BYTES,
    BACKUP_WAIT_SECONDS,
)
from harebell.store.backup.manifest import BackedUp, BackupError, Manifest, next_name
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.definitions import store_number

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
        parts: the data directories of the broker, that of this process first.
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

    def __init__(self, order: Order, parts: Sequence[Part], floor: int) -> None:
        self.order = order
        self.name = ""
        self.files = self.copied_files = self.copied_bytes = self.byte_count = self.commit = 0
        self.newest: str | None = None
        self.seconds = self.not_due_seconds = 0.0
        self.stop = Event()
        self._parts = parts
        self._data_dir = parts[0].directory
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
                self._end_parts()
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
        except Exception as error:  # a thread cannot raise
            return self._failure(error)
        finally:
            self._end_parts()
        return ""

    def _end_parts(self) -> None:
        for part in self._parts:
            part.end()

    def _failure(self, error: Exception) -> str:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        name = getattr(error, "filename", None)
        place = f" ({name})" if name else ""
        return f"the backup to {self.order.place} cannot be made: {reason}{place}"

    def _make(self, target: Target) -> None:
        there = backups_in(target)
        with closing(open_definitions(self._data_dir)) as link:
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
        # All at the same time, and then one after the other.
        cuts = [(part, part.begin()) for part in self._parts]
        for part, cut in cuts:
            noted = self._wait_for(cut)
            self.commit = self.commit or noted.ticket
            self._copy_part(target, manifest, part, noted, (backed_up, stored))
            part.check()
        manifest.about["commit"] = self.commit
        if len(self._parts) > 1:
            manifest.about["stores"] = len(self._parts)
        return manifest

    def _copy_part(
        self,
        target: Target,
        manifest: Manifest,
        part: Part,
        noted: Noted,
        there: tuple[dict[str, BackedUp], dict[str, dict[str, int]]],
    ) -> None:
        """Copy what the target does not have of a data directory.

        Args:
            target: where to.
            manifest: gets the files.
            part: the data directory.
            noted: what its commit has left.
            there: the files of the newest backup, and the sizes of those that are stored.
        """
        backed_up, stored = there
        image = part.image(self._check)
        with image.open("rb", buffering=0) as copied:
            size = image.stat().st_size
            self._add(target, manifest, part.prefix + DEFINITIONS, size, copied, "-")
        for path, size in sorted(noted.segments):
            with self._open(part, path) as file:
                status = os.fstat(file.fileno())
                mark = f"{status.st_ino}-{status.st_mtime_ns}"
                before = backed_up.get(part.prefix + path)
                if (
                    before is not None
                    and (before.size, before.mark) == (min(size, status.st_size), mark)
                    and stored[before.place].get(before.path) == before.size
                ):
                    self._count(manifest, before)
                else:
                    self._add(target, manifest, part.prefix + path, size, file, mark)
            part.release(path)
            self._check()

    def _wait_for(self, cut: Future[Noted]) -> Noted:
        until = time.monotonic() + self.order.timeout
        while True:
            try:
                return cut.result(BACKUP_WAIT_SECONDS)
            except (futures.CancelledError, TimeoutError):
                if cut.done():
                    raise
            self._check()
            if time.monotonic() > until:
                raise BackupError(
                    f"the backup to {self.order.place} is not made: a store has not answered for "
                    f"{self.order.timeout:g} seconds (backup_timeout_seconds)"
                )

    def _open(self, part: Part, path: str) -> BinaryIO:
        """Open a segment, which may be removed and set aside at this moment."""
        try:
            return (part.directory / path).open("rb", buffering=0)
        except FileNotFoundError:
            return part.aside(path).open("rb", buffering=0)

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
        if self._shares_disk or any(part.any_kept for part in self._parts):
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
