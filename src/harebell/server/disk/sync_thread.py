"""Write and sync in a separate thread: in Python here, in C in `sync_thread.pyx`.

    loop      begin(writes, syncs) .................. end() -> None or what failed
    thread           open, pwrite, pwrite, fdatasync  ^ fileno() is readable

One piece of work is in progress at a time. Most commits consist only of writes and syncs, so these
are done with as few switches between threads as possible. The flusher does the rest of a commit.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from collections.abc import Collection, Mapping

from harebell.server.limits import PERFORM_MAX

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_MODE = 0o600

Writes = list[tuple[int, bytes, int]]
"""File descriptors, bytes, and offsets in the files."""


class SyncThread:
    """Does writes, and then syncs.

    Attributes:
        sync_seconds: how long the syncs of the last work took; valid after `end`.
        opened: descriptors of the files that the last work has opened, by their index in `writes`;
            valid after `end`, and its caller's to close. Empty if anything failed.

    Raises:
        OSError: the thread or the event descriptor cannot be created.
    """

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC)
        self._inbox: queue.SimpleQueue[tuple[Writes, list[int], dict[int, str]] | None]
        self._inbox = queue.SimpleQueue()
        self._failure: tuple[int, int, bool] | None = None
        self.sync_seconds = 0.0
        self.opened: dict[int, int] = {}
        self._thread = threading.Thread(target=self._work, name="sync_thread", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return the descriptor that is readable when the work is done."""
        return self._event

    def begin(
        self,
        writes: Writes,
        syncs: list[int],
        *,
        unsynced: bool = False,
        paths: dict[int, str] | None = None,
        last: Collection[int] = (),
        repeated: Mapping[int, int] | None = None,
    ) -> None:
        """Start the writes, and the syncs (fdatasync) after them.

        Args:
            writes: at most `PERFORM_MAX` writes; a short write is continued.
            syncs: at most `PERFORM_MAX` file descriptors.
            unsynced: instead of the syncs, make the disk begin with the writes, so that a later
                sync takes less time. Not here, as Python has no call for it.
            paths: of files to open for writing, and to create if they are missing, by the index of
                the write; its descriptor is ignored.
            last: indices of writes with nothing behind them: the disk is to end with their files.
            repeated: how many bytes to write, by the index of the write: its bytes again and again.

        Raises:
            ValueError: there are more; nothing was started.
        """
        if len(writes) > PERFORM_MAX or len(syncs) > PERFORM_MAX:
            raise ValueError(f"more than {PERFORM_MAX} writes or syncs at once")
        for place, size in (repeated or {}).items():
            file, data, start = writes[place]
            whole = (data * (size // len(data) + 1))[:size]
            writes = [*writes[:place], (file, whole, start), *writes[place + 1 :]]
        self._inbox.put((writes, syncs, paths or {}))

    def end(self) -> tuple[int, int, bool] | None:
        """Wait for the end of the work.

        Returns:
            None if all was done; else the errno, the index of the failed write or sync in its
            list, and whether it was a sync. Nothing after it was done. An open counts as its
            write. Where the disk was to begin with a write and fails, that counts as a sync with
            the index of the write.
        """
        os.eventfd_read(self._event)
        return self._failure

    def stop(self) -> None:
        """End the thread; no work may be in progress."""
        if self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()
            os.close(self._event)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            try:
                self._failure = self._perform(*work)
            except Exception:  # the flusher waits for the event, and ends the broker then
                self._failure = (errno.EIO, 0, True)
            os.eventfd_write(self._event, 1)

    def _perform(
        self, writes: Writes, syncs: list[int], paths: dict[int, str]
    ) -> tuple[int, int, bool] | None:
        self.opened = {}
        failure = self._write(writes, paths)
        if failure is None:
            began = time.perf_counter()
            failure = _sync(syncs)
            self.sync_seconds = time.perf_counter() - began
        if failure is not None:
            for file in self.opened.values():
                os.close(file)
            self.opened = {}
        return failure

    def _write(self, writes: Writes, paths: dict[int, str]) -> tuple[int, int, bool] | None:
        for place, (file, data, start) in enumerate(writes):
            try:
                if place in paths:
                    file = self.opened[place] = os.open(paths[place], _FLAGS, _MODE)
                _write_all(file, data, start)
            except OSError as error:
                return error.errno or errno.EIO, place, False
        return None


def _write_all(file: int, data: bytes, start: int) -> None:
    rest = memoryview(data)
    while rest:
        done = os.pwrite(file, rest, start)
        if done <= 0:
            raise OSError(errno.ENOSPC, "nothing could be written")
        rest = rest[done:]
        start += done


def _sync(syncs: list[int]) -> tuple[int, int, bool] | None:
    for place, file in enumerate(syncs):
        try:
            os.fdatasync(file)
        except OSError as error:
            return error.errno or errno.EIO, place, True
    return None
