"""Files in memory, for a broker without a data directory."""

from __future__ import annotations

import errno

from harebell.base.ports import File, Files

_FREE = 1 << 40


class MemoryFile(File):
    """One open file.

    Args:
        content: the bytes, which belong to the directory.
    """

    __slots__ = ("_content",)

    def __init__(self, content: bytearray) -> None:
        self._content = content

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write at an offset; a gap before it is filled with zeros."""
        missing = offset - len(self._content)
        if missing > 0:
            # As a file system does.
            self._content += bytes(missing)
        self._content[offset : offset + len(data)] = data
        return len(data)

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` bytes from an offset."""
        return bytes(self._content[offset : offset + size])

    def size(self) -> int:
        """Return the size in bytes."""
        return len(self._content)

    def truncate(self, size: int) -> None:
        """Cut the file to a size, or fill it up to that size with zeros."""
        del self._content[size:]
        self._content += bytes(size - len(self._content))

    def sync(self) -> None:
        """No-op: memory cannot be synced."""

    def close(self) -> None:
        """No-op: the content belongs to the directory."""


class MemoryFiles(Files):
    """A directory in memory; its directories exist as soon as they hold a file."""

    __slots__ = ("_contents",)

    def __init__(self) -> None:
        self._contents: dict[str, bytearray] = {}

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file; create a missing one if `create` is set."""
        if path not in self._contents:
            if not create:
                raise _missing(path)
            self._contents[path] = bytearray()
        return MemoryFile(self._contents[path])

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        front = f"{directory}/" if directory else ""
        inside = (path[len(front) :] for path in self._contents if path.startswith(front))
        return sorted({name.partition("/")[0] for name in inside})

    def make_directory(self, directory: str) -> None:
        """No-op: every directory exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        if old not in self._contents:
            raise _missing(old)
        self._contents[new] = self._contents.pop(old)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if self._contents.pop(path, None) is None:
            raise _missing(path)

    def remove_directory(self, directory: str) -> None:
        """No-op: an empty directory does not exist."""

    def sync_directory(self, directory: str) -> None:
        """No-op: memory cannot be synced."""

    def free(self) -> int:
        """Return a size larger than any limit."""
        return _FREE


def _missing(path: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", path)
