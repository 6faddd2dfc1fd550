"""A large segment of a transient log on its way to disk, in slices.

To write 50 MiB takes the system a tenth of a second, in which the loop would serve nobody. The
octets stay in memory, where they are read from, until all of them are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.limits import TRANSIENT_SLICE_BYTES, TRANSIENT_SLICE_UNITS
from harebell.base.ports import File
from harebell.store.commit import write_all
from harebell.store.segment import Segment

if TYPE_CHECKING:
    from harebell.store.disk import DiskStore


class Spill:
    """What is written of one segment.

    Args:
        store: has the disk.
        segment: it is full, and a file of its own.
        folder: of the log.
        seed: where checksums of the log start from.
        release: called with the segment and the octets that are not in memory any more.
    """

    def __init__(
        self,
        store: DiskStore,
        segment: Segment,
        folder: str,
        seed: int,
        release: Callable[[Segment, int], int],
    ) -> None:
        self._store = store
        self._segment = segment
        self._folder = folder
        self._seed = seed
        self._release = release
        self._data = segment.take()
        self._written = 0
        self._file: File | None = None

    def go_on(self) -> bool:
        """Write as much as this turn has time for; True at the end."""
        if self._segment.flying is not self._data:
            # Its messages are gone, and it with them.
            self._abandon()
            return True
        try:
            if not self._write():
                return False
        except OSError as error:
            self._store.report("warning", f"{self._folder} stays in memory: {error}")
            self._segment.put_back(self._data, 0, self._seed)
            self._segment.flying = None
            self._abandon()
            return True
        self._segment.flying = None
        self._segment.made = True
        self._release(self._segment, self._segment.held)
        return True

    def _write(self) -> bool:
        if self._file is None:
            self._file = self._store.file_of(self._segment, self._folder)
        whole = memoryview(self._data)
        while self._written < len(whole):
            piece = whole[self._written : self._written + TRANSIENT_SLICE_BYTES]
            write_all(self._file, piece, self._written)
            self._written += len(piece)
            if self._store.work.charge(TRANSIENT_SLICE_UNITS) and self._written < len(whole):
                return False
        self._file.close()
        return True

    def _abandon(self) -> None:
        """Leave no part of it on disk."""
        if self._file is not None:
            self._file.close()
            self._store.unspill(self._segment)
