"""The redo file: what makes the batch of a transaction take effect as a whole.

A transaction changes several logs, or one log by several records, and a crash between two writes
would keep a part of it. So everything that its batch is going to write is written to one file and
synced first. The next start repeats these writes: all of them when the file
is whole, none when it is not. The octets go to the places that they had anyway, so doing it twice
does no harm, unless a segment was removed meanwhile: the file is forgotten before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct

from harebell.base.limits import REDO_KEEP_BYTES
from harebell.base.ports import File, Files
from harebell.kernels.records import crc32c
from harebell.store.commit import write_all

PATH = "redo"
_MAGIC = b"HBREDO\x00\x01"
_HEAD = Struct("<8sIIQ")
_COVERED = 16
_ENTRY = Struct("<HQQ")
_PADDING = 7
"""Octets between two records at most; those after the last one need not be in the file."""

Planned = tuple[str, int, bytes]
"""A write that is to be done: path, offset, octets."""


class Redo:
    """The redo file of a store.

    Args:
        files: the folder of the store.

    Attributes:
        holds: whether the file may hold writes that the next start would do once more.
    """

    def __init__(self, files: Files) -> None:
        self.holds = False
        self._files = files
        self._file: File | None = None
        self._size = 0
        self._known = False

    def write(self, planned: Iterable[Planned]) -> None:
        """Write down what is to be written; `sync` makes it count.

        Raises:
            OSError: the disk refuses. It may be tried again.
        """
        content = encode(planned)
        if self._file is None:
            self._file = self._files.open(PATH, create=True)
        # What it held is done and synced. From here on it may be whole at any moment.
        self.holds = True
        self._size = max(self._size, len(content))
        write_all(self._file, content, 0)

    def sync(self) -> None:
        """From here on everything that was written down happens.

        Raises:
            OSError: the disk refuses.
        """
        assert self._file is not None
        self._file.sync()
        if not self._known:
            self._files.sync_folder("")
            self._known = True

    @property
    def large(self) -> bool:
        """Whether it takes more room than it should keep."""
        return self._size > REDO_KEEP_BYTES

    def empty(self) -> None:
        """Let what it holds go; `forget` makes that count.

        Raises:
            OSError: the disk refuses. It may be tried again.
        """
        assert self._file is not None
        self._file.truncate(0)

    def forget(self) -> None:
        """Nothing is done once more from here on. To be called before a segment is removed.

        Raises:
            OSError: the disk refuses.
        """
        assert self._file is not None
        self._file.sync()
        self._size = 0
        self.holds = False

    def close(self) -> None:
        """The store ends in good order: there is nothing to do once more, nor would it do harm."""
        with suppress(OSError):
            if self.holds:
                self.empty()
                self.forget()
        if self._file is not None:
            self._file.close()
            self._file = None

    def replay(self) -> int:
        """At the start: do what the file holds, if it is whole.

        Returns:
            How many octets were not there yet.

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
                file.truncate(0)
                file.sync()
        finally:
            file.close()
        return done

    def _do_all(self, planned: list[Planned]) -> int:
        if not all(self._fits(path, start) for path, start, _ in planned):
            return 0
        done = sum([self._do(path, start, data) for path, start, data in planned])
        for folder in {path.rpartition("/")[0]: None for path, _, _ in planned}:
            self._files.sync_folder(folder)
            self._files.sync_folder(folder.rpartition("/")[0])
        return done

    def _fits(self, path: str, start: int) -> bool:
        """Whether a file goes as far as the octets before a write.

        It does, unless syncs were put off and the power went: then the file may be from before or
        after its segment, and says nothing of what is there.
        """
        if start == 0:
            return True
        try:
            file = self._files.open(path)
        except FileNotFoundError:
            return False
        try:
            return file.size() + _PADDING >= start
        finally:
            file.close()

    def _do(self, path: str, start: int, data: bytes) -> int:
        """Do a write once more; a full disk is no reason not to find that it was done."""
        if start == 0:
            self._files.make_folder(path.rpartition("/")[0])
        file: File = self._files.open(path, create=start == 0)
        try:
            missing = file.read_at(len(data), start) != data
            if missing:
                write_all(file, data, start)
            # It may have been written, and not be on disk.
            file.sync()
        finally:
            file.close()
        return len(data) if missing else 0


def encode(planned: Iterable[Planned]) -> bytes:
    """The content of the file."""
    parts = []
    for path, start, data in planned:
        name = path.encode("ascii")
        parts += [_ENTRY.pack(len(name), start, len(data)), name, data]
    rest = b"".join(parts)
    checked = len(rest).to_bytes(8, "little") + rest
    return _HEAD.pack(_MAGIC, crc32c(checked), 0, len(rest)) + rest


def decode(content: bytes) -> list[Planned]:
    """What the content says; nothing when it is not whole."""
    if len(content) < _HEAD.size:
        return []
    magic, crc, _, length = _HEAD.unpack_from(content)
    end = _HEAD.size + length
    if magic != _MAGIC or end > len(content) or crc != crc32c(content[_COVERED:end]):
        return []
    return list(_entries(content, end))


def _entries(content: bytes, end: int) -> Iterator[Planned]:
    at = _HEAD.size
    while at < end:
        name, start, size = _ENTRY.unpack_from(content, at)
        at += _ENTRY.size
        path = content[at : at + name].decode("ascii")
        at += name
        yield path, start, content[at : at + size]
        at += size
