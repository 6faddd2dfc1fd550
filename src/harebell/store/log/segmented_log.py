"""A log as a sequence of segments: find a position, the next message, and read it.

Appending and settling differ: `DurableLog` keeps messages over a restart, `TransientLog` does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, Py, i32, i64, isize, u32
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.store.log.reader import Reader
from harebell.store.log.recall import OffsetSearch, Recall
from harebell.store.log.segment import Segment, seed_of

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost

_LARGE: i64 = LARGE_RECORD_BYTES


class SegmentedLog(Log):
    """The segments of one log.

    Args:
        store: files, clock and limits, which all logs share.
        identity: the identity of the log.
        directory: the directory of its files.

    Attributes:
        segments: the oldest first.
    """

    def __init__(self, store: LogHost, identity: str, directory: str) -> None:
        super().__init__()
        self.identity = identity
        self.directory = directory
        self.seed: u32 = seed_of(identity)
        self.segments: list[Segment] = []
        # The segment found last, which most likely has the next position.
        self._near: Segment | None = None
        self._end: i64 = 0
        self._live: i64 = 0
        # The position of the record whose time was asked for last, and the time.
        self._timed: i64 = -1
        self._time: i64 = 0
        # Bytes that the memory gauge counts.
        self._held: i64 = 0
        self._store = store
        self._gauge: Gauge = store.gauge
        self._clock: Clock = store.clock
        self._reader = Reader(store.handles, self.seed)
        self._counted: Py[dict[int, int] | None] = None
        self._unreadable: Py[set[int] | None] = None

    # --- where ----------------------------------------------------------------------------------

    def first(self) -> i64:
        """Return the smallest unsettled position; `end()` if there is none."""
        for segment in self.segments:
            if segment.positions.live:
                return segment.positions.next(segment.first)
        return self._end

    def next(self, position: i64) -> i64:
        """Return the smallest unsettled position from `position` on; `end()` if there is none."""
        segment: Segment | None = self._find(position)
        if segment is not None:
            live: i64 = segment.positions.next(position)
            if live < segment.positions.end():
                return live
            position = segment.positions.end()
        for segment in self.segments[self._index(position) :]:
            if segment.positions.live:
                live = segment.positions.next(max(position, segment.first))
                if live < segment.positions.end():
                    return live
        return self._end

    def end(self) -> i64:
        """Return the position that the next record gets."""
        return self._end

    def live(self) -> i64:
        """Return how many records are not settled."""
        return self._live

    def reach(
        self, position: i64, end: i64, messages: i64, byte_count: i64
    ) -> C[tuple[int, int, int]]:
        """Return how far that many unsettled records reach, or that many bytes."""
        reached: i64
        count: i64
        total: i64
        reached, count, total = position, 0, 0
        segment: Segment
        for segment in self.segments[self._index(position) :]:
            if segment.first >= end or count >= messages:
                break
            if not segment.positions.live or segment.positions.end() <= position:
                continue
            try:
                self._load_offsets(segment)
            except OSError:
                # A message whose size cannot be read counts as empty: to read it reports the error.
                live: i64 = segment.positions.next(max(position, segment.first))
                if count or live >= min(end, segment.positions.end()):
                    break
                return live + 1, 1, 0
            room: i64 = -1 if byte_count < 0 else byte_count - total
            stop: i64
            more: i64
            size: i64
            stop, more, size = segment.positions.reach(
                max(position, segment.first), end, segment.end(), messages - count, room
            )
            if more:
                reached = stop
                count += more
                total += size
            if (
                count < messages
                and byte_count >= 0
                and segment.positions.next(stop) < min(end, segment.positions.end())
            ):
                # The next message of this segment does not fit: going on would skip it.
                break
        return reached, count, total

    def live_in(self, first: i64, end: i64) -> i64:
        """Return how many records from `first` up to, not including, `end` are not settled."""
        live: i64 = 0
        segment: Segment
        for segment in self.segments[self._index(first) :]:
            if segment.first >= end:
                break
            live += segment.positions.live_in(first, end)
        return live

    def byte_count(self) -> i64:
        """Return the size of the log in bytes."""
        return sum([segment.end() for segment in self.segments])

    # --- reading --------------------------------------------------------------------------------

    def read(self, position: i64) -> C[Message | None]:
        """Return the record at a position; None if it is settled or cannot be read."""
        segment = self._find(position)
        if segment is None or segment.positions.settled(position):
            return None
        try:
            if not segment.positions.is_loaded():
                self._load_offsets(segment)
            message: Message | None = self._reader.read(segment, segment.positions.offset(position))
        except OSError as error:
            self._unreadable_at(segment, position, str(error))
            return None
        if message is None:
            self._unreadable_at(segment, position, "its bytes are damaged")
            return None
        return message

    def is_spilled(self, position: i64) -> C[bool]:
        """True if a record is a large one on disk that was not fetched, or has to be searched."""
        segment = self._find(position)
        if segment is None or not segment.fetchable:
            return False
        if not segment.positions.is_loaded():
            return not self._store.offsets.at_hand(segment, self.seed)
        return (
            segment.recalled is None
            and segment.messages is None
            and segment.large is None
            and segment.positions.count == 1
            and segment.positions.offset(position) < segment.buffer.start
            and segment.end() - segment.positions.offset(position) >= _LARGE
        )

    def load_spilled(self, position: int, done: Callable[[], object]) -> None:
        """Load a spilled record in slices; it is no longer spilled when `done` is called."""
        segment = self._find(position)
        assert segment is not None, "the record is spilled"
        if segment.recall is None:
            reading = Recall if segment.positions.is_loaded() else OffsetSearch
            segment.recall = reading(self._store, segment, self.seed, done)
            self._store.go_on(segment.recall.go_on)
        elif done not in segment.recall.waiting:
            segment.recall.waiting.append(done)

    def append_to(self, position: i64, end: i64, into: Py[BatchBuilder]) -> i64:
        """Make rows of records until the builder is full; return the position to continue from."""
        builder: BatchBuilder = into
        while position < end and not builder.full:
            position = self.next(position)
            segment = self._find(position)
            if position >= end or segment is None:
                return end
            last: i64 = min(end, segment.positions.end())
            while position < last and not builder.full:
                if self._counted is not None:
                    builder.count = self._counted.get(position, 0)
                if not self._append_one_to(segment, position, builder):
                    return position
                position = segment.positions.next(position + 1)
        return min(position, end)

    def _append_one_to(self, segment: Segment, position: i64, builder: BatchBuilder) -> C[bool]:
        """Make a row of a message; False if it cannot be read and the builder stops."""
        return self._append_record_to(segment, position, builder)

    def _append_record_to(self, segment: Segment, position: i64, builder: BatchBuilder) -> C[bool]:
        """Make a row of a record; False if it cannot be read and the builder stops."""
        try:
            if not segment.positions.is_loaded():
                self._load_offsets(segment)
            well = self._reader.append_to(
                segment, segment.positions.offset(position), position, builder
            )
            why = "its bytes are damaged"
        except OSError as error:
            well = False
            why = str(error)
        if well:
            return True
        self._unreadable_at(segment, position, why)
        return builder.damaged(position)

    def count(self, position: i64) -> i32:
        """Return the delivery count of a record."""
        return 0 if self._counted is None else self._counted.get(position, 0)

    def counted(self) -> C[list[int]]:
        """Return the positions with a delivery count."""
        return sorted(self._counted or ())

    def _set_count(self, position: i64, count: i32) -> C[bool]:
        """Set the delivery count of a record; False if it is settled."""
        segment = self._find(position)
        if segment is None or segment.positions.settled(position):
            return False
        if self._counted is None:
            self._counted = {}
        self._counted[position] = count
        return True

    def time_of(self, position: i64) -> i64:
        """Return when a record was appended, in milliseconds since 1970; 0 if it cannot be read.

        The last one is kept: lists and metrics ask for the oldest message of all queues.
        """
        if position == self._timed and self.next(position) == position:
            return self._time
        message = self.read(position)
        if message is None:
            return 0
        self._timed = position
        self._time = message.timestamp
        return self._time

    def at_time(self, moment: i64) -> i64:
        """Return the first position appended at `moment` or later; `end()` if there is none.

        The segment first, then a binary search in it.
        """
        segment: Segment
        for segment in self.segments:
            if segment.newest < moment or not segment.positions.count:
                continue
            low: i64
            high: i64
            low, high = max(segment.first, self.first()), segment.positions.end() - 1
            while low < high:
                middle: i64 = low + (high - low) // 2
                # Settled messages have no time any more: the next live one decides.
                live: i64 = self.next(middle)
                if live <= high and self.time_of(live) < moment:
                    low = live + 1
                else:
                    high = middle
            return self.next(low)
        return self.end()

    # --- remove segments ------------------------------------------------------------------------

    def retain(self, byte_count: i64, moment: i64, below: i64 = -1) -> i64:
        """Remove old segments, never the one that is written to; return `first()`."""
        total = self.byte_count() if byte_count else 0
        while len(self.segments) > 1:
            oldest = self.segments[0]
            if not ((byte_count and total > byte_count) or (moment and oldest.newest < moment)):
                break
            if 0 <= below < oldest.positions.end():
                break
            total -= oldest.end()
            self._live -= oldest.positions.settle_range(oldest.first, oldest.positions.end())
            self._emptied(oldest)
        return self.first()

    def _emptied(self, segment: Segment) -> Done:
        """Remove a segment without unsettled records."""
        raise NotImplementedError

    def _leave(self, segment: Segment) -> Done:
        """Remove a segment from the log."""
        self.segments.remove(segment)
        if self._near is segment:
            self._near = None
        self._forget_large(segment)
        self._forget_recalled(segment)
        return self.release(segment, segment.held)

    def _forget_recalled(self, segment: Segment) -> None:
        """Release the fetched large message of a segment."""
        if segment.recalled is not None:
            self._store.handles.blocks.remove(segment.recalled)
            segment.recalled = None

    def _forget_large(self, segment: Segment) -> None:
        """Release the large message of a segment, which is on disk or settled."""
        if segment.large is not None:
            self._gauge.release(segment.large.message)
            segment.large = None

    def release(self, segment: Segment, byte_count: i64) -> Done:
        """Subtract bytes of a segment that are no longer in memory."""
        segment.held -= byte_count
        self._held -= byte_count
        self._gauge.take(byte_count)
        return 0

    def settle_range(self, first: i64, end: i64) -> Done:
        """Settle all records from `first` up to, not including, `end`."""
        near = self._find(first)
        # Mostly they are few, and a log has any number of segments.
        if near is not None and end <= near.positions.end():
            self._settle_in(near, first, end)
            return self._forget_counts(first, end)
        segment: Segment
        for segment in self.segments[self._index(first) :]:
            if segment.first >= end:
                break
            low: i64
            high: i64
            low, high = max(first, segment.first), min(end, segment.positions.end())
            if low < high and segment.positions.live:
                self._settle_in(segment, low, high)
        return self._forget_counts(first, end)

    def _settle_in(self, segment: Segment, first: i64, end: i64) -> Done:
        """Settle the records of a segment from `first` up to, not including, `end`."""
        raise NotImplementedError

    def _forget_counts(self, first: i64, end: i64) -> Done:
        """Forget the counts of settled records from `first` up to, not including, `end`."""
        counted = self._counted
        if not counted:
            return 0
        # By whichever are fewer: both may be thousands, and this is called for each settled range.
        if end - first < len(counted):
            for position in range(first, end):
                counted.pop(position, None)
        else:
            for position in [each for each in counted if first <= each < end]:
                del counted[position]
        return 0

    # --- inside ---------------------------------------------------------------------------------

    def _load_offsets(self, segment: Segment) -> Done:
        """Load the offsets of a segment, if they are not in memory.

        Raises:
            OSError: the file of the segment cannot be read.
        """
        if not segment.positions.is_loaded():
            self._store.offsets.load(segment, self.seed)
        return 0

    def _unreadable_at(self, segment: Segment, position: int, why: str) -> None:
        # The next start shall look at its bytes, and skip those that are damaged.
        segment.exact = False
        if self._unreadable is None:
            self._unreadable = set()
        if position not in self._unreadable:
            self._unreadable.add(position)
            self._store.report(
                "error", f"{segment.path}: the message at position {position} is kept back: {why}"
            )

    def _find(self, position: i64) -> C[Segment | None]:
        """Return the segment with a position."""
        near = self._near
        if near is not None:
            index: i64 = position - near.first
            if 0 <= index < near.positions.count:
                return near
        segments = self.segments
        nearest: isize = self._index(position)
        if nearest < len(segments):
            segment: Segment = segments[nearest]
            if segment.first <= position < segment.positions.end():
                self._near = segment
                return segment
        return None

    def _index(self, position: i64) -> isize:
        """Return the index of the last segment that begins at or before a position, or 0."""
        return max(bisect_right(self.segments, position, key=_first) - 1, 0)


def _first(segment: Segment) -> int:
    return segment.first
