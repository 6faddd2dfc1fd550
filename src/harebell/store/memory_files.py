"""Files in memory, for what a broker without a disk keeps beside its logs."""

from __future__ import annotations

import errno

from harebell.base.ports import File, Files

_FREE = 1 << 40


class MemoryFile(File):
    """The octets of one file.

    Args:
        content: they belong to the folder.
    """

    __slots__ = ("_content",)

    def __init__(self, content: bytearray) -> None:
        self._content = content

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write octets at an offset; a hole before them is zeros."""
        missing = offset - len(self._content)
        if missing > 0:
            self._content += bytes(missing)
        self._content[offset : offset + len(data)] = data
        return len(data)

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` octets from an offset."""
        return bytes(self._content[offset : offset + size])

    def size(self) -> int:
        """Its size in octets."""
        return len(self._content)

    def truncate(self, size: int) -> None:
        """Cut it to a size, or fill it up to that with zeros."""
        del self._content[size:]
        self._content += bytes(size - len(self._content))

    def sync(self) -> None:
        """Memory is as safe as it will ever be."""

    def close(self) -> None:
        """There is nothing to let go."""


class MemoryFiles(Files):
    """A folder in memory; folders in it are there as soon as a file is."""

    __slots__ = ("_contents",)

    def __init__(self) -> None:
        self._contents: dict[str, bytearray] = {}

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file; a missing one is made only with `create`."""
        if path not in self._contents:
            if not create:
                raise _missing(path)
            self._contents[path] = bytearray()
        return MemoryFile(self._contents[path])

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted."""
        front = f"{folder}/" if folder else ""
        inside = (path[len(front) :] for path in self._contents if path.startswith(front))
        return sorted({name.partition("/")[0] for name in inside})

    def make_folder(self, folder: str) -> None:
        """Every folder is there."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        if old not in self._contents:
            raise _missing(old)
        self._contents[new] = self._contents.pop(old)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if self._contents.pop(path, None) is None:
            raise _missing(path)

    def remove_folder(self, folder: str) -> None:
        """An empty folder is not there."""

    def sync_folder(self, folder: str) -> None:
        """Memory is as safe as it will ever be."""

    def free(self) -> int:
        """As much as anybody could ask for."""
        return _FREE


def _missing(path: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", path)
