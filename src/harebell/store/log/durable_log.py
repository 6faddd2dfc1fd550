"""The log of a durable queue: append, settle, and collect the writes of a commit.

`segmented_log` finds and reads records, `recovery` opens a log after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, Py, i32, i64, isize
from harebell.base.message import PERSISTENT, Message
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.records import STAGED, RecordBuffer
from harebell.kernels.rows import Rows
from harebell.store.commit import GroupCommit, Part, Write
from harebell.store.limits import STAGE_UNSYNCED_SEGMENTS, WRITE_EARLY_BYTES
from harebell.store.log.large_record import LargeRecord
from harebell.store.log.log_index import LogIndex, index_of
from harebell.store.log.segment import Segment, encode_header
from harebell.store.log.segmented_log import SegmentedLog
from harebell.store.log.settlement_buffer import SettlementBuffer, write_all_of

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost
    from harebell.store.recovery import RecoveredLog

_PERSISTENT: i32 = PERSISTENT
_EARLY: i64 = WRITE_EARLY_BYTES
_EARLY_MAX: i64 = 2 * WRITE_EARLY_BYTES
_STAGED: i32 = STAGED
_LARGE: isize = LARGE_RECORD_BYTES
_UNSYNCED_MAX = STAGE_UNSYNCED_SEGMENTS


class DurableLog(SegmentedLog):
    """A log whose records survive a restart.

    Args:
        store: files, clock and limits, which all logs share.
        identity: the identity of the log.
        keep_all: whether all its messages survive a restart, not only persistent ones.
        segment_bytes: the size of a segment.
    """

    def __init__(self, store: LogHost, identity: str, keep_all: bool, segment_bytes: i64) -> None:
        super().__init__(store, identity, f"queues/{identity}")
        self.dirty = False
        self._commit: GroupCommit = store.commit
        self._keep_all = keep_all
        self._limit = segment_bytes
        self._tail: Segment | None = None
        self._seen: i64 = 0
        # The highest mark of delivered records that is in a file.
        self._mark: i64 = 0
        self._settlements = SettlementBuffer()
        self._leaving: list[Segment] = []
        self._sealed: list[Segment] = []
        self._early: list[Segment] = []
        self._early_from: i64 = _EARLY
        self._gone = False
        # Whether the next commit has the record of an orderly close.
        self._closing = False
        # The batch whose rows are being appended.
        self._staging: i64 = 0
        # Bytes of its rows that no commit has taken, with the headers of segments between them.
        self._row_bytes: i64 = 0
        # Whether such a header raises the mark of positions that may have been delivered.
        self._marks = False
        # Segments with rows that were not synced.
        self._unsynced: list[Segment] = []

    # --- per message ----------------------------------------------------------------------------

    def append(self, message: Message) -> i64:
        """Append a record; return its position."""
        tail = self._tail
        if tail is None or tail.buffer.start + tail.buffer.size >= tail.limit:
            tail = self._next_segment()
        keep: i32 = 1 if message.delivery_mode == _PERSISTENT or self._keep_all else 0
        if keep and self._commit.staging:
            keep = self._stage()
        position: i64 = self._end
        now: i64 = self._clock.ms
        if len(message.body) >= _LARGE:
            tail = self._own_segment()
            self._add_large(tail, now, message, keep)
        buffer: RecordBuffer = tail.buffer
        before: isize = buffer.size
        if tail.large is None:
            tail.positions.add(buffer.message(position, now, message, keep))
        grown: isize = buffer.size - before
        tail.newest = now
        tail.held += grown
        self._held += grown
        self._gauge.add(grown)
        self._end = position + 1
        self._live += 1
        if buffer.size >= self._early_from:
            self._write_early(tail)
        if not self.dirty:
            self._touch()
        if keep:
            self._commit.urgent = True
            if keep == 1:
                self._commit.records += 1
            else:
                # No confirm waits for a row of a batch.
                self._row_bytes += grown
        else:
            tail.exact = False
        return position

    def append_rows(self, rows: Py[Rows], first: isize, end: isize, like: Message) -> i64:
        """Append records of rows that differ in their bodies only; return their first position."""
        if len(like.body) >= _LARGE:
            return self.append(like)
        begin: i64 = self._end
        keep: i32 = 1 if like.delivery_mode == _PERSISTENT or self._keep_all else 0
        if keep and self._commit.staging:
            keep = self._stage()
        now: i64 = self._clock.ms
        while first < end:
            tail = self._tail
            if tail is None or tail.buffer.start + tail.buffer.size >= tail.limit:
                tail = self._next_segment()
            buffer: RecordBuffer = tail.buffer
            before: isize = buffer.size
            limit: i64 = tail.limit - buffer.start
            # Rows are encoded up to the next early write, and no further: a batch may have any
            # size.
            if before < self._early_from:
                limit = min(limit, self._early_from)
            count: isize = buffer.rows(
                self._end, now, rows, first, end, keep, limit, tail.positions
            )
            grown: isize = buffer.size - before
            tail.newest = now
            tail.held += grown
            self._held += grown
            self._gauge.add(grown)
            self._end += count
            self._live += count
            if keep == 1:
                self._commit.records += count
            else:
                self._row_bytes += grown
            if not keep:
                tail.exact = False
            first += count
            if buffer.size >= self._early_from:
                self._write_early(tail)
        if not self.dirty:
            self._touch()
        if keep:
            self._commit.urgent = True
        return begin

    def _own_segment(self) -> C[Segment]:
        """Return a segment for a large message: an empty one, which gets no other message."""
        tail = self._tail
        if tail is None or tail.positions.count:
            tail = self._next_segment()
        # The next message begins another segment.
        tail.limit = 0
        return tail

    def _add_large(self, tail: Segment, now: int, message: Message, keep: int) -> None:
        """Append a large message to a segment of its own."""
        offset = tail.buffer.start + tail.buffer.size
        # Encoding may raise, so the buffer is emptied only afterwards.
        large = LargeRecord(b"", offset, self.seed, self._end, now, message, keep)
        large.before = tail.buffer.take()
        tail.positions.add(offset)
        tail.hold_large(large, self.seed)
        # The gauge counts a body once that several logs share.
        self._gauge.hold(message)
        self.has_large = True

    def _stage(self) -> i32:
        """Note a row of a batch; return the mark for its record."""
        commit = self._commit
        if self._staging != commit.staging:
            self._staging = commit.staging
            commit.staged.append((self.identity, self._end))
            # The note of the batch and its first row are committed together: a row on disk that no
            # note mentions would be taken for a message after a crash.
            commit.joint = True
        return 1 | _STAGED

    def settle(self, position: i64) -> Done:
        """Settle the record at a position."""
        segment = self._find(position)
        if segment is None or not segment.positions.settle(position):
            return 0
        self._live -= 1
        if self._counted is not None:
            self._counted.pop(position, None)
        self._settlements.settled(position, position + 1)
        if not self.dirty:
            self._touch()
        if segment.positions.live == 0:
            self._emptied(segment)
        return 0

    def see(self, position: i64) -> Done:
        """Note that records below a position were delivered; keep the mark on disk ahead."""
        if self._settlements.see(position) and not self.dirty:
            self._touch()
        return 0

    # --- now and then ---------------------------------------------------------------------------

    def _settle_in(self, segment: Segment, first: i64, end: i64) -> Done:
        """Settle the records of a segment from `first` up to, not including, `end`."""
        done: i64 = segment.positions.settle_range(first, end)
        if done:
            self._live -= done
            self._settlements.settled(first, end)
            if not self.dirty:
                self._touch()
            if segment.positions.live == 0:
                self._emptied(segment)
        return 0

    def seen(self) -> i64:
        """Return the position below which records may have been delivered before the start."""
        return self._seen

    def set_count(self, position: i64, count: i32) -> Done:
        """Set the delivery count of a record."""
        if self._set_count(position, count):
            self._settlements.counted(position, count)
            self._touch()
        return 0

    def cut_at(self, byte_count: i64) -> Done:
        """Start new segments at this size, from the current or the next segment on."""
        self._limit = byte_count
        if self._tail is not None:
            self._tail.limit = byte_count
        return 0

    def sync_soon(self) -> Done:
        """Make the settlements so far part of the next commit."""
        if self.dirty:
            self._commit.urgent = True
        return 0

    def delete(self) -> Done:
        """Delete all records and files."""
        self._gone = True
        self._live = 0
        self._gauge.take(self._held)
        self._held = 0
        self._settlements.clear()
        self._counted = None
        for segment in self.segments:
            self._store.offsets.remove(segment)
            segment.held = 0
            self._forget_large(segment)
            self._forget_recalled(segment)
        made = [segment for segment in [*self.segments, *self._leaving] if segment.made]
        if made:
            self._touch()
        self._store.closed(self)
        self._reader.forget()
        self._near = None
        return 0

    def adopt(self, recovered: RecoveredLog) -> None:
        """Take the segments and marks that recovery has read."""
        self.segments = list(recovered.segments)
        # Any segment may have a large message: `is_spilled` looks for it.
        self.has_large = bool(self.segments)
        self._seen = recovered.seen
        self._mark = recovered.mark
        self._settlements.adopt(recovered.seen)
        self._counted = recovered.counts or None
        if not self.segments:
            return
        self._tail = self.segments[-1]
        self._tail.limit = self._limit
        self._end = self._tail.positions.end()
        self._live = sum(segment.positions.live for segment in self.segments)
        for segment in self.segments[:-1]:
            # The last process died after the commit that settled them, and before it removed the
            # file.
            if segment.positions.live == 0:
                self._emptied(segment)

    def take_back(self, position: int) -> int:
        """Remove, after opening, the rows of an uncommitted batch from a position on."""
        # The rows and the note of their batch are settled together. If only the note were settled,
        # the remaining rows would become messages.
        self._commit.joint = True
        count = 0
        position = self.next(position)
        while position < self._end:
            segment = self._find(position)
            if segment is not None and self._is_row(segment, position):
                self.settle(position)
                count += 1
            position = self.next(position + 1)
        return count

    def _is_row(self, segment: Segment, position: int) -> bool:
        """True if a record is a row of a batch; False if it cannot be read."""
        try:
            self._load_offsets(segment)
            return self._reader.is_row(segment, segment.positions.offset(position))
        except OSError:
            return False

    def close(self) -> Done:
        """Have the next commit store the exact mark of delivered records, for a clean end."""
        if self._tail is not None and not self._gone:
            self._closing = True
            self._touch()
        return 0

    def index(self) -> LogIndex | None:
        """Return its state, for the next start; None if that has to read all segments anyway.

        Everything is on disk, and the record of an orderly close is the last one.

        Raises:
            OSError: the disk refuses.
        """
        if self._tail is None or self._gone or self.dirty or not self._tail.all_on_disk():
            return None
        for segment in self._unsynced:
            # After a loss of power, the start has to see which of its rows are there.
            segment.exact = False
        mark = max(self._mark, self._settlements.mark)
        return index_of(self._store, self.segments, self._counted or {}, mark, self.seed)

    # --- batches --------------------------------------------------------------------------------

    def written(self) -> list[tuple[str, int]]:
        """Return the paths of its segments on disk, with how many bytes of each are written.

        Segments whose removal is not committed are among them. No batch may be in progress.
        """
        files = [(segment.path, segment.on_disk()) for segment in [*self.segments, *self._leaving]]
        return [(path, size) for path, size in files if size]

    def collect(self) -> C[Part | None]:
        """Return the changes for the next batch; called when a commit is gathered."""
        write: Write
        self.dirty = False
        part = Part(self, self.directory)
        handles = self._store.handles
        row_bytes, self._row_bytes = self._row_bytes, 0
        marks, self._marks = self._marks, False
        if self._gone:
            self._unsynced = []
            for segment in [*self.segments, *self._leaving]:
                handles.close_reader(segment)
            part.gone = True
            return part
        tail = self._tail
        if tail is not None:
            # Before the buffers are taken: these calls append records to the newest segment.
            self._write_settlements(tail)
            if self._leaving:
                self._carry_over(tail)
            if self._closing:
                # Behind all other records: the next start takes others behind it for a later life.
                self._closing = False
                self._settlements.write_end(tail.buffer, self._end, self._clock.ms)
        if self._leaving:
            part.removals = _in_order(self._leaving)
            self._leaving = []
            for segment in part.removals:
                handles.close_reader(segment)
        for segment in self._sealed:
            # A sealed segment may be settled completely before its last records are written.
            if segment in self.segments:
                self._collect_large(segment, part)
                start = segment.buffer.start
                write = Write(segment, start, segment.take(), False)
                write.cuts = segment.ahead > segment.end()
                part.writes.append(write)
                segment.made = True
        self._sealed = []
        if tail is not None:
            self._collect_large(tail, part)
        if tail is not None and tail.buffer.size:
            write = Write(tail, tail.buffer.start, tail.take(), True)
            write.ahead = self._store.stretch(tail, len(write.data))
            tail.stretching = write.ahead > 0
            part.writes.append(write)
            tail.made = True
        if tail is not None:
            part.rows_only = not marks and _only_rows(part.writes, row_bytes)
            if part.rows_only or self._unsynced:
                self._sync_later(part)
        if self._early:
            part.early = [segment for segment in self._early if segment in self.segments]
            self._early = []
            if tail is not None and not tail.buffer.size:
                # Its memory, which an early write has left.
                tail.buffer.take()
        return part if part.writes or part.early or part.removals else None

    def _collect_large(self, segment: Segment, part: Part) -> None:
        """Write the large message of a segment; it is read from memory until that is done."""
        if segment.large is not None:
            for offset, data in segment.large.pieces():
                part.writes.append(Write(segment, offset, data, True))
            part.large.append(segment)
            segment.made = True

    def committed(self, part: Part) -> Done:
        """Note that the commit is on disk."""
        write: Write
        handles = self._store.handles
        for write in part.writes:
            segment = write.segment
            segment.flying = None
            if segment.stretching:
                segment.stretching = False
                segment.ahead = write.start + len(write.data) + write.ahead
            self.release(segment, min(segment.held, len(write.data)))
            # The kernel reports a failed write-back to descriptors that were open at that time,
            # so a file with unsynced rows stays open until its sync.
            goes_on = write.goes_on or segment in self._unsynced
            handles.wrote(segment, goes_on and not self._gone)
        for segment in part.large:
            self._forget_large(segment)
        if self._unsynced:
            # The next commit has to sync these segments.
            self._touch()
        for segment in part.early:
            segment.fresh = False
            handles.wrote(segment, segment is self._tail and not self._gone)
        for segment in part.removals:
            handles.close(segment)
        if self._gone:
            for segment in [*self.segments, *self._leaving]:
                handles.close(segment)
            if part.gone:
                self.segments = []
                self._leaving = []
                self._store.removed(self)
        return 0

    # --- inside ---------------------------------------------------------------------------------

    def _touch(self) -> Done:
        """Add the log to the next commit."""
        if not self.dirty:
            self.dirty = True
            self._commit.dirty.append(self)
            self._commit.waiting = True
        return 0

    def _next_segment(self) -> C[Segment]:
        """Start a new segment, unless the current one is empty."""
        tail = self._tail
        if tail is not None and tail.positions.count == 0:
            return tail
        if tail is not None and tail.buffer.size and self._early:
            # The publishers are faster than the syncs: its rest would wait for the next one.
            self._write_early(tail)
        fresh = Segment(self.directory, self._end, self.seed)
        fresh.limit = self._limit
        now = self._clock.ms
        fresh.newest = now
        marked = self._settlements.mark
        mark = self._settlements.header_mark()
        self._marks = self._marks or mark > marked
        before = 0 if tail is None else tail.end()
        if tail is not None and not tail.buffer.size:
            fresh.go_on_from(tail, self.seed)
        fresh.buffer.raw(encode_header(self.identity, self._end, now, mark, before))
        self._row_bytes += fresh.buffer.size
        self._tail = fresh
        self.segments.append(fresh)
        if tail is not None and tail.positions.live == 0:
            self._emptied(tail)
        elif tail is not None:
            if tail.buffer.size or tail.large is not None or tail.ahead > tail.end():
                self._sealed.append(tail)
            self._store.offsets.fill(tail, self.seed)
        return fresh

    def _write_early(self, segment: Segment) -> Done:
        """Write what the newest segment has gathered, without waiting for a commit.

        So publishers that are faster than the syncs do not fill the memory. The next commit syncs
        it.
        """
        if self._commit.joint or segment.buffer.size > _EARLY_MAX:
            # Not for a part of a transaction, which must not be on disk before the rest, and not
            # for what gathered while the disk refused, which blocks.
            return 0
        if segment.stretching:
            # Space is being written ahead at the same place. The next message begins another
            # segment, which can be written meanwhile.
            segment.limit = 0
            return 0
        buffer: RecordBuffer = segment.buffer
        size: isize = buffer.size
        try:
            self._store.write_now(segment, self.directory, buffer.view(), buffer.start)
        except OSError:
            # The next commit meets the same error and blocks publishers. Until it runs, this is
            # not tried again for every message.
            self._early_from = size + _EARLY
            return 0
        buffer.empty_at(buffer.start + size)
        self._early_from = _EARLY
        segment.fresh = segment.fresh or not segment.made
        segment.made = True
        self.release(segment, min(segment.held, size))
        self._row_bytes = 0
        self._add_early(segment)
        return 0

    def _add_early(self, segment: Segment) -> Done:
        """Have the next commit sync a segment."""
        if segment not in self._early:
            self._early.append(segment)
        return 0

    def _sync_later(self, part: Part) -> None:
        """Leave rows of a staged batch unsynced if the commit may; else sync those before."""
        part.rows_only = (
            part.rows_only
            and self._commit.unsynced
            # Then the rows before these must be there when the redo file is applied.
            and not self._commit.joint
            and len(self._unsynced) < _UNSYNCED_MAX
            and not (part.removals or part.large or self._early)
        )
        if part.rows_only:
            for write in part.writes:
                segment = write.segment
                segment.fresh = segment.fresh or write.start == 0
                if segment not in self._unsynced:
                    self._unsynced.append(segment)
        elif self._unsynced:
            # Also segments that this commit writes to: the redo file has the writes of this commit
            # only, and they would begin behind a gap if earlier rows were lost.
            for segment in self._unsynced:
                self._add_early(segment)
            part.started = self._unsynced
            self._unsynced = []

    def _emptied(self, segment: Segment) -> Done:
        """Remove a segment without unsettled records."""
        self._forget_recalled(segment)
        if segment is not self._tail:
            self._store.offsets.remove(segment)
            self._leave(segment)
            if segment.made:
                self._leaving.append(segment)
                self._touch()
        return 0

    def _write_settlements(self, tail: Segment) -> C[None]:
        """Write the settlements and counts since the last commit."""
        for first, end in self._settlements.write(tail.buffer, self._end, self._clock.ms):
            if first < tail.first:
                for segment in self.segments[self._index(first) : self._index(end - 1) + 1]:
                    tail.refer(segment.first)

    def _carry_over(self, tail: Segment) -> None:
        """Repeat records of removed segments about remaining ones (FORMAT.md, invariant 2)."""
        referred: set[int] = set()
        for leaving in self._leaving:
            referred.update(leaving.targets or ())
        if not referred:
            return
        for segment in self.segments:
            if segment.first not in referred or segment is tail:
                continue
            write_all_of(tail.buffer, segment, self._counted or {}, self._end, self._clock.ms)
            tail.refer(segment.first)


def _in_order(segments: list[Segment]) -> list[Segment]:
    """Return segments, the oldest first."""
    return sorted(segments, key=lambda segment: segment.first)


def _only_rows(writes: list[Write], row_bytes: i64) -> C[bool]:
    """True if there are writes, of these bytes only, and space behind them stays as it is."""
    write: Write
    byte_count: i64 = 0
    for write in writes:
        if write.ahead or write.cuts:
            return False
        byte_count += len(write.data)
    return 0 < byte_count == row_bytes
