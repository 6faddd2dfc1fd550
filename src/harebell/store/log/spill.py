"""Write a large message of a transient log to disk, in slices.

Writing 50 MiB takes 100 ms, in which the event loop would serve no other connection. The
message stays an object, which readers get, until all of it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.limits import TRANSIENT_SLICE_BYTES, TRANSIENT_SLICE_UNITS
from harebell.base.ports import File
from harebell.store.commit import write_all
from harebell.store.log.large_record import LargeRecord

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost
    from harebell.store.log.transient_log import TransientLog, TransientSegment


class Spill:
    """The write of one segment.

    Args:
        store: what writes files in a thread.
        log: the log of the segment.
        segment: a segment with one message, which is large.
    """

    def __init__(self, store: LogHost, log: TransientLog, segment: TransientSegment) -> None:
        assert segment.messages is not None, "a large message is an object until it is written"
        self._store = store
        self._log = log
        self._segment = segment
        self._message = segment.messages[0]
        time = segment.time_of(segment.first)
        large = LargeRecord(b"", 0, log.seed, segment.first, time, self._message, 0)
        self._pieces = [(at, memoryview(data)) for at, data in large.pieces()]
        self._file: File | None = None

    def go_on(self) -> bool:
        """Write as much as this turn has time for; return True at the end."""
        messages = self._segment.messages
        if messages is None or messages[0] is not self._message:
            # The message is settled, and its segment is removed.
            self._abandon()
            return True
        try:
            if not self._write():
                return False
        except OSError as error:
            self._store.report("warning", f"{self._log.directory} stays in memory: {error}")
            self._abandon()
            return True
        self._log.spilled(self._segment)
        return True

    def _write(self) -> bool:
        if self._file is None:
            self._file = self._store.file_of(self._segment, self._log.directory)
        while self._pieces:
            at, data = self._pieces[0]
            slice_ = data[:TRANSIENT_SLICE_BYTES]
            write_all(self._file, slice_, at)
            if len(slice_) == len(data):
                del self._pieces[0]
            else:
                self._pieces[0] = at + len(slice_), data[len(slice_) :]
            units = TRANSIENT_SLICE_UNITS * len(slice_) // TRANSIENT_SLICE_BYTES
            if self._store.work.charge(units) and self._pieces:
                return False
        self._file.close()
        return True

    def _abandon(self) -> None:
        """Remove the incomplete file."""
        if self._file is not None:
            self._file.close()
            self._store.unspill(self._segment)
