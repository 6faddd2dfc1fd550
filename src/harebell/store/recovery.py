"""Open a log: read its segments and handle damage.

The table in FORMAT.md, "Opening", lists the cases. Everything is read once. Nothing is removed
without a copy in quarantine, and a second run after a crash gives the same result.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from struct import error as struct_error
from struct import iter_unpack, unpack

from harebell.base.limits import SCAN_WINDOW_BYTES
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
from harebell.store.log.segment import (
    HEADER_BYTES,
    Segment,
    decode_header,
    first_of,
    mark_of,
    seed_of,
    unused,
)
from harebell.store.quarantine import Quarantine

_ALIGN = 8
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Found:
    """The content of a log.

    Attributes:
        segments: in order; the log is continued in the last one.
        seen: every position below it may have been handed out.
        handed: every position below it was handed out; known after an orderly close only.
        counts: delivery counts by position.
        damaged: whether any damage was found.
        closed: whether the log was closed in good order.
    """

    segments: list[Segment] = field(default_factory=list)
    seen: int = 0
    handed: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    damaged: bool = False
    closed: bool = False


@dataclass
class Note:
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
    """

    def __init__(
        self, files: Files, identity: str, directory: str, report: Callable[[str, str], None]
    ) -> None:
        self._files = files
        self._identity = identity
        self._directory = directory
        self._seed = seed_of(identity)
        self._report = report
        self._quarantine = Quarantine(files, identity)
        self._notes: list[Note] = []
        self._found = Found()
        self._marks = [0]
        self._last_kind = 0

    def run(self) -> Found:
        """Read every segment.

        Raises:
            OSError: the disk refuses.
        """
        while not self._read_all():
            # The newest segment was moved away, and the end of the newest one is read differently.
            self._notes = []
            self._marks = [0]
            self._last_kind = 0
            self._found = Found(damaged=True)
        self._apply()
        return self._found

    def _read_all(self) -> bool:
        """Read every segment; return False if the newest one was moved away."""
        names = [name for name in self._files.names(self._directory) if first_of(name) >= 0]
        while names and not self._belongs(names[-1], newest=True):
            names.pop()
        for name, following in pairwise([*names, ""]):
            newest = not following
            if not (newest or self._belongs(name, newest=False)):
                continue
            if not self._segment(name, following) and newest:
                return False
        return True

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
                good_one = header[0] == mark_of(self._identity) and header[1] == first
                why = "is not this log's, or not in its place"
                newest = False
            else:
                good_one = self._resume(file, empty, 0, file.size()) >= 0
                why = "its header and all it held are damaged"
        finally:
            file.close()
        if not good_one:
            self._damage("warning" if newest else "error", f"{path}: {why}")
            self._quarantine.move(path)
        return good_one

    def _segment(self, name: str, following: str) -> bool:
        """Read a segment, given the name of the next one; return False if it was moved away."""
        path = f"{self._directory}/{name}"
        first = first_of(name)
        segments = self._found.segments
        if segments and first < segments[-1].positions.end():
            self._damage("error", f"{path}: has positions that another segment has")
            self._quarantine.move(path)
            return False
        segment = Segment(self._directory, first, self._seed)
        file = self._files.open(path)
        try:
            self._read(file, segment, path, self._end_before(following))
        finally:
            file.close()
        segments.append(segment)
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
            return 0, 0
        return header[1], header[3]

    def _read(self, file: File, segment: Segment, path: str, ends: tuple[int, int] | None) -> None:
        size = file.size()
        header = decode_header(file.read_at(HEADER_BYTES, 0))
        if header is None:
            at = self._resume(file, segment, 0, size)
            text = f"{path}: its header is damaged, bytes 0 to {at} are skipped"
            self._damage("error", text + self._copied(file, path, 0, at))
        else:
            at = HEADER_BYTES
            self._marks.append(header[2])
        end = self._records(file, segment, path, at, ends)
        segment.goes_on(end, self._seed)
        segment.ahead = file.size() if ends is None else 0

    def _records(
        self, file: File, segment: Segment, path: str, at: int, ends: tuple[int, int] | None
    ) -> int:
        """Read the records from an offset on; return the offset where the segment ends."""
        size = file.size()
        while at < size:
            if (segment.positions.end(), at) == ends:
                _cut(file, at)
                break
            window = file.read_at(self._window(file, at, size), at)
            index, newest_time = self._take(segment, window, at)
            segment.newest = max(segment.newest, newest_time)
            at += index
            if index or at >= size:
                continue
            filled = _filled(file, at)
            if filled == at:
                # The process died before it could cut this off, or before the next records
                # were written here: the next segment may reach the disk first.
                if ends is not None:
                    _cut(file, at)
                break
            following = self._resume(file, segment, at + _ALIGN, size)
            end = filled if following < 0 else following
            if following < 0 and ends is None:
                return self._torn(file, path, at, end)
            if self._left_out(file, segment, at, following):
                at = following
                continue
            text = f"{path}: bytes {at} to {end} are damaged and skipped"
            self._damage("error", text + self._copied(file, path, at, end))
            at = end
        return at + -at % _ALIGN

    def _left_out(self, file: File, segment: Segment, at: int, following: int) -> bool:
        """True if only space ahead lies before the next good record, and no record is missing."""
        if following < 0 or self._reach != segment.positions.end():
            return False
        return file.read_at(following - at, at) == unused(at, following - at)

    def _torn(self, file: File, path: str, at: int, end: int) -> int:
        """Handle a torn tail of the newest segment; return the offset where the log goes on."""
        torn = f"{path}: {end - at} torn bytes at its end"
        without = self._copied(file, path, at, end)
        if without:
            self._damage("warning", f"{torn} stay{without}")
            return end + -end % _ALIGN
        self._damage("warning", f"{torn} are cut off")
        file.truncate(at)
        file.sync()
        return at

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

    def _window(self, file: File, at: int, size: int) -> int:
        """Return how much to read, so that the whole record at this offset fits."""
        claimed = record_size(file.read_at(4, at), 0)
        return min(max(SCAN_WINDOW_BYTES, claimed + _ALIGN), size - at)

    def _take(self, segment: Segment, window: bytes, base: int) -> tuple[int, int]:
        """Read good records from the start of a window; return (bytes used, newest time)."""
        index, newest = 0, 0
        while index < len(window):
            index, time = scan(window, index, base, self._seed, segment.positions)
            newest = max(newest, time)
            if time:
                self._last_kind = MESSAGE
            if not good(window, index, self._seed):
                break
            position, _, kind, byte_count = head(window, index)
            if position < segment.positions.end() or not self._in_reach(position, segment):
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
        """True if the gap before a position is not larger than the skipped bytes can explain."""
        return position == segment.positions.end() or self._reach >= position

    _reach = 0

    def _resume(self, file: File, segment: Segment, at: int, size: int) -> int:
        """Return the offset of the next good record at or after an offset; -1 if there is none."""
        expected = segment.positions.end()
        rest = file.read_at(size - at, at) if at < size else b""
        high = expected + (size // HEAD_BYTES) + 1
        index = find_good(rest, 0, self._seed, expected, high)
        if index < 0:
            return -1
        self._reach = head(rest, index)[0]
        return at + index

    def _damage(self, level: str, text: str) -> None:
        self._found.damaged = True
        self._report(level, text)

    # --- what the notes say ---------------------------------------------------------------------

    def _apply(self) -> None:
        found = self._found
        for note in self._notes:
            try:
                self._apply_note(note)
            except struct_error:
                self._damage("error", f"{note.holder.path}: a record of kind {note.kind} is odd")
        end = found.segments[-1].positions.end() if found.segments else 0
        found.seen = min(max(self._marks), end)
        if found.damaged:
            found.seen = end
        elif self._last_kind == CLOSED:
            found.closed = True
            found.handed = min(unpack("<Q", self._notes[-1].content)[0], end)
        found.counts = {
            position: count
            for position, count in found.counts.items()
            if any(not segment.positions.settled(position) for segment in found.segments)
        }

    def _apply_note(self, note: Note) -> None:
        if note.kind == SETTLED:
            for first, count in iter_unpack("<QI", note.content):
                for segment in self._covering(first, first + count):
                    segment.positions.settle_range(first, first + count)
                    note.holder.refer(segment.first)
        elif note.kind == SEEN:
            self._marks.append(unpack("<Q", note.content)[0])
        elif note.kind == COUNT:
            for position, count in iter_unpack("<QI", note.content):
                self._found.counts[position] = count
                for segment in self._covering(position, position + 1):
                    note.holder.refer(segment.first)

    def _covering(self, first: int, end: int) -> list[Segment]:
        return [
            segment
            for segment in self._found.segments
            if segment.first < end and first < segment.positions.end()
        ]


def _cut(file: File, at: int) -> None:
    """Cut off the space ahead in a segment that is not the newest.

    This has to happen before the next segment can be removed: only that one's header says where
    the records of this one end.
    """
    file.truncate(at)
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
        if data[middle:] == unused(offset + middle, len(data) - middle):
            high = middle
        else:
            low = middle + 1
    return low
