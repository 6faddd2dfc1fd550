"""The redo file: it makes the batch of a transaction atomic.

A transaction writes to several logs, or several records to one log, and a crash between two writes
would keep a part of it. So all writes of its batch are first written to one file and synced. The
next start repeats them: all of them if the file is whole, none if it is not.

    offset 0    magic, "HBREDO" 0 and the version, 1    8 bytes
           8    CRC-32C of the bytes from 16 on         u32
           12   zero                                    u32
           16   length of the writes                    u64
           24   the writes, each: length of the path u16, offset in that file u64, length of the
                data u64, path in ASCII below the data directory, data

Numbers are little-endian, and nothing is padded.

    crash while the file is written     not whole: nothing is repeated, and no record was written
    crash after its sync                whole: all writes are repeated, done before or not
    crash after the commit              whole: repeating changes nothing, as offsets are fixed
    crash after a segment was removed   a repeated write would create the segment again, so the file
                                        is emptied and synced before the first removal
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct

from harebell.base.ports import File, Files, write_all
from harebell.kernels.records import crc32c
from harebell.store.limits import REDO_KEEP_BYTES

PATH = "redo"
_MAGIC = b"HBREDO\x00\x01"
_HEAD = Struct("<8sIIQ")
_COVERED = 16
_ENTRY = Struct("<HQQ")
_PADDING = 7
"""The most bytes between two records; those after the last record may be missing."""

Planned = tuple[str, int, bytes]
"""A planned write: path, offset, data."""


class Redo:
    """The redo file of a store.

    Args:
        files: the data directory.

    Attributes:
        holds: whether the file may hold writes that the next start would repeat.
    """

    def __init__(self, files: Files) -> None:
        self.holds = False
        self._files = files
        self._file: File | None = None
        self._size = 0
        self._named = False

    def write(self, planned: Iterable[Planned]) -> None:
        """Write the planned writes to the file; `sync` makes them effective.

        Raises:
            OSError: the disk refuses. It may be tried again.
        """
        content = encode(planned)
        if self._file is None:
            self._file = self._files.open(PATH, create=True)
        # The writes of its previous content are synced, so it may be overwritten. From here on a
        # crash may leave it whole, even before `sync`.
        self.holds = True
        self._size = max(self._size, len(content))
        # The file is not truncated first: `decode` ignores bytes behind the length in the head, and
        # a sync that changes no size is cheaper. If the power fails amid this write, old and new
        # bytes are mixed and the checksum is wrong: nothing is repeated, and no segment was written
        # to yet.
        write_all(self._file, content, 0)

    def sync(self) -> None:
        """Sync the file: after this, a crash no longer prevents its writes.

        Raises:
            OSError: the disk refuses.
        """
        assert self._file is not None
        self._file.sync()
        if not self._named:
            # A new file has no name on disk until its directory is synced.
            self._files.sync_directory("")
            self._named = True

    @property
    def large(self) -> bool:
        """True if the file is larger than it should stay."""
        return self._size > REDO_KEEP_BYTES

    def empty(self) -> None:
        """Truncate the file; `forget` makes this effective.

        Raises:
            OSError: the disk refuses. It may be tried again.
        """
        assert self._file is not None
        self._file.truncate(0)

    def forget(self) -> None:
        """Sync the emptied file, so that nothing is repeated; called before a segment is removed.

        Raises:
            OSError: the disk refuses.
        """
        assert self._file is not None
        self._file.sync()
        self._size = 0
        self.holds = False

    def close(self) -> None:
        """Empty and close the file; errors are ignored, as repeating its writes is harmless."""
        with suppress(OSError):
            if self.holds:
                self.empty()
                self.forget()
        if self._file is not None:
            self._file.close()
            self._file = None

    def replay(self) -> int:
        """Do the writes of the file, if it is whole; called at the start.

        Returns:
            The number of bytes that were missing in segments.

        Raises:
            OSError: the disk refuses.
        """
        try:
            file = self._files.open(PATH)
        except FileNotFoundError:
            return 0
        try:
            content = file.read_at(file.size(), 0)
            done = self._do_all(decode(content))
            if content:
                # Emptied only now: a crash amid the repetition repeats all of it once more.
                file.truncate(0)
                file.sync()
        finally:
            file.close()
        return done

    def _do_all(self, planned: list[Planned]) -> int:
        if not self._fit(planned):
            return 0
        done = sum([self._do(path, start, data) for path, start, data in planned])
        # A write may have created a segment, and a directory for it.
        for directory in {path.rpartition("/")[0]: None for path, _, _ in planned}:
            self._files.sync_directory(directory)
            self._files.sync_directory(directory.rpartition("/")[0])
        return done

    def _fit(self, planned: list[Planned]) -> bool:
        """True if each write begins in its file as it is, or as the writes before it leave it.

        They do not if syncs were put off (`durability`) and the power failed: then the redo file
        may be older or newer than the segments, and applying it would leave gaps.
        """
        ends: dict[str, int] = {}
        for path, start, data in planned:
            end = ends[path] if path in ends else self._size_of(path)
            if start > end + _PADDING:
                return False
            ends[path] = max(end, start + len(data))
        return True

    def _size_of(self, path: str) -> int:
        """Return the size of a file, 0 for a missing one."""
        try:
            file = self._files.open(path)
        except FileNotFoundError:
            return 0
        try:
            return file.size()
        finally:
            file.close()

    def _do(self, path: str, start: int, data: bytes) -> int:
        """Repeat a write; return its size, 0 if it was in place.

        The bytes are read first: a write that is in place needs no room on a full disk.
        """
        if start == 0:
            self._files.make_directory(path.rpartition("/")[0])
        file: File = self._files.open(path, create=start == 0)
        try:
            missing = file.read_at(len(data), start) != data
            if missing:
                write_all(file, data, start)
            # A write that is in place may be in the page cache only.
            file.sync()
        finally:
            file.close()
        return len(data) if missing else 0


def encode(planned: Iterable[Planned]) -> bytes:
    """Encode the content of the file."""
    parts = []
    for path, start, data in planned:
        name = path.encode("ascii")
        # Paths are made of identities and numbers, never of names that users chose: ASCII is
        # enough.
        parts += [_ENTRY.pack(len(name), start, len(data)), name, data]
    rest = b"".join(parts)
    # The checksum covers the length too: a flipped bit in it must not cut off the last writes.
    checked = len(rest).to_bytes(8, "little") + rest
    return _HEAD.pack(_MAGIC, crc32c(checked), 0, len(rest)) + rest


def decode(content: bytes) -> list[Planned]:
    """Decode the content; return an empty list if it is not whole."""
    if len(content) < _HEAD.size:
        return []
    magic, crc, _, length = _HEAD.unpack_from(content)
    end = _HEAD.size + length
    if magic != _MAGIC or end > len(content) or crc != crc32c(content[_COVERED:end]):
        return []
    return list(_entries(content, end))


def _entries(content: bytes, end: int) -> Iterator[Planned]:
    index = _HEAD.size
    while index < end:
        path_size, start, size = _ENTRY.unpack_from(content, index)
        index += _ENTRY.size
        path = content[index : index + path_size].decode("ascii")
        index += path_size
        yield path, start, content[index : index + size]
        index += size
