"""Damaged octets are kept aside before anything is done about them."""

from __future__ import annotations

from harebell.base.ports import File, Files

FOLDER = "quarantine"
_CHUNK = 1_048_576


class Quarantine:
    """The folder of damaged octets, for one log.

    Args:
        files: the disk.
        identity: of the log.
    """

    def __init__(self, files: Files, identity: str) -> None:
        self._files = files
        self._identity = identity

    def copy(self, file: File, path: str, begin: int, end: int) -> str:
        """Copy octets of a segment; the same place of the same segment is copied once.

        Returns:
            The name of the copy.
        """
        name = f"{FOLDER}/{self._identity}-{_base(path)}-{begin}.bin"
        if name.rpartition("/")[2] in self._files.names(FOLDER):
            return name
        self._prepare()
        draft = name + ".part"
        copy = self._files.open(draft, create=True)
        try:
            at = begin
            while at < end:
                data = file.read_at(min(_CHUNK, end - at), at)
                if not data:
                    break
                copy.write_at(data, at - begin)
                at += len(data)
            copy.sync()
        finally:
            copy.close()
        self._files.rename(draft, name)
        self._files.sync_folder(FOLDER)
        return name

    def move(self, path: str) -> str:
        """Move a whole segment here; a file that is here already keeps its name.

        Returns:
            The name it has here.
        """
        self._prepare()
        taken = set(self._files.names(FOLDER))
        name = f"{self._identity}-{_base(path)}-all"
        number = 0
        while f"{name}{number}.bin" in taken:
            number += 1
        target = f"{FOLDER}/{name}{number}.bin"
        self._files.rename(path, target)
        self._files.sync_folder(FOLDER)
        self._files.sync_folder(path.rpartition("/")[0])
        return target

    def _prepare(self) -> None:
        self._files.make_folder(FOLDER)
        self._files.sync_folder("")


def _base(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".seg")
