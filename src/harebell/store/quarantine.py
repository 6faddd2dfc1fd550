"""Copy damaged bytes to the directory `quarantine/` before a log is repaired."""

from __future__ import annotations

from contextlib import suppress

from harebell.base.ports import File, Files, write_all

DIRECTORY = "quarantine"
_CHUNK = 1_048_576


class Quarantine:
    """The quarantine of one log.

    Args:
        files: the disk.
        identity: the identity of the log.
    """

    def __init__(self, files: Files, identity: str) -> None:
        self._files = files
        self._identity = identity

    def copy(self, file: File, path: str, begin: int, end: int) -> str:
        """Copy bytes of a segment, unless the same copy exists.

        Returns:
            The name of the copy.
        """
        stem = f"{DIRECTORY}/{self._identity}-{_base(path)}-{begin}"
        taken = set(self._files.names(DIRECTORY))
        name, number = f"{stem}.bin", 0
        # A crash after the copy and before the repair leaves the same damage and the same copy: the
        # copy is not made once more.
        while name.rpartition("/")[2] in taken:
            if self._same(name, file, begin, end):
                return name
            number += 1
            name = f"{stem}-{number}.bin"
        self._prepare()
        draft = f"{stem}.bin.part"
        try:
            self._fill(draft, file, begin, end)
        except OSError:
            # An incomplete copy is useless and takes room on a disk that may be full.
            with suppress(OSError):
                self._files.remove(draft)
            raise
        self._files.rename(draft, name)
        self._files.sync_directory(DIRECTORY)
        return name

    def _fill(self, draft: str, file: File, begin: int, end: int) -> None:
        copy = self._files.open(draft, create=True)
        try:
            copy.truncate(0)
            for at in range(begin, end, _CHUNK):
                write_all(copy, file.read_at(min(_CHUNK, end - at), at), at - begin)
            copy.sync()
        finally:
            copy.close()

    def _same(self, name: str, file: File, begin: int, end: int) -> bool:
        """True if a copy has these bytes."""
        copy = self._files.open(name)
        try:
            return copy.size() == end - begin and all(
                copy.read_at(_CHUNK, at - begin) == file.read_at(min(_CHUNK, end - at), at)
                for at in range(begin, end, _CHUNK)
            )
        finally:
            copy.close()

    def move(self, path: str) -> str:
        """Move a whole segment to quarantine, under a free name.

        Returns:
            Its name in quarantine.
        """
        self._prepare()
        taken = set(self._files.names(DIRECTORY))
        name = f"{self._identity}-{_base(path)}-all"
        number = 0
        while f"{name}{number}.bin" in taken:
            number += 1
        target = f"{DIRECTORY}/{name}{number}.bin"
        self._files.rename(path, target)
        # Both directories: the segment must not be lost from both after a loss of power.
        self._files.sync_directory(DIRECTORY)
        self._files.sync_directory(path.rpartition("/")[0])
        return target

    def _prepare(self) -> None:
        self._files.make_directory(DIRECTORY)
        self._files.sync_directory("")


def _base(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".seg")
