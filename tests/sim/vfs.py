"""SQLite on the simulated disk: a file system for the very library that the broker uses.

The calls that SQLite makes of its file system for Unix are made of a `SimDisk` instead: the same
reads, writes, cuts and syncs, and the sync of the directory after the first sync of a new journal.
So its pages and its write-ahead log are torn, lost and reordered like any other file. What it
shares between connections (`-shm`) is memory here: the first to open a database empties it anyway.

An error of the disk is told to SQLite as its file system would. Everything else that the disk or
its hooks raise, a cut of power or a broken promise, cannot pass through C: it is kept, SQLite gets
an error, and `guard` raises it as soon as SQLite has returned.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from typing import Any
from weakref import WeakValueDictionary

from harebell.base.ports import File
from tests.sim.disk import SimDisk

NAME = "simulated"
_OK, _ERROR, _IOERR, _NOTFOUND, _FULL, _CANTOPEN = 0, 1, 10, 12, 13, 14
_SHORT_READ = _IOERR | 2 << 8
_READ, _WRITE, _FSYNC, _TRUNCATE = (_IOERR | number << 8 for number in (1, 3, 4, 6))
_FSTAT, _DELETE, _LOCK, _GONE, _DIR_FSYNC = (_IOERR | number << 8 for number in (7, 10, 15, 23, 5))
_CREATE, _TEMPORARY = 0x4, 0x8
_JOURNALS = 0x800 | 0x4000 | 0x80000
_POWERSAFE_OVERWRITE = 0x1000
_SECTOR = 4096
_SEED = 28
"""The test control that seeds SQLite's random numbers: the salts of a write-ahead log."""


class _File(ctypes.Structure):
    _fields_ = [("methods", c_void_p), ("number", c_int64)]


class _Shared:
    """What the connections to one database share."""

    def __init__(self) -> None:
        self.regions: list[Any] = []
        self.users = 0


class _Open:
    """An open file, and what SQLite has yet to sync of it.

    SQLite reads the shared memory once more as it closes a connection, also that of a process that
    died, so it stays until then.
    """

    def __init__(self, disk: SimDisk, path: str, file: File, *, new_journal: bool) -> None:
        self.disk = disk
        self.path = path
        self.file = file
        self.directory_due = new_journal
        self.shared: _Shared | None = None
        self.dead = False


_disks: WeakValueDictionary[str, SimDisk] = WeakValueDictionary()
_roots = 0
_files: dict[int, _Open] = {}
_shared: dict[tuple[int, str], _Shared] = {}
_numbers = 0
_raised: list[tuple[SimDisk | None, BaseException]] = []


def mount(disk: SimDisk) -> str:
    """The directory under which SQLite finds a disk, until nobody has the disk any more."""
    global _roots
    _register()
    for name, each in _disks.items():
        if each is disk:
            return f"/{name}"
    _roots += 1
    _disks[str(_roots)] = disk
    return f"/{_roots}"


def abandon(disk: SimDisk) -> None:
    """The process on this disk died: nothing that its connections do reaches the disk."""
    for each in [each for each in _files.values() if each.disk is disk]:
        each.dead = True
        disk.handles.pop(each.file._handle, None)  # type: ignore[attr-defined]
    for key in [key for key in _shared if key[0] == id(disk)]:
        del _shared[key]


def seed(number: int) -> None:
    """Decide the random numbers of SQLite from here on."""
    library().sqlite3_test_control(c_int(_SEED), c_int(number & 0x3FFFFFFF | 1), c_void_p(None))


@contextmanager
def guard(disk: SimDisk) -> Iterator[None]:
    """Around calls of SQLite: raise what its disk raised that is no error of a disk.

    What other disks raise meanwhile, as the connections of dead processes are collected, is not
    this one's.
    """
    held, _raised[:] = _raised[:], []
    try:
        yield
    finally:
        found, _raised[:] = _raised[:], held
        for where, error in found:
            if where is disk:
                raise error


# --- the calls ----------------------------------------------------------------------------------


def _kept(fallback: int) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """An error of the disk in the words of SQLite."""

    def wrap(call: Callable[..., int]) -> Callable[..., int]:
        def answer(*args: Any) -> int:
            try:
                return call(*args)
            except OSError as error:
                return _FULL if error.errno == errno.ENOSPC else fallback
            except BaseException as error:
                _raised.append((_disk_of(*args), error))
                return _IOERR

        return answer

    return wrap


def _disk_of(first: Any, second: Any = None, *others: Any) -> SimDisk | None:
    """The disk of a call, whose first arguments are the file system and a name, or a file."""
    if isinstance(second, bytes):
        return _disks.get(second.decode().strip("/").partition("/")[0])
    opened = _files.get(first[0].number) if isinstance(first, _FILE) else None
    return None if opened is None else opened.disk


def _place(name: bytes | None) -> tuple[SimDisk, str]:
    if name is None:
        return SimDisk(), "temporary"
    number, _, path = name.decode().strip("/").partition("/")
    disk = _disks.get(number)
    if disk is None:
        raise OSError(errno.ENODEV, "the disk is gone", path)
    return disk, path


def _of(file: Any) -> _Open:
    opened = _files[file[0].number]
    if opened.dead:
        raise OSError(errno.EIO, "the process is gone")
    return opened


@_kept(_CANTOPEN)
def _open(vfs: Any, name: bytes | None, file: Any, flags: int, out: Any) -> int:
    global _numbers
    file[0].methods = None
    disk, path = _place(name)
    create = bool(flags & _CREATE)
    opened = disk.open(path, create=create)
    _numbers += 1
    _files[_numbers] = _Open(disk, path, opened, new_journal=create and bool(flags & _JOURNALS))
    file[0].number = _numbers
    file[0].methods = ctypes.addressof(_methods)
    if out:
        out[0] = flags
    return _OK


@_kept(_DELETE)
def _delete(vfs: Any, name: bytes, sync: int) -> int:
    disk, path = _place(name)
    try:
        disk.remove(path)
    except FileNotFoundError:
        return _GONE
    if sync & 1:
        try:
            disk.sync_directory(path.rpartition("/")[0])
        except OSError:
            return _DIR_FSYNC
    return _OK


@_kept(_ERROR)
def _access(vfs: Any, name: bytes, flags: int, out: Any) -> int:
    disk, path = _place(name)
    try:
        file = disk.open(path)
        out[0] = int(file.size() > 0)
        file.close()
    except FileNotFoundError:
        out[0] = 0
    return _OK


@_kept(_CANTOPEN)
def _full(vfs: Any, name: bytes, room: int, out: int) -> int:
    ctypes.memmove(out, name + b"\0", len(name) + 1)
    return _OK


@_kept(_ERROR)
def _random(vfs: Any, room: int, out: int) -> int:
    ctypes.memset(out, 7, room)
    return room


@_kept(_ERROR)
def _nothing(*args: Any) -> int:
    return _OK


@_kept(_ERROR)
def _now(vfs: Any, out: Any) -> int:
    out[0] = 2_460_000.5
    return _OK


@_kept(_IOERR)
def _close(file: Any) -> int:
    opened = _files.pop(file[0].number)
    if not opened.dead:
        opened.file.close()
    return _OK


@_kept(_READ)
def _read(file: Any, out: int, size: int, offset: int) -> int:
    data = _of(file).file.read_at(size, offset)
    ctypes.memmove(out, data + bytes(size - len(data)), size)
    return _OK if len(data) == size else _SHORT_READ


@_kept(_WRITE)
def _write(file: Any, data: int, size: int, offset: int) -> int:
    left = ctypes.string_at(data, size)
    while left:
        done = _of(file).file.write_at(left, offset)
        left, offset = left[done:], offset + done
    return _OK


@_kept(_TRUNCATE)
def _truncate(file: Any, size: int) -> int:
    _of(file).file.truncate(size)
    return _OK


@_kept(_FSYNC)
def _sync(file: Any, flags: int) -> int:
    opened = _of(file)
    opened.file.sync()
    if opened.directory_due:
        opened.directory_due = False
        # Its file system for Unix does not look at whether this one fails.
        try:
            opened.disk.sync_directory(opened.path.rpartition("/")[0])
        except OSError:
            return _OK
    return _OK


@_kept(_FSTAT)
def _size(file: Any, out: Any) -> int:
    out[0] = _of(file).file.size()
    return _OK


@_kept(_LOCK)
def _lock(file: Any, level: int) -> int:
    # Who is alone on a disk has no one to wait for, but without this SQLite would bring a dead
    # process's log in, and remove it, as it closes the connection.
    _of(file)
    return _OK


@_kept(_ERROR)
def _reserved(file: Any, out: Any) -> int:
    out[0] = 0
    return _OK


def _control(file: Any, what: int, argument: Any) -> int:
    return _NOTFOUND


def _sector(file: Any) -> int:
    return _SECTOR


def _characteristics(file: Any) -> int:
    return _POWERSAFE_OVERWRITE


@_kept(_IOERR)
def _share(file: Any, number: int, size: int, extend: int, out: Any) -> int:
    opened = _of(file)
    key = id(opened.disk), opened.path
    shared = _shared.setdefault(key, _Shared())
    if opened.shared is None:
        opened.shared = shared
        shared.users += 1
    while extend and len(shared.regions) <= number:
        shared.regions.append(ctypes.create_string_buffer(size))
    there = number < len(shared.regions)
    out[0] = ctypes.addressof(shared.regions[number]) if there else None
    return _OK


@_kept(_IOERR)
def _unshare(file: Any, delete: int) -> int:
    opened = _files[file[0].number]
    shared = opened.shared
    if shared is not None and not opened.dead:
        opened.shared = None
        shared.users -= 1
        if not shared.users:
            del _shared[id(opened.disk), opened.path]
    return _OK


# --- what C sees --------------------------------------------------------------------------------

_FILE, _NUMBER = ctypes.POINTER(_File), ctypes.POINTER(c_int)
_CALL = ctypes.CFUNCTYPE
_METHODS: list[tuple[str, Any, Any]] = [
    ("close", _CALL(c_int, _FILE), _close),
    ("read", _CALL(c_int, _FILE, c_void_p, c_int, c_int64), _read),
    ("write", _CALL(c_int, _FILE, c_void_p, c_int, c_int64), _write),
    ("truncate", _CALL(c_int, _FILE, c_int64), _truncate),
    ("sync", _CALL(c_int, _FILE, c_int), _sync),
    ("size", _CALL(c_int, _FILE, ctypes.POINTER(c_int64)), _size),
    ("lock", _CALL(c_int, _FILE, c_int), _lock),
    ("unlock", _CALL(c_int, _FILE, c_int), _nothing),
    ("reserved", _CALL(c_int, _FILE, _NUMBER), _reserved),
    ("control", _CALL(c_int, _FILE, c_int, c_void_p), _control),
    ("sector", _CALL(c_int, _FILE), _sector),
    ("characteristics", _CALL(c_int, _FILE), _characteristics),
    ("share", _CALL(c_int, _FILE, c_int, c_int, c_int, ctypes.POINTER(c_void_p)), _share),
    ("share_lock", _CALL(c_int, _FILE, c_int, c_int, c_int), _nothing),
    ("share_barrier", _CALL(None, _FILE), lambda file: None),
    ("unshare", _CALL(c_int, _FILE, c_int), _unshare),
]
_CALLS: list[tuple[str, Any, Any]] = [
    ("open", _CALL(c_int, c_void_p, c_char_p, _FILE, c_int, _NUMBER), _open),
    ("delete", _CALL(c_int, c_void_p, c_char_p, c_int), _delete),
    ("access", _CALL(c_int, c_void_p, c_char_p, c_int, _NUMBER), _access),
    ("full", _CALL(c_int, c_void_p, c_char_p, c_int, c_void_p), _full),
    *((name, c_void_p, None) for name in ("dl_open", "dl_error", "dl_symbol", "dl_close")),
    ("random", _CALL(c_int, c_void_p, c_int, c_void_p), _random),
    ("sleep", _CALL(c_int, c_void_p, c_int), _nothing),
    ("now", _CALL(c_int, c_void_p, ctypes.POINTER(c_double)), _now),
    ("last_error", _CALL(c_int, c_void_p, c_int, c_char_p), _nothing),
]


class _Methods(ctypes.Structure):
    _fields_ = [("version", c_int), *((name, kind) for name, kind, _ in _METHODS)]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("longest", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *((name, kind) for name, kind, _ in _CALLS),
    ]


_methods = _Methods(2, *(kind(call) for _, kind, call in _METHODS))
_vfs = _Vfs(
    1,
    ctypes.sizeof(_File),
    512,
    None,
    NAME.encode(),
    None,
    *(None if call is None else kind(call) for _, kind, call in _CALLS),
)


def library() -> ctypes.CDLL:
    """The SQLite that Python's own module uses: its symbols, whoever they come from."""
    found = ctypes.CDLL(_sqlite3.__file__)
    if not hasattr(found, "sqlite3_vfs_register"):
        raise AssertionError("this Python hides its SQLite: use one that links to libsqlite3")
    return found


def _register() -> None:
    if not _roots and library().sqlite3_vfs_register(ctypes.byref(_vfs), 0) != _OK:
        raise AssertionError("SQLite did not take the file system")
