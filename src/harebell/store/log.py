"""The log of one queue: what is appended and settled, and what of that a batch writes.

Where messages stand is in `row`, how a log is found again after a restart is in `recovery`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.limits import (
    TRANSIENT_FIRST_BYTES,
    TRANSIENT_MEMORY_BYTES,
    TRANSIENT_RESET_BYTES,
    TRANSIENT_SEGMENT_BYTES,
    WRITE_EARLY_BYTES,
)
from harebell.base.message import PERSISTENT, Message
from harebell.kernels.batches import BatchBuilder
from harebell.store.commit import GroupCommit, Part, Write
from harebell.store.notes import Notes, write_all_of
from harebell.store.reader import Reader
from harebell.store.row import Row
from harebell.store.segment import Segment, encode_header, seed_of
from harebell.store.times import position_at

if TYPE_CHECKING:
    from harebell.store.disk import DiskStore
    from harebell.store.recovery import Found

_PERSISTENT = PERSISTENT
_FIRST_LIMIT = TRANSIENT_FIRST_BYTES
_LAST_LIMIT = TRANSIENT_SEGMENT_BYTES
_MEMORY = TRANSIENT_MEMORY_BYTES
_RESET = TRANSIENT_RESET_BYTES
_EARLY = WRITE_EARLY_BYTES


class SegmentLog(Row):
    """Records in segments.

    Args:
        store: what all logs share.
        identity: of the log.
        durable: whether its persistent messages outlive the process.
        keep_all: whether all its messages do.
        segment_octets: the size of a segment.
    """

    def __init__(
        self, store: DiskStore, identity: str, durable: bool, keep_all: bool, segment_octets: int
    ) -> None:
        super().__init__()
        self.identity = identity
        self.durable = durable
        self.folder = f"{'queues' if durable else 'transient'}/{identity}"
        self.seed = seed_of(identity)
        self.dirty = False
        self._store = store
        self._commit: GroupCommit = store.commit
        self._gauge: Gauge = store.gauge
        self._clock: Clock = store.clock
        self._keep_all = keep_all
        self._limit = segment_octets if durable else _FIRST_LIMIT
        self._reader = Reader(store.handles, self.seed)
        self._tail: Segment | None = None
        self._held = 0
        # The size that the last transient segment had when it was done.
        self._usual = 0
        self._seen = 0
        self._notes = Notes()
        self._leaving: list[Segment] = []
        self._sealed: list[Segment] = []
        self._early: list[Segment] = []
        self._early_from = _EARLY
        self._counted: dict[int, int] | None = None
        self._unreadable: set[int] | None = None
        self._gone = False

    # --- per message ----------------------------------------------------------------------------

    def append(self, message: Message) -> int:
        """Add a record at the end; returns its position."""
        tail = self._tail
        if tail is None or tail.buffer.start + tail.buffer.size >= tail.limit:
            tail = self._next_segment()
        keep = self.durable and (message.delivery_mode == _PERSISTENT or self._keep_all)
        buffer = tail.buffer
        before = buffer.size
        position = self._end
        now = self._clock.ms
        tail.positions.add(buffer.message(position, now, message, keep))
        tail.newest = now
        grown = buffer.size - before
        tail.held += grown
        self._held += grown
        self._gauge.add(grown)
        self._end = position + 1
        self._live += 1
        if self.durable:
            if buffer.size >= self._early_from:
                self._write_early(tail)
            if not self.dirty:
                self._touch()
            if keep:
                self._commit.urgent = True
                self._commit.records += 1
        return position

    def read(self, position: int) -> Message | None:
        """The record at a position; None when it was settled, or cannot be read."""
        segment = self._find(position)
        if segment is None or segment.positions.settled(position):
            return None
        try:
            message = self._reader.read(segment, segment.positions.offset(position))
        except OSError as error:
            self._unreadable_at(segment, position, str(error))
            return None
        if message is None:
            self._unreadable_at(segment, position, "its octets are damaged")
            return None
        if self._counted is not None:
            message.deliveries = self._counted.get(position, 0)
        return message

    def settle(self, position: int) -> int:
        """The record at a position will not be needed again."""
        segment = self._find(position)
        if segment is None or not segment.positions.settle(position):
            return 0
        self._live -= 1
        if self._counted is not None:
            self._counted.pop(position, None)
        if self.durable:
            self._notes.settled(position, position + 1)
            if not self.dirty:
                self._touch()
        if segment.positions.live == 0:
            self._emptied(segment)
        return 0

    def see(self, position: int) -> int:
        """Everything below a position was handed out: keep the mark on disk ahead of that."""
        if self.durable and self._notes.see(position) and not self.dirty:
            self._touch()
        return 0

    def pour(self, position: int, end: int, into: BatchBuilder) -> int:
        """Make rows of records until there are enough; returns the position to go on from."""
        builder = into
        while position < end and not builder.full:
            position = self.next(position)
            segment = self._find(position)
            if position >= end or segment is None:
                return end
            last = min(end, segment.positions.end())
            while position < last and not builder.full:
                if not self._pour_one(segment, position, builder):
                    return position
                position = segment.positions.next(position + 1)
        return min(position, end)

    def _pour_one(self, segment: Segment, position: int, builder: BatchBuilder) -> bool:
        """Make a record a row; False when it cannot be read and that is the end."""
        if self._counted is not None:
            builder.count = self._counted.get(position, 0)
        try:
            well = self._reader.pour(segment, segment.positions.offset(position), position, builder)
            why = "its octets are damaged"
        except OSError as error:
            well = False
            why = str(error)
        if well:
            return True
        self._unreadable_at(segment, position, why)
        return builder.damaged(position)

    # --- now and then ---------------------------------------------------------------------------

    def settle_range(self, first: int, end: int) -> int:
        """Settle every record from `first` up to, not including, `end`."""
        for segment in list(self.segments):
            if segment.first >= end or segment.positions.end() <= first:
                continue
            done = segment.positions.settle_range(first, end)
            self._live -= done
            if done and self.durable:
                low, high = max(first, segment.first), min(end, segment.positions.end())
                self._notes.settled(low, high)
                self._touch()
            if done and segment.positions.live == 0:
                self._emptied(segment)
        if self._counted:
            for position in [each for each in self._counted if first <= each < end]:
                del self._counted[position]
        return 0

    def seen(self) -> int:
        """When opened: every record below this position may have been handed out before."""
        return self._seen

    def count(self, position: int) -> int:
        """How many deliveries of a record have failed."""
        return 0 if self._counted is None else self._counted.get(position, 0)

    def counted(self) -> list[int]:
        """The positions whose deliveries have failed."""
        return sorted(self._counted or ())

    def set_count(self, position: int, count: int) -> int:
        """Remember how many deliveries of a record have failed."""
        segment = self._find(position)
        if segment is None or segment.positions.settled(position):
            return 0
        if self._counted is None:
            self._counted = {}
        self._counted[position] = count
        if self.durable:
            self._notes.counted(position, count)
            self._touch()
        return 0

    def time_of(self, position: int) -> int:
        """When a record was appended, in milliseconds since 1970; 0 when it cannot be read."""
        message = self.read(position)
        return 0 if message is None else message.timestamp

    def at_time(self, moment: int) -> int:
        """The first position appended at `moment` or later; `end()` without one."""
        return position_at(self, self.segments, moment)

    def retain(self, octets: int, moment: int) -> int:
        """Let whole old segments go, never the one that is written to; returns `first()`."""
        total = self.octets() if octets else 0
        while len(self.segments) > 1:
            oldest = self.segments[0]
            if not ((octets and total > octets) or (moment and oldest.newest < moment)):
                break
            total -= oldest.end()
            self._live -= oldest.positions.settle_range(oldest.first, oldest.positions.end())
            self._emptied(oldest)
        return self.first()

    def cut_at(self, octets: int) -> int:
        """Go on in a new segment from this size on, or from the next one on."""
        self._limit = octets
        if self._tail is not None:
            self._tail.limit = octets
        return 0

    def sync_soon(self) -> int:
        """What was settled so far shall be part of the next commit."""
        if self.dirty:
            self._commit.urgent = True
        return 0

    def delete(self) -> int:
        """Let every record go, and the files too."""
        self._gone = True
        self._live = 0
        self._gauge.take(self._held)
        self._held = 0
        self._notes.clear()
        self._counted = None
        for segment in self.segments:
            segment.held = 0
        made = [segment for segment in [*self.segments, *self._leaving] if segment.made]
        if self.durable and made:
            self._touch()
        elif made:
            for segment in made:
                self._store.unspill(segment)
        self._store.closed(self)
        self._reader.forget()
        self._near = None
        return 0

    def adopt(self, found: Found) -> None:
        """Take over what the log held when it was opened."""
        self.segments = list(found.segments)
        self._seen = found.seen
        self._notes.adopt(found.seen)
        self._counted = found.counts or None
        if not self.segments:
            return
        self._tail = self.segments[-1]
        self._tail.limit = self._limit
        self._end = self._tail.positions.end()
        self._live = sum(segment.positions.live for segment in self.segments)
        for segment in self.segments[:-1]:
            if segment.positions.live == 0:
                self._emptied(segment)

    def close(self) -> int:
        """The store ends in good order: say what was handed out."""
        if self.durable and self._tail is not None and not self._gone:
            self._write_notes(self._tail)
            self._notes.write_end(self._tail.buffer, self._end, self._clock.ms)
            self._touch()
        return 0

    # --- batches --------------------------------------------------------------------------------

    def collect(self) -> Part | None:
        """What is to be written now; called when a batch is gathered."""
        self.dirty = False
        part = Part(self, self.folder)
        if self._gone:
            part.gone = True
            return part
        tail = self._tail
        if tail is not None:
            self._write_notes(tail)
            self._carry_over(tail)
        part.removals = sorted(self._leaving, key=lambda segment: segment.first)
        self._leaving = []
        for segment in self._sealed:
            if segment in self.segments:
                start = segment.buffer.start
                write = Write(segment, start, segment.take(), False)
                write.cuts = segment.ahead > segment.end()
                part.writes.append(write)
                segment.made = True
        self._sealed = []
        if tail is not None and tail.buffer.size:
            write = Write(tail, tail.buffer.start, tail.take(), True)
            write.ahead = self._store.stretch(tail, len(write.data))
            tail.stretching = write.ahead > 0
            part.writes.append(write)
            tail.made = True
        part.early = [segment for segment in self._early if segment in self.segments]
        self._early = []
        return part if part.writes or part.early or part.removals else None

    def committed(self, part: Part) -> int:
        """The batch is on disk."""
        handles = self._store.handles
        for write in part.writes:
            segment = write.segment
            segment.flying = None
            if segment.stretching:
                segment.stretching = False
                segment.ahead = write.start + len(write.data) + write.ahead
            self._release(segment, len(write.data))
            handles.wrote(segment, write.goes_on and not self._gone)
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

    def _touch(self) -> int:
        """The next batch has something to do here."""
        if not self.dirty:
            self.dirty = True
            self._commit.dirty.append(self)
            self._commit.waiting = True
        return 0

    def _next_segment(self) -> Segment:
        """Go on in a new segment, unless the present one may grow."""
        tail = self._tail
        if tail is not None and not self.durable:
            crowded = tail.positions.live * 2 > tail.positions.count
            if crowded and tail.limit < _LAST_LIMIT:
                tail.limit = min(tail.limit * 4, _LAST_LIMIT)
                return tail
        if tail is not None and tail.positions.count == 0:
            return tail
        fresh = Segment(self.folder, self._end, self.seed)
        fresh.limit = self._limit
        now = self._clock.ms
        fresh.newest = now
        if self.durable:
            mark = self._notes.header_mark()
            before = 0 if tail is None else tail.end()
            fresh.buffer.raw(encode_header(self.identity, self._end, now, mark, before))
        else:
            fresh.buffer.defer(self._usual)
        self._tail = fresh
        self.segments.append(fresh)
        if tail is not None and tail.positions.live == 0:
            self._emptied(tail)
        elif tail is not None and self.durable and (tail.buffer.size or tail.ahead > tail.end()):
            self._sealed.append(tail)
        elif tail is not None and not self.durable and self._held > _MEMORY:
            self._spill(tail)
        return fresh

    def _spill(self, segment: Segment) -> None:
        """Write a full segment of a transient log to disk; without room it stays in memory.

        No thread does that: a publisher faster than the disk waits for it here, without memory.
        """
        data = segment.buffer.take()
        try:
            self._store.write_now(segment, self.folder, data, 0)
        except OSError as error:
            self._store.report("warning", f"{self.folder} stays in memory: {error}")
            segment.put_back(data, 0, self.seed)
            return
        segment.made = True
        self._release(segment, len(data))

    def _write_early(self, segment: Segment) -> int:
        """Write what the newest segment has gathered without waiting for a batch.

        Publishers that are faster than the syncs fill no memory that way. The next batch syncs it.
        """
        if self._commit.joint or segment.stretching:
            # A part of a transaction must not be on disk ahead of the rest of it, and space
            # must not be written over what belongs there.
            return 0
        at = segment.buffer.start
        data = segment.buffer.take()
        try:
            self._store.write_now(segment, self.folder, data, at)
        except OSError:
            segment.put_back(data, at, self.seed)
            self._early_from = segment.buffer.size + _EARLY
            return 0
        self._early_from = _EARLY
        segment.fresh = segment.fresh or not segment.made
        segment.made = True
        self._release(segment, len(data))
        if segment not in self._early:
            self._early.append(segment)
        return 0

    def _release(self, segment: Segment, octets: int) -> None:
        """So many octets of a segment are not in memory any more."""
        freed = min(segment.held, octets)
        segment.held -= freed
        self._held -= freed
        self._gauge.take(freed)

    def _emptied(self, segment: Segment) -> int:
        """Nothing in a segment is live."""
        if segment is self._tail:
            if self.durable or segment.buffer.size < _RESET:
                return 0
            self._tail = None
            self._usual = segment.buffer.size
        self.segments.remove(segment)
        if self._near is segment:
            self._near = None
        self._gauge.take(segment.held)
        self._held -= segment.held
        segment.held = 0
        if segment.made:
            if self.durable:
                self._leaving.append(segment)
                self._touch()
            else:
                self._store.unspill(segment)
        return 0

    def _unreadable_at(self, segment: Segment, position: int, why: str) -> None:
        if self._unreadable is None:
            self._unreadable = set()
        if position not in self._unreadable:
            self._unreadable.add(position)
            self._store.report(
                "error", f"{segment.path}: the message at position {position} is kept back: {why}"
            )

    def _write_notes(self, tail: Segment) -> None:
        """Write down what was settled and counted since the last batch."""
        for first, end in self._notes.write(tail.buffer, self._end, self._clock.ms):
            if first < tail.first:
                for segment in self.segments[self._index(first) : self._index(end - 1) + 1]:
                    tail.refer(segment.first)

    def _carry_over(self, tail: Segment) -> int:
        """Repeat what leaving segments say of others that stay (FORMAT.md, invariant 2)."""
        told: set[int] = set()
        for leaving in self._leaving:
            told.update(leaving.targets or ())
        if not told:
            return 0
        for segment in self.segments:
            if segment.first not in told or segment is tail:
                continue
            write_all_of(tail.buffer, segment, self._counted or {}, self._end, self._clock.ms)
            tail.refer(segment.first)
        return 0
