"""The real file system behind the `Files` port.

This is the one module below the waterline that knows the operating system: everything above it is
given files, so that a simulated disk can stand in this one's place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from harebell.base.lags import NEVER, Lags
from harebell.base.limits import SYNC_TOGETHER_FILES
from harebell.base.ports import File, Files

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


class OsFile(File):
    """A file by its descriptor.

    Args:
        files: the folder it is in.
        handle: the descriptor, which belongs to this object.
        path: for errors.
    """

    __slots__ = ("_files", "_handle", "path")

    def __init__(self, files: OsFiles, handle: int, path: str) -> None:
        self._files = files
        self._handle = handle
        self.path = path

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write octets at an offset; returns how many, which may be fewer than given."""
        try:
            return os.pwrite(self._handle, data, offset)
        except OSError as error:
            raise _named(error, self.path) from None

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` octets from an offset; fewer only at the end of the file."""
        data = b""
        try:
            data = os.pread(self._handle, size, offset)
            while data and len(data) < size:
                more = os.pread(self._handle, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            # The system reads what it can before it fails.
            where = f"{error.strerror} at octet {offset + len(data)}"
            raise type(error)(error.errno, where, self.path) from None
        return data

    def fileno(self) -> int:
        """Its descriptor."""
        return self._handle

    def size(self) -> int:
        """Its size in octets."""
        return os.fstat(self._handle).st_size

    def truncate(self, size: int) -> None:
        """Cut it to a size."""
        try:
            os.ftruncate(self._handle, size)
        except OSError as error:
            raise _named(error, self.path) from None

    def sync(self) -> None:
        """Return when everything written is on disk, or that was put off."""
        if self._files.put_off(self.path):
            return
        try:
            os.fdatasync(self._handle)
        except OSError as error:
            raise _named(error, self.path) from None

    def close(self) -> None:
        """Let it go; nothing is synced by that."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


class OsFiles(Files):
    """A folder of the real file system.

    Args:
        root: its absolute path; it exists.
        lag: milliseconds that syncs are put off, until `sync_owed` is called; see `Lags`.
        together: returns when everything in the file system is on disk; None where nothing can.
        looking: whether files are only read, which can be done where nothing can be written.
    """

    __slots__ = ("_flags", "_lags", "_owed", "_root", "_stricter", "_together")

    def __init__(
        self,
        root: str,
        *,
        lag: int = 0,
        together: Callable[[], None] | None = None,
        looking: bool = False,
    ) -> None:
        self._flags = os.O_CLOEXEC | (os.O_RDONLY if looking else os.O_RDWR)
        self._root = root
        self._together = together
        self._lags = Lags(lag)
        self._owed: dict[int, dict[str, None]] = {}
        self._stricter: list[str] = []

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; a missing one is made only with `create`."""
        flags = self._flags | (os.O_CREAT if create else 0)
        full = self._full(path)
        return OsFile(self, os.open(full, flags, _FILE_MODE), full)

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing when there is no such folder."""
        try:
            return sorted(os.listdir(self._full(folder)))
        except FileNotFoundError:
            return []

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it; an existing one is fine."""
        at = ""
        for name in folder.split("/"):
            at = f"{at}/{name}" if at else name
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._full(at), _FOLDER_MODE)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, replacing what has that name."""
        os.replace(self._full(old), self._full(new))

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(self._full(path))

    def remove_folder(self, folder: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._full(folder))

    def sync_folder(self, folder: str) -> None:
        """Return when the names in a folder are on disk, or that was put off."""
        full = self._full(folder)
        if not self.put_off(full):
            _sync(full)

    def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Sync files and folders: all with one call when they are many."""
        together = self._together
        if together is not None and len(files) + len(folders) >= SYNC_TOGETHER_FILES:
            paths = [file.path for file in files if isinstance(file, OsFile)]
            paths += [self._full(folder) for folder in folders]
            if sum([not self.put_off(path) for path in paths]) >= SYNC_TOGETHER_FILES:
                together()
                return
        super().sync_all(files, folders)

    def descriptors(self, files: Sequence[File]) -> list[tuple[int, str]]:
        """Descriptors and whole paths of files, when each is to be synced now and by itself."""
        if self._together is not None and len(files) >= SYNC_TOGETHER_FILES:
            return []
        found = []
        for file in files:
            if not isinstance(file, OsFile) or self._lags.of(file.path) != 0:
                return []
            found.append((file.fileno(), file.path))
        return found

    def free(self) -> int:
        """Octets that can still be written."""
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize

    def total(self) -> int:
        """Octets that the whole file system has."""
        found = os.statvfs(self._root)
        return found.f_blocks * found.f_frsize

    # --- syncs that do not come at once ---------------------------------------------------------

    def delay(self, folder: str, lag: int | None) -> None:
        """Syncs in a folder are put off that long from now on; None: as everywhere.

        What was put off there until now is owed at once when the new lag is stricter.
        """
        full = self._full(folder)
        if self._lags.put(full, lag) and self._lags.of(full) != NEVER:
            self._stricter.append(full)

    def owed(self) -> list[int]:
        """The lags by which something is to be synced later; 0 for what should be already."""
        at_once = [0] if self._stricter else []
        return at_once + list(self._owed)

    def put_off(self, path: str) -> bool:
        """Whether a file or folder is not synced now; if it has to be later, that is noted down."""
        lag = self._lags.of(path)
        if lag > 0:
            self._owed.setdefault(lag, {})[path] = None
        return lag != 0

    def sync_owed(self, lag: int) -> None:
        """Do the syncs that were put off by that lag; what has been removed since needs none."""
        owed = self._owed.pop(lag, {})
        while lag == 0 and self._stricter:
            folder = self._stricter.pop()
            names = os.listdir(folder) if os.path.isdir(folder) else []
            owed.update(dict.fromkeys(f"{folder}/{name}" for name in sorted(names)))
            # The folders above may never have been synced either.
            while folder != self._root:
                owed[folder] = None
                folder = folder.rpartition("/")[0]
            owed[folder] = None
        for path in owed:
            try:
                _sync(path)
            except FileNotFoundError:
                continue

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def _sync(path: str) -> None:
    """Sync a file or a folder by its name."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        raise _named(error, path) from None
    finally:
        os.close(handle)


def _named(error: OSError, path: str) -> OSError:
    """The same error with the file in it: calls by descriptor do not know the name."""
    return type(error)(error.errno, error.strerror, path)
