"""Write messages of transient logs to disk, in slices.

Writing 50 MiB takes 100 ms, in which the event loop would serve no other connection. A large
message stays an object, which readers get, until all of it is written. Where memory is short,
`Spilling` writes what many queues have, segment by segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.ports import File, write_all
from harebell.store.limits import TRANSIENT_SLICE_BYTES, TRANSIENT_SLICE_UNITS
from harebell.store.log.large_record import LargeRecord

if TYPE_CHECKING:
    from harebell.base.work import Work
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
        self._pieces = [(offset, memoryview(data)) for offset, data in large.pieces()]
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
            offset, data = self._pieces[0]
            slice_ = data[:TRANSIENT_SLICE_BYTES]
            write_all(self._file, slice_, offset)
            if len(slice_) == len(data):
                del self._pieces[0]
            else:
                self._pieces[0] = offset + len(slice_), data[len(slice_) :]
            units = TRANSIENT_SLICE_UNITS * len(slice_) // TRANSIENT_SLICE_BYTES
            if self._store.work.charge(units) and self._pieces:
                return False
        self._file.close()
        return True

    def _abandon(self) -> None:
        """Remove the incomplete file."""
        self._segment.written = False
        if self._file is not None:
            self._file.close()
            self._store.unspill(self._segment)


class Spilling:
    """The write of what transient logs have in memory.

    Args:
        logs: what is written, the last one first.
        work: counts what a turn may do.

    Attributes:
        done: whether nothing is left to write.
    """

    def __init__(self, logs: list[TransientLog], work: Work) -> None:
        self._logs = logs
        self._work = work
        self.done = not logs

    def go_on(self) -> bool:
        """Write as much as this turn has time for; return True at the end."""
        while self._logs:
            byte_count = self._logs[-1].spill_one()
            if byte_count < 0:
                # The disk refuses: the other logs would meet the same error.
                self._logs.clear()
            elif not byte_count:
                self._logs.pop()
            elif self._work.charge(TRANSIENT_SLICE_UNITS * byte_count // TRANSIENT_SLICE_BYTES + 1):
                break
        self.done = not self._logs
        return self.done
