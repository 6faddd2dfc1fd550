"""The state of a log when it was closed in good order, in the file `index` of its directory.

    0               8     12     16
    | HBINDX 0 1    | crc | zero | state ...

    magic    8 bytes, "HBINDX" 0 and the version, 1
    crc      u32, CRC-32C of the rest, continued from that of the log's identity
    zero     u32
    state    a `LogIndex`, as MessagePack: structures are arrays in the order of their attributes

A start reads the segments that are not covered, with the newest, and applies what their records say
to the state. So the file need not be newest: whatever came later is in those segments.

    segments   | covered | covered | not | covered | newest then | later | newest now |
    read                             ^               ^             ^       ^
                                                     has `last`: else the state is of other files

The file only saves time. Without it, or if it does not fit the segments, all of them are read. So
it is never synced, and no error of it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from struct import Struct as Layout
from typing import TYPE_CHECKING

import msgspec

from harebell.base.ports import Files, write_all
from harebell.kernels.records import crc32c
from harebell.store.log.segment import (
    HEADER_BYTES,
    INDEX_SUFFIX,
    Segment,
    decode_header,
    file_name,
    header_crc,
    mark_of,
)

if TYPE_CHECKING:
    from harebell.store.log.log_host import LogHost

NAME = "index"

_MAGIC = b"HBINDX\0\1"
_HEADER = Layout("<8sII")
_COVERED = 16
_ALIGN = 8
_LAST_BYTES = 48
"""The size of the record of an orderly close, with its padding."""


def is_index(path: str) -> bool:
    """True for the path of an index of a log or of a segment."""
    return path.endswith((f"/{NAME}", INDEX_SUFFIX))


class SegmentState(msgspec.Struct, array_like=True):
    """The state of one segment.

    Attributes:
        first: the position of its first message.
        count: how many positions it has.
        front: how many messages are settled before the first one that is not.
        bits: a bit for each message that is settled behind them.
        covered: whether the start need not read the segment.
        header: the CRC in its header.
        end: where its records end, a multiple of 8.
        newest: when its last message came, in milliseconds since 1970.
        targets: the first positions of the segments that its records refer to.
        offsets: of its records, if it has no index file of its own.
    """

    first: int
    count: int
    front: int
    bits: bytes
    covered: bool
    header: int
    end: int
    newest: int
    targets: list[int]
    offsets: bytes

    def restore(self, segment: Segment, seed: int) -> None:
        """Give a segment that is not read its state."""
        segment.positions.restore(self.count)
        if self.offsets:
            segment.positions.load(self.offsets)
        segment.positions.settle_state(self.front, self.bits)
        segment.continue_at(self.end, seed)
        segment.newest = self.newest
        segment.targets = set(self.targets) or None


class LogIndex(msgspec.Struct, array_like=True):
    """The state of a log.

    Attributes:
        newest: the first position of the segment that was the newest then.
        end: where its records ended.
        last: the bytes before that end: those of the record of the orderly close.
        mark: every position below it may have been handed out.
        counts: delivery counts by position.
        segments: the state of every segment, the oldest first.
    """

    newest: int
    end: int
    last: bytes
    mark: int
    counts: dict[int, int]
    segments: list[SegmentState]

    def fits(self, files: Files, directory: str, identity: str, firsts: Collection[int]) -> bool:
        """True if the state is of the segments that are there.

        Args:
            files: the data directory.
            directory: of the log.
            identity: of the log.
            firsts: the first positions of its segments.

        Raises:
            OSError: the disk refuses.
        """
        known = {state.first for state in self.segments}
        if self.newest not in firsts or any(
            first < self.newest and first not in known for first in firsts
        ):
            # The settlements of an older segment without a state may be in covered segments.
            return False
        file = files.open(f"{directory}/{file_name(self.newest)}")
        try:
            # Without these bytes the segments are older than the state, or of another copy.
            last = file.read_at(len(self.last), self.end - len(self.last))
        finally:
            file.close()
        if not self.last or last != self.last:
            return False
        mark = mark_of(identity)
        return all(
            _is_whole(files, directory, mark, state)
            for state in self.segments
            if state.covered and state.first in firsts
        )


def _is_whole(files: Files, directory: str, mark: bytes, state: SegmentState) -> bool:
    file = files.open(f"{directory}/{file_name(state.first)}")
    try:
        data = file.read_at(HEADER_BYTES, 0)
        size = file.size()
    finally:
        file.close()
    header = decode_header(data)
    return (
        header is not None
        and header[:2] == (mark, state.first)
        and header_crc(data) == state.header
        # The padding of the last record may be missing.
        and size + -size % _ALIGN == state.end
    )


def index_of(
    store: LogHost, segments: list[Segment], counts: Mapping[int, int], mark: int, seed: int
) -> LogIndex | None:
    """Return the state of a log, and have index files written of its segments.

    Args:
        store: has the files, and the offsets in memory.
        segments: all of the log, in order; everything is on disk.
        counts: delivery counts by position.
        mark: every position below it may have been handed out.
        seed: where the checksums of the log start from.

    Returns:
        None if no segment is covered.

    Raises:
        OSError: the disk refuses.
    """
    newest = segments[-1]
    states = []
    for segment in segments:
        positions = segment.positions
        covered = segment.exact and segment is not newest and segment.all_on_disk()
        header, offsets = 0, b""
        if covered:
            file = store.files.open(segment.path)
            try:
                header = header_crc(file.read_at(HEADER_BYTES, 0))
            finally:
                file.close()
            if store.offsets.worth_it(segment):
                store.offsets.store(segment, seed)
            else:
                offsets = positions.offsets()
        states.append(
            SegmentState(
                positions.first,
                positions.count,
                positions.front(),
                positions.bits(),
                covered,
                header,
                segment.end(),
                segment.newest,
                sorted(segment.targets or ()),
                offsets,
            )
        )
    if not any(state.covered for state in states):
        return None
    file = store.files.open(newest.path)
    try:
        last = file.read_at(_LAST_BYTES, newest.end() - _LAST_BYTES)
    finally:
        file.close()
    return LogIndex(newest.first, newest.end(), last, mark, dict(counts), states)


def write(files: Files, directory: str, index: LogIndex, seed: int) -> None:
    """Write the state of a log.

    Raises:
        OSError: the disk refuses.
    """
    state = msgspec.msgpack.encode(index)
    file = files.open(f"{directory}/{NAME}", create=True)
    try:
        file.truncate(0)
        write_all(file, _HEADER.pack(_MAGIC, crc32c(state, seed), 0) + state, 0)
    finally:
        file.close()


def read(files: Files, directory: str, seed: int) -> LogIndex | None:
    """Return the state of a log; None if it is damaged.

    Raises:
        OSError: the disk refuses.
    """
    file = files.open(f"{directory}/{NAME}")
    try:
        content = file.read_at(file.size(), 0)
    finally:
        file.close()
    state = content[_COVERED:]
    if len(content) < _COVERED or _HEADER.unpack_from(content) != (_MAGIC, crc32c(state, seed), 0):
        return None
    try:
        return msgspec.msgpack.decode(state, type=LogIndex)
    except msgspec.MsgspecError:
        return None


def remove(files: Files, directory: str) -> None:
    """Remove the state of a log, if there is one; an error does not matter."""
    with suppress(OSError):
        files.remove(f"{directory}/{NAME}")
