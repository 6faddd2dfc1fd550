"""Open a log: read its segments and handle damage.

The segments that the state of the log covers (`log/log_index.py`) are not read. Each other one is
read once, from its header to its end. These are the cases, and what is done. "Good"
is a record whose size, CRC and position fit; "newest" is the segment that the log is continued in.

    header       what follows at the offset         newest   outcome
    ---------    --------------------------------   ------   ---------------------------------------
    other log    -                                  any      file moved to quarantine, error
    damaged      no good record in the file         no       file moved to quarantine, error
    damaged      no good record in the file         yes      never finished: moved away, warning
    damaged      a good record, later               any      bytes before it copied and skipped
    good         a good record                      any      accepted
    good         the end that the next header has   no       NAMED_END: the rest is cut off unread
    good         space ahead, to the end            yes      SPACE_AHEAD: kept for new records
    good         space ahead, to the end            no       SPACE_AHEAD: cut off
    good         space ahead, then the next record  any      SPACE_BETWEEN: skipped
    good         other bytes, then a good record    any      DAMAGED: copied and skipped, error
    good         other bytes, to the end            no       DAMAGED: copied and skipped, error
    good         other bytes, to the end            yes      TORN: copied and cut off, warning

"Space ahead" is space that was reserved and never written. Nothing is removed without a copy in
quarantine, and each step leaves a log that opens the same way, so a crash during recovery is
harmless. FORMAT.md, "Opening", has the same table with the formats.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from itertools import pairwise
from struct import error as struct_error
from struct import iter_unpack, unpack

from msgspec import Struct, field

from harebell.base.ports import File, Files
from harebell.kernels.records import (
    CLOSED,
    COUNT,
    HEAD_BYTES,
    MESSAGE,
    SEEN,
    SETTLED,
    find_good,
    good,
    head,
    payload,
    record_size,
    scan,
)
from harebell.store.limits import SCAN_WINDOW_BYTES
from harebell.store.log import log_index
from harebell.store.log.loaded_offsets import LoadedOffsets
from harebell.store.log.log_index import LogIndex, SegmentState
from harebell.store.log.segment import (
    HEADER_BYTES,
    INDEX_SUFFIX,
    Segment,
    decode_header,
    first_of,
    index_path,
    mark_of,
    seed_of,
    unused,
)
from harebell.store.quarantine import Quarantine

_ALIGN = 8
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Outcome(Enum):
    """What recovery does where the good records of a segment end; see the table above."""

    NAMED_END = auto()
    SPACE_AHEAD = auto()
    SPACE_BETWEEN = auto()
    DAMAGED = auto()
    TORN = auto()


class RecoveredLog(Struct):
    """The content of a log.

    Attributes:
        segments: in order; the log is continued in the last one.
        seen: every position below it may have been handed out.
        mark: the highest mark of such positions, which may be behind the end.
        handed: every position below it was handed out; known after an orderly close only.
        counts: delivery counts by position.
        damaged: whether any damage was found.
        closed: whether the log was closed in good order.
    """

    segments: list[Segment] = field(default_factory=list)
    seen: int = 0
    mark: int = 0
    handed: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    damaged: bool = False
    closed: bool = False


class Note(Struct):
    """A record other than a message: its segment, its kind and its payload."""

    holder: Segment
    kind: int
    content: bytes


class Recovery:
    """The opening of one log.

    Args:
        files: the disk.
        identity: the identity of the log.
        directory: the directory of its segments.
        report: called with a level and a text for each damage.
        offsets: keeps the offsets of the segments that were read in memory, within its limit.
        index: whether the state of the log may stand for the segments that it covers.
    """

    def __init__(
        self,
        files: Files,
        identity: str,
        directory: str,
        report: Callable[[str, str], None],
        *,
        offsets: LoadedOffsets | None = None,
        index: bool = True,
    ) -> None:
        self._files = files
        self._identity = identity
        self._directory = directory
        self._seed = seed_of(identity)
        self._report = report
        self._quarantine = Quarantine(files, identity)
        self._offsets = offsets
        self._trusts_index = index
        self._names: list[str] = []
        self._index: LogIndex | None = None
        self._covered: dict[int, SegmentState] = {}
        self._notes: list[Note] = []
        self._log = RecoveredLog()
        self._marks = [0]
        # The kind of the last record: CLOSED after an orderly close.
        self._last_kind = 0
        # The position of the record that `_next_good` returned last.
        self._reach = 0

    def run(self) -> RecoveredLog:
        """Read every segment.

        Raises:
            OSError: the disk refuses.
        """
        while not self._read_all():
            # The newest segment was moved away. Now the one before it is the newest, whose end is
            # read by other rows of the table, so reading begins again.
            for segment in self._log.segments:
                if self._offsets is not None:
                    self._offsets.remove(segment)
            self._notes = []
            self._marks = [0]
            self._last_kind = 0
            self._log = RecoveredLog(damaged=True)
        self._apply()
        self._tidy()
        return self._log

    def _read_all(self) -> bool:
        """Read every segment; return False if the newest one was moved away."""
        self._names = self._files.names(self._directory)
        names = [name for name in self._names if first_of(name) >= 0]
        while names and not self._belongs(names[-1], newest=True):
            names.pop()
        self._use_index([first_of(name) for name in names])
        for name, following in pairwise([*names, ""]):
            newest = not following
            covered = first_of(name) in self._covered
            if not (newest or covered or self._belongs(name, newest=False)):
                continue
            if not self._segment(name, following) and newest:
                return False
        return True

    def _use_index(self, firsts: list[int]) -> None:
        """Take the state of the log, if it fits the segments with these first positions."""
        self._index, self._covered = None, {}
        if not self._trusts_index or log_index.NAME not in self._names:
            return
        try:
            index = log_index.read(self._files, self._directory, self._seed)
            fits = index is not None and index.fits(
                self._files, self._directory, self._identity, firsts
            )
        except OSError:
            # If it matters, reading the segments meets the same error.
            return
        if index is None or not fits:
            path = f"{self._directory}/{log_index.NAME}"
            self._report("info", f"{path} does not fit: every segment is read")
            return
        self._index = index
        self._covered = {state.first: state for state in index.segments if state.covered}
        self._marks.append(index.mark)
        self._log.counts = dict(index.counts)

    def _tidy(self) -> None:
        """Remove index files that are of no use any more."""
        segments = self._log.segments
        if self._index is None and log_index.NAME in self._names:
            log_index.remove(self._files, self._directory)
        # The newest segment gets more records.
        full = {index_path(segment.path) for segment in segments[:-1]}
        for name in self._names:
            path = f"{self._directory}/{name}"
            if name.endswith(INDEX_SUFFIX) and path not in full:
                with suppress(OSError):
                    self._files.remove(path)

    # --- one segment ----------------------------------------------------------------------------

    def _belongs(self, name: str, newest: bool) -> bool:
        """Check that a file is a segment of this log with content; otherwise move it away."""
        path = f"{self._directory}/{name}"
        first = first_of(name)
        file = self._files.open(path)
        try:
            header = decode_header(file.read_at(HEADER_BYTES, 0))
            empty = Segment(self._directory, first, self._seed)
            if header is not None:
                valid = header[0] == mark_of(self._identity) and header[1] == first
                why = "is not this log's, or not in its place"
                # A whole header of another log is no unfinished write of this one, so it is an
                # error even where a damaged newest segment is a warning.
                newest = False
            else:
                valid = self._next_good(file, empty, 0, file.size()) >= 0
                why = "its header and all it held are damaged"
        finally:
            file.close()
        if not valid:
            self._damage("warning" if newest else "error", f"{path}: {why}")
            self._quarantine.move(path)
        return valid

    def _segment(self, name: str, following: str) -> bool:
        """Read a segment, given the name of the next one; return False if it was moved away."""
        path = f"{self._directory}/{name}"
        first = first_of(name)
        segments = self._log.segments
        # Positions are never used twice, so one of the files does not belong here.
        if segments and first < segments[-1].positions.end():
            self._damage("error", f"{path}: has positions that another segment has")
            self._quarantine.move(path)
            return False
        segment = Segment(self._directory, first, self._seed)
        segments.append(segment)
        if first in self._covered:
            self._covered[first].restore(segment, self._seed)
            return True
        file = self._files.open(path)
        try:
            self._read(file, segment, path, self._end_before(following))
        finally:
            file.close()
        if following and self._offsets is not None:
            self._offsets.add(segment, self._seed)
        return True

    def _end_before(self, following: str) -> tuple[int, int] | None:
        """Return the end of a segment, as the next segment's header has it: position and offset.

        None if there is no next segment, zeros if its header does not say.
        """
        if not following:
            return None
        file = self._files.open(f"{self._directory}/{following}")
        try:
            header = decode_header(file.read_at(HEADER_BYTES, 0))
        finally:
            file.close()
        if header is None or header[0] != mark_of(self._identity):
            # No offset of a record is 0, so this end is never met.
            return 0, 0
        return header[1], header[3]

    def _read(self, file: File, segment: Segment, path: str, ends: tuple[int, int] | None) -> None:
        size = file.size()
        header = decode_header(file.read_at(HEADER_BYTES, 0))
        if header is None:
            offset = self._next_good(file, segment, 0, size)
            segment.exact = False
            text = f"{path}: its header is damaged, bytes 0 to {offset} are skipped"
            self._damage("error", text + self._copied(file, path, 0, offset))
        else:
            offset = HEADER_BYTES
            self._marks.append(header[2])
        # A segment that is not the newest gets no more records, so no space ahead of them.
        end = self._records(file, segment, path, offset, ends)
        segment.continue_at(end, self._seed)
        segment.ahead = file.size() if ends is None else 0

    def _records(
        self, file: File, segment: Segment, path: str, offset: int, ends: tuple[int, int] | None
    ) -> int:
        """Read the records from an offset on; return the offset where the segment ends.

        Args:
            file: the segment's file.
            segment: gets the positions.
            path: the name of the file, for reports.
            offset: of the first record.
            ends: position and offset of the end, as the next segment has them; None if newest.
        """
        size = file.size()
        while offset < size:
            # Before the bytes are read: behind the end that the next header names is space ahead
            # that was not cut off, whatever it holds.
            if (segment.positions.end(), offset) == ends:
                outcome, end = Outcome.NAMED_END, offset
            else:
                window = file.read_at(self._window(file, offset, size), offset)
                used, newest_time = self._take(segment, window, offset)
                segment.newest = max(segment.newest, newest_time)
                offset += used
                if used or offset >= size:
                    continue
                outcome, end = self._classify(file, segment, offset, newest=ends is None)
            match outcome:
                case Outcome.NAMED_END:
                    _cut(file, offset)
                    break
                case Outcome.SPACE_AHEAD:
                    if ends is not None:
                        # The process died before it could cut this off, or before records were
                        # written here: the next segment may reach the disk first.
                        _cut(file, offset)
                    break
                case Outcome.TORN:
                    return self._cut_torn(file, path, offset, end)
                case Outcome.DAMAGED:
                    segment.exact = False
                    text = f"{path}: bytes {offset} to {end} are damaged and skipped"
                    self._damage("error", text + self._copied(file, path, offset, end))
            offset = end
        # The padding of the last record may be missing, if the file ends there.
        return offset + -offset % _ALIGN

    def _classify(
        self, file: File, segment: Segment, offset: int, *, newest: bool
    ) -> tuple[Outcome, int]:
        """Return what the bytes at an offset are that begin no good record, and where they end."""
        filled = _filled(file, offset)
        if filled == offset:
            return Outcome.SPACE_AHEAD, offset
        # Records begin at multiples of 8 only, so the search goes in steps of 8.
        following = self._next_good(file, segment, offset + _ALIGN, file.size())
        if following < 0:
            return (Outcome.TORN if newest else Outcome.DAMAGED), filled
        # Space ahead before the next good record is no damage if no record is missing between.
        if self._reach == segment.positions.end() and file.read_at(
            following - offset, offset
        ) == unused(offset, following - offset):
            return Outcome.SPACE_BETWEEN, following
        return Outcome.DAMAGED, following

    def _cut_torn(self, file: File, path: str, offset: int, end: int) -> int:
        """Cut off a torn tail of the newest segment; return the offset where the log goes on."""
        torn = f"{path}: {end - offset} torn bytes at its end"
        without = self._copied(file, path, offset, end)
        if without:
            # Without a copy nothing is removed: new records are written behind these bytes.
            self._damage("warning", f"{torn} stay{without}")
            return end + -end % _ALIGN
        self._damage("warning", f"{torn} are cut off")
        # The copy in quarantine is synced by now. New records may only follow the last good one.
        file.truncate(offset)
        file.sync()
        return offset

    def _copied(self, file: File, path: str, begin: int, end: int) -> str:
        """Copy damaged bytes to quarantine; return a phrase for the report.

        On a full disk they stay in the segment, and later records are written behind them. The
        broker has to start on a full disk, so that consumers can empty the queues that fill it.
        """
        try:
            self._quarantine.copy(file, path, begin, end)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return ", and there is no room for a copy of them"
        return ""

    def _window(self, file: File, offset: int, size: int) -> int:
        """Return how much to read, so that the whole record at this offset fits."""
        claimed = record_size(file.read_at(4, offset), 0)
        return min(max(SCAN_WINDOW_BYTES, claimed + _ALIGN), size - offset)

    def _take(self, segment: Segment, window: bytes, base: int) -> tuple[int, int]:
        """Read good records from the start of a window; return (bytes used, newest time)."""
        index, newest = 0, 0
        while index < len(window):
            index, time = scan(window, index, base, self._seed, segment.positions)
            newest = max(newest, time)
            if time:
                self._last_kind = MESSAGE
            # `scan` stops at any record that is not the next message, damaged or not.
            if not good(window, index, self._seed):
                break
            position, _, kind, byte_count = head(window, index)
            if position < segment.positions.end() or not self._in_reach(position, segment):
                # An old record at a place that was overwritten, or a position that is too high.
                break
            # The positions of skipped messages are not used again: later settlements and counts
            # may refer to the lost messages.
            segment.positions.miss(position)
            if kind == MESSAGE:
                continue
            self._notes.append(Note(segment, kind, payload(window, index)))
            self._last_kind = kind
            index += byte_count + -byte_count % _ALIGN
        return min(index, len(window)), newest

    def _in_reach(self, position: int, segment: Segment) -> bool:
        """True if the gap before a position is explained by the bytes that were skipped."""
        return position == segment.positions.end() or self._reach >= position

    def _next_good(self, file: File, segment: Segment, offset: int, size: int) -> int:
        """Return the offset of the next good record at or after an offset; -1 if there is none."""
        expected = segment.positions.end()
        # Damaged bytes can hold one record per HEAD_BYTES, so a good record has at most that
        # position; a higher one is a chance hit in the bytes of a body.
        rest = file.read_at(size - offset, offset) if offset < size else b""
        high = expected + (size // HEAD_BYTES) + 1
        index = find_good(rest, 0, self._seed, expected, high)
        if index < 0:
            return -1
        self._reach = head(rest, index)[0]
        return offset + index

    def _damage(self, level: str, text: str) -> None:
        self._log.damaged = True
        self._report(level, text)

    # --- records other than messages ------------------------------------------------------------

    def _apply(self) -> None:
        log = self._log
        self._apply_index()
        for note in self._notes:
            try:
                self._apply_note(note)
            except struct_error:
                self._damage("error", f"{note.holder.path}: a record of kind {note.kind} is odd")
        end = log.segments[-1].positions.end() if log.segments else 0
        # Marks are written ahead, so they may point behind the last message.
        log.mark = max(self._marks)
        log.seen = min(log.mark, end)
        if log.damaged:
            # A mark may be among the damaged bytes, so any message may have been delivered.
            log.seen = end
        elif self._last_kind == CLOSED:
            # Only if nothing followed: a process that went on after an orderly close has other
            # records.
            log.closed = True
            log.handed = min(unpack("<Q", self._notes[-1].content)[0], end)
        log.counts = {
            position: count
            for position, count in log.counts.items()
            if any(not segment.positions.settled(position) for segment in log.segments)
        }

    def _apply_index(self) -> None:
        """Settle what the state has as settled in segments that were read."""
        if self._index is None:
            return
        states = {state.first: state for state in self._index.segments if not state.covered}
        for segment in self._log.segments:
            if segment.first in states:
                state = states[segment.first]
                segment.positions.settle_state(state.front, state.bits)

    def _apply_note(self, note: Note) -> None:
        if note.kind == SETTLED:
            for first, count in iter_unpack("<QI", note.content):
                for segment in self._covering(first, first + count):
                    segment.positions.settle_range(first, first + count)
                    # While the settled segment exists, these records must exist too: see FORMAT.md,
                    # invariant 2.
                    note.holder.refer(segment.first)
        elif note.kind == SEEN:
            self._marks.append(unpack("<Q", note.content)[0])
        elif note.kind == COUNT:
            # The state has later counts than the segments before the one that was the newest then.
            older = self._index is not None and note.holder.first < self._index.newest
            for position, count in iter_unpack("<QI", note.content):
                if not older:
                    self._log.counts[position] = count
                for segment in self._covering(position, position + 1):
                    note.holder.refer(segment.first)

    def _covering(self, first: int, end: int) -> list[Segment]:
        return [
            segment
            for segment in self._log.segments
            if segment.first < end and first < segment.positions.end()
        ]


def _cut(file: File, offset: int) -> None:
    """Cut off the space ahead in a segment that is not the newest.

    This has to happen before the next segment can be removed: only that one's header says where
    the records of this one end.
    """
    file.truncate(offset)
    file.sync()


def _filled(file: File, low: int) -> int:
    """Return where the content of a file ends, without the space written ahead.

    Args:
        file: an open segment.
        low: the offset where the unread part begins; the result is not below it.

    Returns:
        The offset behind the last used byte, rounded up to the alignment of records.
    """
    size = end = file.size()
    while end > low:
        begin = max(low, end - SCAN_WINDOW_BYTES)
        data = file.read_at(end - begin, begin)
        last = _last_used(data, begin)
        if last:
            return min(begin + last + -last % _ALIGN, size)
        end = begin
    return low


def _last_used(data: bytes, offset: int) -> int:
    """Return the number of bytes before the unused ones at the end."""
    low, high = 0, len(data)
    while low < high:
        middle = (low + high) // 2
        # A tail of unused text has only tails of unused text, so a binary search finds its begin.
        if data[middle:] == unused(offset + middle, len(data) - middle):
            high = middle
        else:
            low = middle + 1
    return low
