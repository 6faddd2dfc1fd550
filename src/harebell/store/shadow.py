"""A folder that can be opened as if for use, and stays as it is.

What is read is read from the folder; what is written, renamed, cut or removed only seems so. That
is enough for a log to be opened, which writes nothing that it reads again.
"""

from __future__ import annotations

import errno

from harebell.base.ports import File, Files


class _Unread(File):
    """A new file: it takes octets and keeps none."""

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Say that everything was written."""
        return len(data)

    def read_at(self, size: int, offset: int) -> bytes:
        """There is nothing."""
        return b""

    def size(self) -> int:
        """There is nothing."""
        return 0

    def truncate(self, size: int) -> None:
        """It is empty anyway."""

    def sync(self) -> None:
        """There is nothing to sync."""

    def close(self) -> None:
        """There is nothing to close."""


class _ReadOnly(_Unread):
    """A file of the folder, which nothing changes.

    Args:
        file: the real one.
    """

    def __init__(self, file: File) -> None:
        self._file = file

    def read_at(self, size: int, offset: int) -> bytes:
        """Read the real octets."""
        return self._file.read_at(size, offset)

    def size(self) -> int:
        """Its real size."""
        return self._file.size()

    def close(self) -> None:
        """Let it go."""
        self._file.close()


class Shadow(Files):
    """A folder seen through, and never changed.

    Args:
        files: the folder.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def open(self, path: str, *, create: bool = False) -> File:
        """A file to read; a new one is only pretended."""
        try:
            return _ReadOnly(self._files.open(path))
        except OSError as error:
            if not create or error.errno != errno.ENOENT:
                raise
            return _Unread()

    def names(self, folder: str) -> list[str]:
        """What is really in a folder."""
        return self._files.names(folder)

    def make_folder(self, folder: str) -> None:
        """Pretend."""

    def rename(self, old: str, new: str) -> None:
        """Pretend."""

    def remove(self, path: str) -> None:
        """Pretend."""

    def remove_folder(self, folder: str) -> None:
        """Pretend."""

    def sync_folder(self, folder: str) -> None:
        """There is nothing to sync."""

    def free(self) -> int:
        """What is really free."""
        return self._files.free()


class Watched(Files):
    """A folder whose renames are noted down: that is how things come into quarantine.

    Args:
        files: the folder.

    Attributes:
        arrived: the new names, in order.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.arrived: list[str] = []

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file."""
        return self._files.open(path, create=create)

    def names(self, folder: str) -> list[str]:
        """What is in a folder."""
        return self._files.names(folder)

    def make_folder(self, folder: str) -> None:
        """Make a folder."""
        self._files.make_folder(folder)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, and note it down."""
        self._files.rename(old, new)
        self.arrived.append(new)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._files.remove(path)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder."""
        self._files.remove_folder(folder)

    def sync_folder(self, folder: str) -> None:
        """Sync a folder."""
        self._files.sync_folder(folder)

    def free(self) -> int:
        """What is free."""
        return self._files.free()
