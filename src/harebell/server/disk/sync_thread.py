"""Writes and syncs in a thread of its own: in Python, and in C in `sync_thread.pyx`.

    loop      begin(writes, syncs) ............ end() -> None or what failed
    thread           pwrite, pwrite, fdatasync  ^ fileno() is readable

One piece of work is under way at a time. Most commits are nothing but this, so it is done with as
few hand-overs between threads as can be; everything else about a commit is the flusher's.
"""

from __future__ import annotations

import errno
import os
import queue
import threading

from harebell.base.limits import PERFORM_MOST

Writes = list[tuple[int, bytes, int]]
"""File file_limits, octets, and offsets in the file."""


class SyncThread:
    """Carries out writes, and then syncs.

    Raises:
        OSError: there is no thread, or no event descriptor, for it.
    """

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC)
        self._inbox: queue.SimpleQueue[tuple[Writes, list[int]] | None] = queue.SimpleQueue()
        self._failure: tuple[int, int, bool] | None = None
        self._thread = threading.Thread(target=self._work, name="sync_thread", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """A descriptor that is readable when the work is done."""
        return self._event

    def begin(self, writes: Writes, syncs: list[int]) -> None:
        """Begin to write, and to sync (fdatasync) after that.

        Args:
            writes: all octets are written, in as many calls as it takes; at most
                `PERFORM_MOST` of them.
            syncs: file file_limits; as many at most.

        Raises:
            ValueError: there is more than that; nothing was begun.
        """
        if len(writes) > PERFORM_MOST or len(syncs) > PERFORM_MOST:
            raise ValueError(f"more than {PERFORM_MOST} writes or syncs at once")
        self._inbox.put((writes, syncs))

    def end(self) -> tuple[int, int, bool] | None:
        """Wait for the end of the work.

        Returns:
            None when all was done; else the error's number, the place in the list of what failed,
            and whether that was a sync. Nothing after it was done.
        """
        os.eventfd_read(self._event)
        return self._failure

    def stop(self) -> None:
        """End the thread when it has nothing to do."""
        if self._thread.is_alive():
            self._inbox.put(None)
            self._thread.join()
            os.close(self._event)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            self._failure = _perform(*work)
            os.eventfd_write(self._event, 1)


def _perform(writes: Writes, syncs: list[int]) -> tuple[int, int, bool] | None:
    for place, (file, data, start) in enumerate(writes):
        rest = memoryview(data)
        try:
            while rest:
                done = os.pwrite(file, rest, start)
                if done <= 0:
                    return errno.ENOSPC, place, False
                rest = rest[done:]
                start += done
        except OSError as error:
            return error.errno or errno.EIO, place, False
    for place, file in enumerate(syncs):
        try:
            os.fdatasync(file)
        except OSError as error:
            return error.errno or errno.EIO, place, True
    return None
