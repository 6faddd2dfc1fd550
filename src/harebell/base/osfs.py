"""The operating system's implementation of the `Files` port.

This is the one module below the waterline that uses the operating system; tests replace it with a
simulated disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from harebell.base.histogram import SYNC_SECONDS, Histogram
from harebell.base.lags import NEVER, Lags
from harebell.base.limits import SYNC_TOGETHER_FILES
from harebell.base.ports import File, Files

_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700


class OsFile(File):
    """An open file.

    Args:
        files: its directory.
        handle: the descriptor, owned by this object.
        path: for errors.
    """

    __slots__ = ("_files", "_handle", "path")

    def __init__(self, files: OsFiles, handle: int, path: str) -> None:
        self._files = files
        self._handle = handle
        self.path = path

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write bytes at an offset; return how many, which may be fewer than given."""
        try:
            return os.pwrite(self._handle, data, offset)
        except OSError as error:
            raise _named(error, self.path) from None

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` bytes from an offset; fewer only at the end of the file."""
        data = b""
        try:
            data = os.pread(self._handle, size, offset)
            while data and len(data) < size:
                more = os.pread(self._handle, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            # The system returns the bytes before a bad block first; the next read fails.
            where = f"{error.strerror} at byte {offset + len(data)}"
            raise type(error)(error.errno, where, self.path) from None
        return data

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._handle

    def size(self) -> int:
        """Return the size in bytes."""
        return os.fstat(self._handle).st_size

    def truncate(self, size: int) -> None:
        """Truncate or extend the file to a size."""
        try:
            os.ftruncate(self._handle, size)
        except OSError as error:
            raise _named(error, self.path) from None

    def sync(self) -> None:
        """Sync the file, or note that it has to be synced later."""
        if self._files.put_off(self.path):
            return
        try:
            os.fdatasync(self._handle)
        except OSError as error:
            raise _named(error, self.path) from None

    def close(self) -> None:
        """Close the file without a sync."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


class OsFiles(Files):
    """A directory of the real file system.

    Args:
        root: its absolute path; it exists.
        lag: milliseconds that syncs are delayed, until `sync_owed` is called; see `Lags`.
        together: syncs the whole file system; None if the platform cannot.
        looking: whether files are only read, so that a read-only file system will do.
        clock: returns seconds, to measure syncs; None measures nothing.

    Attributes:
        syncs: how long `sync_all` took, in seconds. It is changed in the thread that syncs.
        kept: where files are moved that are to be removed; each is moved once at most.
    """

    __slots__ = (
        "_clock",
        "_flags",
        "_lags",
        "_owed",
        "_root",
        "_stricter",
        "_together",
        "kept",
        "syncs",
    )

    def __init__(
        self,
        root: str,
        *,
        lag: int = 0,
        together: Callable[[], None] | None = None,
        looking: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._flags = os.O_CLOEXEC | (os.O_RDONLY if looking else os.O_RDWR)
        self._root = root
        self._together = together
        self._lags = Lags(lag)
        self._owed: dict[int, dict[str, None]] = {}
        self._stricter: list[str] = []
        self._clock = clock
        self.syncs = Histogram(SYNC_SECONDS)
        self.kept: dict[str, str] = {}

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; a missing one is created only with `create`."""
        flags = self._flags | (os.O_CREAT if create else 0)
        full = self._full(path)
        return OsFile(self, os.open(full, flags, _FILE_MODE), full)

    def names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        try:
            return sorted(os.listdir(self._full(directory)))
        except FileNotFoundError:
            return []

    def make_directory(self, directory: str) -> None:
        """Create a directory and its parents; an existing one is no error."""
        at = ""
        for name in directory.split("/"):
            at = f"{at}/{name}" if at else name
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._full(at), _DIRECTORY_MODE)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace a file of the new name."""
        os.replace(self._full(old), self._full(new))

    def remove(self, path: str) -> None:
        """Remove a file, or move it to where it is kept."""
        place = self.kept.pop(path, None)
        if place is not None:
            # One that cannot be moved is removed: nothing that needs it comes before its removal.
            with contextlib.suppress(OSError):
                os.replace(self._full(path), self._full(place))
                return
        os.unlink(self._full(path))

    def remove_directory(self, directory: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self._full(directory))

    def sync_directory(self, directory: str) -> None:
        """Sync the names in a directory, or note that they have to be synced later."""
        full = self._full(directory)
        if not self.put_off(full):
            sync_path(full)

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Sync files and directories: all with one call if they are many."""
        if self._clock is None:
            self._sync_all(files, directories)
            return
        began = self._clock()
        self._sync_all(files, directories)
        self.syncs.observe(self._clock() - began)

    def _sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        together = self._together
        if together is not None and len(files) + len(directories) >= SYNC_TOGETHER_FILES:
            paths = [file.path for file in files if isinstance(file, OsFile)]
            paths += [self._full(directory) for directory in directories]
            if sum([not self.put_off(path) for path in paths]) >= SYNC_TOGETHER_FILES:
                together()
                return
        super().sync_all(files, directories)

    def descriptors(self, files: Sequence[File]) -> list[tuple[int, str]]:
        """Return descriptors and paths of files, if each is to be synced now and by itself."""
        if self._together is not None and len(files) >= SYNC_TOGETHER_FILES:
            return []
        descriptors = []
        for file in files:
            if not isinstance(file, OsFile) or self._lags.of(file.path) != 0:
                return []
            descriptors.append((file.fileno(), file.path))
        return descriptors

    def system_path(self, path: str) -> str | None:
        """Return the full path of a file, unless its syncs are delayed."""
        full = self._full(path)
        return full if self._lags.of(full) == 0 else None

    def adopt(self, descriptor: int, path: str) -> File:
        """Return the open file of a descriptor that the caller has opened at `system_path`."""
        return OsFile(self, descriptor, self._full(path))

    def free(self) -> int:
        """Return the bytes that can still be written."""
        statistics = os.statvfs(self._root)
        return statistics.f_bavail * statistics.f_frsize

    def total(self) -> int:
        """Return the size of the file system in bytes."""
        statistics = os.statvfs(self._root)
        return statistics.f_blocks * statistics.f_frsize

    # --- delayed syncs --------------------------------------------------------------------------

    def delay(self, directory: str, lag: int | None) -> None:
        """Set the lag of syncs in a directory; None for the default.

        If the new lag is stricter, syncs delayed until now are due at once.
        """
        full = self._full(directory)
        if self._lags.put(full, lag) and self._lags.of(full) != NEVER:
            self._stricter.append(full)

    def owed(self) -> list[int]:
        """Return the lags with delayed syncs; 0 for those that are due."""
        at_once = [0] if self._stricter else []
        return at_once + list(self._owed)

    def put_off(self, path: str) -> bool:
        """Note a delayed sync; False if the file or directory has to be synced now."""
        lag = self._lags.of(path)
        if lag > 0:
            self._owed.setdefault(lag, {})[path] = None
        return lag != 0

    def sync_owed(self, lag: int) -> None:
        """Do the syncs delayed by that lag; removed files need none."""
        owed = self._owed.pop(lag, {})
        while lag == 0 and self._stricter:
            directory = self._stricter.pop()
            names = os.listdir(directory) if os.path.isdir(directory) else []
            owed.update(dict.fromkeys(f"{directory}/{name}" for name in sorted(names)))
            # The parent directories may never have been synced either.
            while directory != self._root:
                owed[directory] = None
                directory = directory.rpartition("/")[0]
            owed[directory] = None
        for path in owed:
            try:
                sync_path(path)
            except FileNotFoundError:
                continue

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def sync_path(path: str | os.PathLike[str]) -> None:
    """Sync a file, or the names in a directory.

    Raises:
        OSError: it cannot be opened or synced; it has the path.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        raise _named(error, str(path)) from None
    finally:
        os.close(handle)


def _named(error: OSError, path: str) -> OSError:
    """Return the same error with the file name: calls by descriptor do not know it."""
    return type(error)(error.errno, error.strerror, path)
