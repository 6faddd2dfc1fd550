"""The redo file: what makes the batch of a transaction take effect as a whole.

A transaction changes several logs, or one log by several records, and a crash between two writes
would keep a part of it. So everything that its batch is going to write is written to one file and
synced first. Whoever opens the store next does these writes once more: all of them when the file
is whole, none when it is not. The octets go to the places that they had anyway, so doing it twice
does no harm, unless a segment was removed meanwhile: the file is forgotten before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
        self._known = False

    def write(self, planned: Iterable[Planned]) -> None:
        """Write down what is to be written; `sync` makes it count.

        Raises:
            OSError: the disk refuses. It may be tried again.
        """
        content = encode(planned)
        file = self._files.open(PATH, create=True)
        try:
            # What it held is done and synced. From here on it may be whole at any moment.
            self.holds = True
            write_all(file, content, 0)
        finally:
            file.close()

    def sync(self) -> None:
        """From here on everything that was written down happens.

        Raises:
            OSError: the disk refuses.
        """
        file = self._files.open(PATH)
        try:
            file.sync()
        finally:
            file.close()
        if not self._known:
            self._files.sync_folder("")
            self._known = True

    def done(self) -> None:
        """The writes are on disk themselves: a large file gives its room back.

        Raises:
            OSError: the disk refuses.
        """
        file = self._files.open(PATH)
        try:
            large = file.size() > REDO_KEEP_BYTES
        finally:
            file.close()
        if large:
            self.forget()

    def forget(self) -> None:
        """Nothing is done once more from here on. To be called before a segment is removed.

        Raises:
            OSError: the disk refuses.
        """
        if not self.holds:
            return
        file = self._files.open(PATH)
        try:
            file.truncate(0)
            file.sync()
        finally:
            file.close()
        self.holds = False

    def replay(self) -> int:
        """At the start: do what the file holds, if it is whole; returns how many writes that were.

        Raises:
            OSError: the disk refuses.
        """
        try:
            file = self._files.open(PATH)
        except FileNotFoundError:
            return 0
        try:
            content = file.read_at(file.size(), 0)
        finally:
            file.close()
        planned = decode(content)
        for path, start, data in planned:
            self._do(path, start, data)
        for folder in {path.rpartition("/")[0]: None for path, _, _ in planned}:
            self._files.sync_folder(folder)
            self._files.sync_folder(folder.rpartition("/")[0])
        self.holds = bool(content)
        self.forget()
        return len(planned)

    def _do(self, path: str, start: int, data: bytes) -> None:
        self._files.make_folder(path.rpartition("/")[0])
        file: File = self._files.open(path, create=True)
        try:
            write_all(file, data, start)
            file.sync()
        finally:
            file.close()


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
