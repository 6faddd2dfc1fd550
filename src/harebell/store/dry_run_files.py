"""A data directory opened for a dry run: reads go to the disk, changes do not.

Renames, truncations and removals are no-ops. Writes to segments are kept in memory, because the
redo of an unfinished transaction is read after it is written. Nothing else is read after a write.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from harebell.base.ports import File, Files


class _Unread(File):
    """A new file that discards all writes."""

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Discard the data; report all bytes as written."""
        return len(data)

    def read_at(self, size: int, offset: int) -> bytes:
        """Return no bytes: the file is empty."""
        return b""

    def size(self) -> int:
        """Return 0."""
        return 0

    def truncate(self, size: int) -> None:
        """No-op: the file is empty."""

    def sync(self) -> None:
        """No-op: a dry run changes nothing."""

    def close(self) -> None:
        """No-op: no file is open."""


class _Covered(_Unread):
    """A file as it would be after some writes.

    Args:
        file: the real file; None if it does not exist.
        writes: offsets and data, in order.
    """

    def __init__(self, file: File | None, writes: list[tuple[int, bytes]]) -> None:
        self._file = file
        self._writes = writes

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Keep the data in memory."""
        self._writes.append((offset, bytes(data)))
        return len(data)

    def read_at(self, size: int, offset: int) -> bytes:
        """Read from the real file, with the writes applied."""
        real = b"" if self._file is None else self._file.read_at(size, offset)
        if not self._writes:
            return real
        content = bytearray(real)
        # Writes may be behind the end of the real file; the gap reads as zeros, as in a file.
        content += bytes(max(min(size, self.size() - offset) - len(content), 0))
        for start, data in self._writes:
            begin, end = max(start, offset), min(start + len(data), offset + len(content))
            if begin < end:
                content[begin - offset : end - offset] = data[begin - start : end - start]
        return bytes(content)

    def size(self) -> int:
        """Return the size with the writes applied."""
        real = 0 if self._file is None else self._file.size()
        return max([real, *(start + len(data) for start, data in self._writes)])

    def close(self) -> None:
        """Close the real file."""
        if self._file is not None:
            self._file.close()


class Shadow(Files):
    """A directory that is read and never changed.

    Args:
        files: the data directory.
        kept: the directory whose writes are kept in memory and can be read again.
    """

    def __init__(self, files: Files, kept: str) -> None:
        self._files = files
        self._kept = f"{kept}/"
        self._writes: dict[str, list[tuple[int, bytes]]] = {}
        self._pretended: dict[str, set[str]] = {}

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading; a new one exists in memory only."""
        file: File | None
        try:
            file = self._files.open(path)
        except OSError as error:
            if error.errno != errno.ENOENT or not (create or path in self._writes):
                raise
            file = None
            self._pretend(path)
        if path.startswith(self._kept):
            return _Covered(file, self._writes.setdefault(path, []))
        return _Unread() if file is None else _Covered(file, [])

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, with those that a real run would create."""
        return sorted({*self._files.names(directory), *self._pretended.get(directory, ())})

    def _pretend(self, path: str) -> None:
        """List a missing file from now on, if its writes are kept."""
        if not path.startswith(self._kept):
            return
        while "/" in path:
            path, _, name = path.rpartition("/")
            self._pretended.setdefault(path, set()).add(name)

    def make_directory(self, directory: str) -> None:
        """No-op: a dry run changes nothing."""

    def rename(self, old: str, new: str) -> None:
        """No-op: a dry run changes nothing."""

    def remove(self, path: str) -> None:
        """No-op: a dry run changes nothing."""

    def remove_directory(self, directory: str) -> None:
        """No-op: a dry run changes nothing."""

    def sync_directory(self, directory: str) -> None:
        """No-op: a dry run changes nothing."""

    def free(self) -> int:
        """Return the real free space."""
        return self._files.free()


class Watched(Files):
    """A directory that records renames, by which files come into quarantine.

    Args:
        files: the data directory.

    Attributes:
        arrived: the new names, in order.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.arrived: list[str] = []

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file."""
        return self._files.open(path, create=create)

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory."""
        return self._files.names(directory)

    def make_directory(self, directory: str) -> None:
        """Make a directory."""
        self._files.make_directory(directory)

    def rename(self, old: str, new: str) -> None:
        """Rename a file and record its new name."""
        self._files.rename(old, new)
        self.arrived.append(new)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._files.remove(path)

    def remove_directory(self, directory: str) -> None:
        """Remove a directory."""
        self._files.remove_directory(directory)

    def sync_directory(self, directory: str) -> None:
        """Sync a directory."""
        self._files.sync_directory(directory)

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Sync files and directories."""
        self._files.sync_all(files, directories)

    def free(self) -> int:
        """Return the free space."""
        return self._files.free()
