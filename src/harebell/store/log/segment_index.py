"""The index of a full segment: the offsets of its records, in a file beside it.

    <first position, 20 digits>.idx

    0               8     12       16      24      32    40
    | HBOFFS 0 1    | crc | header | first | count | end | offsets ...

    magic    8 bytes, "HBOFFS" 0 and the version, 1
    crc      u32, CRC-32C of the rest, continued from that of the log's identity
    header   u32, the CRC in the segment's header
    first    u64, the position of its first message
    count    u64, how many positions it has
    end      u64, where its records end
    offsets  u32 each, of the records in the order of their positions; 2^32-1 for a lost one

Numbers are little-endian. The file only saves time: without it, or if it does not fit the segment,
the segment is read from its begin to its end. So it is never synced, and no error of it counts.
The segment gets no more records, so a file that fits is right for good.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from struct import Struct

from harebell.base.ports import File, Files, write_all
from harebell.base.slices import Slices, ended
from harebell.kernels.records import crc32c, find_good, good, head, record_size, scan
from harebell.kernels.settled_bitmap import SettledBitmap
from harebell.store.limits import SCAN_WINDOW_BYTES
from harebell.store.log.segment import HEADER_BYTES, Segment, header_crc, index_path

_MAGIC = b"HBOFFS\0\1"
_HEADER = Struct("<8sI")
_CHECKED = Struct("<IQQQ")
_COVERED = 12
_ALIGN = 8


def write(files: Files, segment: Segment, seed: int) -> bool:
    """Write the index of a full segment whose offsets are loaded; False if the disk refuses.

    Args:
        files: the data directory.
        segment: all of it is in its file.
        seed: where the checksums of the log start from.
    """
    positions = segment.positions
    try:
        header = _header_of(files, segment)
        checked = _CHECKED.pack(header, positions.first, positions.count, segment.end())
        rest = checked + positions.offsets()
        file = files.open(index_path(segment.path), create=True)
        try:
            file.truncate(0)
            write_all(file, _HEADER.pack(_MAGIC, crc32c(rest, seed)) + rest, 0)
        finally:
            file.close()
    except OSError:
        remove(files, segment.path)
        return False
    return True


def read(files: Files, file: File, segment: Segment, seed: int) -> bool:
    """Load the offsets of a segment from its index; False if there is none that fits.

    Args:
        files: the data directory.
        file: the segment's, open.
        segment: its offsets are not loaded.
        seed: where the checksums of the log start from.
    """
    positions = segment.positions
    try:
        content = _content(files, index_path(segment.path))
        header = header_crc(file.read_at(HEADER_BYTES, 0))
    except OSError:
        return False
    if len(content) < _COVERED + _CHECKED.size:
        return False
    magic, crc = _HEADER.unpack_from(content)
    rest = content[_COVERED:]
    claimed = (header, positions.first, positions.count, segment.end())
    return (
        magic == _MAGIC
        and _CHECKED.unpack_from(rest) == claimed
        and crc == crc32c(rest, seed)
        and positions.load(rest[_CHECKED.size :])
    )


def remove(files: Files, segment_path: str) -> None:
    """Remove the index of a segment, if there is one; an error does not matter."""
    with suppress(OSError):
        files.remove(index_path(segment_path))


def find_offsets(file: File, segment: Segment, seed: int) -> None:
    """Load the offsets of a segment from its records.

    A record that is damaged now was good when the segment was opened. Its offset counts as lost, so
    its message is kept back and reported when it is read.

    Args:
        file: the segment's, open.
        segment: all of it is in its file, and its offsets are not loaded.
        seed: where the checksums of the log start from.

    Raises:
        OSError: the disk refuses.
    """
    ended(finding_offsets(lambda: file, segment, seed))


def finding_offsets(file_of: Callable[[], File], segment: Segment, seed: int) -> Slices[None]:
    """Do what `find_offsets` does, in slices of a window each.

    Args:
        file_of: returns the segment's file, open.
        segment: as there.
        seed: as there.
    """
    positions = segment.positions
    there = SettledBitmap(positions.first)
    offset, size = HEADER_BYTES, min(segment.end(), file_of().size())
    while offset < size:
        if offset > HEADER_BYTES:
            yield
        file = file_of()
        claimed = record_size(file.read_at(4, offset), 0)
        length = min(max(SCAN_WINDOW_BYTES, claimed + _ALIGN), size - offset)
        used = _take(file.read_at(length, offset), offset, seed, there)
        if used:
            offset += used
            continue
        rest = file.read_at(size - offset, offset)
        index = find_good(rest, _ALIGN, seed, there.end(), positions.end())
        if index < 0:
            break
        there.miss(head(rest, index)[0])
        offset += index
    there.miss(positions.end())
    # Between two slices a read may have loaded them.
    if not positions.is_loaded():
        positions.load(there.offsets())


def _take(window: bytes, base: int, seed: int, there: SettledBitmap) -> int:
    """Add the good records at the begin of a window; return their size."""
    index = 0
    while index < len(window):
        index, _ = scan(window, index, base, seed, there)
        if not good(window, index, seed):
            break
        position, _, _, byte_count = head(window, index)
        if position != there.end():
            break
        index += byte_count + -byte_count % _ALIGN
    return min(index, len(window))


def _header_of(files: Files, segment: Segment) -> int:
    file = files.open(segment.path)
    try:
        return header_crc(file.read_at(HEADER_BYTES, 0))
    finally:
        file.close()


def _content(files: Files, path: str) -> bytes:
    file = files.open(path)
    try:
        return file.read_at(file.size(), 0)
    finally:
        file.close()
