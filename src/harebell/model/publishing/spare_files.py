"""Spare files: those of committed batches, kept for a moment for the batches that follow.

To write into a file that exists takes a third of the time of a new one: its pages are in the page
cache already, while those of a new file have to be found and cleared, and freed at its removal.

    committed batch  -> keep -> spare -> take -> file of another batch
                                  | when no batch has taken or left one for a while,
                                  v or the disk space is low
                               removed

A spare file has the old bytes, but begins with zeros, so a start finds no piece in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from harebell.base.clock import Clock
from harebell.base.ports import File, Files
from harebell.base.timers import Timers
from harebell.model.limits import STAGE_SPARE_BYTES, STAGE_SPARE_SECONDS, STAGE_SPARE_SHARE
from harebell.model.publishing.stage_files import forget_pieces

_MS = 1000


class _Spare(NamedTuple):
    file: File
    path: str
    size: int


class SpareFiles:
    """The spare files of a broker.

    Args:
        files: the data directory.
        clock: tells how long they have not been used.
        timers: the timers, for removing them.
        remove: removes the file of a path, now or later.

    Attributes:
        byte_count: the size of all of them.
    """

    def __init__(
        self, files: Files, clock: Clock, timers: Timers, remove: Callable[[str], None]
    ) -> None:
        self.byte_count = 0
        self._files = files
        self._clock = clock
        self._timer = timers.timer(self.remove_all)
        self._remove = remove
        self._spares: list[_Spare] = []

    def keep(self, file: File, path: str, floor: int) -> None:
        """Keep an open file, or close and remove it if there are enough.

        Args:
            file: one that is open, and that no batch has any more.
            path: where it is.
            floor: bytes of the disk that stay free.
        """
        try:
            size = file.size()
            room = int((self._files.free() - floor) * STAGE_SPARE_SHARE)
            kept = self.byte_count + size <= min(STAGE_SPARE_BYTES, room)
            if kept:
                forget_pieces(file)
        except OSError:
            kept = False
        if not kept:
            file.close()
            self._remove(path)
            return
        self._spares.append(_Spare(file, path, size))
        self.byte_count += size
        self._wait()

    def take(self, path: str) -> File | None:
        """Rename a spare file to a path, and return it; None if there is none."""
        while self._spares:
            spare = self._spares.pop()
            self.byte_count -= spare.size
            self._wait()
            # A spare file only saves time: without it the caller makes a new one.
            with contextlib.suppress(OSError):
                self._files.rename(spare.path, path)
                return spare.file
            spare.file.close()
            self._remove(spare.path)
        return None

    def remove_all(self) -> None:
        """Remove all of them."""
        spares, self._spares = self._spares, []
        self.byte_count = 0
        self._timer.stop()
        for spare in spares:
            spare.file.close()
            self._remove(spare.path)

    def _wait(self) -> None:
        self._timer.set(self._clock.steady + STAGE_SPARE_SECONDS * _MS)
