"""A simulated disk: it forgets what was not synced, tears what was under way, and fails on demand.

Every file has two contents. `current` is what the process reads. `synced` is what the disk holds
for sure; between them stand the writes and truncations since the last sync of that file. A
directory has two sets of names in the same way, and changes of names are pending until their
directory is synced, a rename until the directory of the new name is. `crash` makes a disk as it
may be found after a power loss:

* of each file's pending writes any subset survives, sector by sector (512 octets); what did not
  survive is as it was, or zero, or, where the file was growing, anything at all. What a write does
  not cover stays, even in the same sector: disks write sectors whole;
* the sizes of a file become durable in their order;
* of the pending changes of names any subset survives, each of them whole; what is in a directory
  whose own name did not survive is gone with it;
* after a failed sync what was pending is lost or not, and no later sync brings it back, although
  the process still reads it.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from harebell.base.lags import Lags
from harebell.base.ports import File, Files

SECTOR = 512
PENDING = ("write", "truncate")
CHANGES = frozenset(
    (
        *PENDING,
        *("create", "rename", "remove", "make_directory", "remove_directory"),
        *("sync", "sync_directory", "sync_all"),
    )
)
"""The operations after which a crash may find something else than before."""

_DEBRIS = 32

Hook = Callable[[int, str, str], "int | None"]
Random = random.Random


class PowerCut(BaseException):
    """The machine is off. No handler of errors has a say in that."""


def error(number: int, path: str) -> OSError:
    """The OSError that a system call would raise."""
    return OSError(number, os.strerror(number), path)


class _Node:
    """A file without its name. Pending: (offset, octets) for a write, (size, None) for a cut."""

    __slots__ = ("current", "pending", "synced")

    def __init__(self, content: bytes | bytearray = b"") -> None:
        self.synced = bytearray(content)
        self.current = bytearray(content)
        self.pending: list[tuple[int, bytes | None]] = []

    def write(self, data: bytes, offset: int) -> None:
        _put(self.current, data, offset)
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        _resize(self.current, size)
        self.pending.append((size, None))

    def sync(self) -> None:
        for at, data in self.pending:
            if data is None:
                _resize(self.synced, at)
            else:
                _put(self.synced, data, at)
        self.pending.clear()

    def survivors(self, rng: Random, debris: list[bytes]) -> bytearray:
        """What a power loss may leave of this file."""
        image = bytearray(self.synced)
        if not self.pending:
            return image
        sizes = 1 + sum(1 for _ in self._sizes())
        kept = rng.choice((0, sizes, rng.randrange(sizes + 1)))
        fate = _Fate(rng, len(self.pending), debris)
        changes = iter(self._sizes())
        change = next(changes, None)
        for index, (at, data) in enumerate(self.pending):
            if change is not None and change[0] == index:
                if kept > 0:
                    _resize(image, change[1])
                kept -= 1
                change = next(changes, None)
            if data is not None:
                fate.write(image, data, at, index, len(self.synced))
        return image

    def _sizes(self) -> list[tuple[int, int]]:
        """Which pending operations change the size, and to what."""
        size = len(self.synced)
        found: list[tuple[int, int]] = []
        for index, (at, data) in enumerate(self.pending):
            new = at if data is None else max(size, at + len(data))
            if new != size:
                found.append((index, new))
                size = new
        return found


class _Fate:
    """Which sectors of one file's pending writes survive; extremes are as likely as mixtures."""

    def __init__(self, rng: Random, count: int, debris: list[bytes]) -> None:
        self.rng = rng
        self.debris = debris
        self.limit = count
        self.odds = 1.0
        mood = rng.randrange(5)
        if mood == 0:
            self.odds = 0.0
        elif mood == 1:
            self.limit = rng.randrange(count + 1)
        elif mood > 2:
            self.odds = rng.choice((0.1, 0.5, 0.9))
        self.dirt = rng.choice(("old", "old", "zero", "debris"))

    def write(self, image: bytearray, data: bytes, offset: int, index: int, synced: int) -> None:
        """Put what survives of a write into the image, which keeps its size."""
        rng, at, end = self.rng, offset, min(offset + len(data), len(image))
        while at < end:
            stop = min(end, at - at % SECTOR + SECTOR)
            odds = self.odds if index < self.limit else 0.5 if index == self.limit else 0.0
            if rng.random() < odds:
                image[at:stop] = data[at - offset : stop - offset]
            elif self.dirt == "zero":
                image[at:stop] = bytes(stop - at)
            elif self.dirt == "debris" and at >= synced:
                found = rng.choice(self.debris) if self.debris else b""
                image[at:stop] = (found + rng.randbytes(SECTOR))[: stop - at]
            at = stop


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content += bytes(size - len(content))


def _put(content: bytearray, data: bytes, offset: int) -> None:
    if offset > len(content):
        _resize(content, offset)
    content[offset : offset + len(data)] = data


class _Directory:
    __slots__ = ("current", "synced")

    def __init__(self) -> None:
        self.current: dict[str, _Node | _Directory] = {}
        self.synced: dict[str, _Node | _Directory] = {}


Edit = tuple[_Directory, str, "_Node | _Directory | None", "_Node | _Directory | None"]


def _apply(names: dict[str, Any], name: str, before: Any, after: Any) -> None:
    if after is not None:
        names[name] = after
    elif names.get(name) is before:
        del names[name]


class SimDisk(Files):
    """A directory on the simulated disk.

    Args:
        capacity: how many octets files may have together; 0 for no limit.
        seed: decides what a failed sync leaves.

    Attributes:
        operations: how many operations there were.
        hook: called before every operation with its number, kind and path. It may raise OSError or
            `PowerCut`; for a write it may return how many octets are written at most.
        after: called after every operation that may change what a crash finds.
        handles: the paths of the files that are open.
        together: from how many files and directories on one operation syncs them all.
    """

    together = 3

    def __init__(self, capacity: int = 0, seed: int = 0) -> None:
        self.capacity = capacity
        self.operations = 0
        self.hook: Hook | None = None
        self.after: Callable[[], None] | None = None
        self.handles: dict[int, str] = {}
        self.off = False
        self._rng = Random(seed)
        self._root = _Directory()
        self._pending: list[tuple[Edit, ...]] = []
        self._debris: list[bytes] = []
        self._opened = 0
        self._lags = Lags()

    # --- power ----------------------------------------------------------------------------------

    def crash(self, rng: Random) -> SimDisk:
        """A disk as it may be found after a power loss now; this one stays as it is."""
        found = SimDisk(self.capacity, rng.getrandbits(32))
        directories: dict[int, dict[str, Any]] = {}
        for directory in self._every_directory():
            directories[id(directory)] = dict(directory.synced)
        odds = rng.choice((0.0, 1.0, 0.2, 0.5, 0.8))
        for edits in self._pending:
            if rng.random() < odds:
                for directory, name, before, after in edits:
                    _apply(directories[id(directory)], name, before, after)
        done: dict[int, _Node | _Directory] = {}
        found._root = self._image(self._root, directories, done, rng)
        found._debris = list(self._debris)
        return found

    def cut_power(self) -> None:
        """From now on every operation raises `PowerCut`."""
        self.off = True

    def _every_directory(self) -> list[_Directory]:
        """Every directory that is or was reachable since its names were last synced."""
        found: dict[int, _Directory] = {}
        todo = [self._root, *(edit[0] for edits in self._pending for edit in edits)]
        todo += [e for edits in self._pending for edit in edits for e in edit[2:] if _is(e)]
        while todo:
            directory = todo.pop()
            if id(directory) not in found:
                found[id(directory)] = directory
                inside = (*directory.current.values(), *directory.synced.values())
                todo += [each for each in inside if isinstance(each, _Directory)]
        return list(found.values())

    def _image(
        self,
        directory: _Directory,
        directories: dict[int, dict[str, Any]],
        done: dict[int, _Node | _Directory],
        rng: Random,
    ) -> _Directory:
        image = _Directory()
        for name, node in sorted(directories[id(directory)].items()):
            if id(node) not in done:
                if isinstance(node, _Directory):
                    done[id(node)] = self._image(node, directories, done, rng)
                else:
                    done[id(node)] = _Node(node.survivors(rng, self._debris))
            image.synced[name] = image.current[name] = done[id(node)]
        return image

    # --- what is put off ------------------------------------------------------------------------

    def delay(self, directory: str, lag: int | None) -> None:
        """Syncs in a directory are left to the system, which here never does them, or come at once.

        What was put off is synced when they are to come at once again, as by the real one.
        """
        if not self._lags.put(directory, lag) or self.puts_off(directory):
            return
        names = self.names(directory)
        for name in names:
            self.open(f"{directory}/{name}").sync()
        while directory and names:
            self.sync_directory(directory)
            directory = directory.rpartition("/")[0]
        self.sync_directory("")

    def puts_off(self, path: str) -> bool:
        """Whether a sync is not done now."""
        return self._lags.of(path) != 0

    # --- every operation ------------------------------------------------------------------------

    def step(self, kind: str, path: str) -> int | None:
        """Count an operation that is about to happen, and let the hook have its say."""
        if self.off:
            raise PowerCut
        self.operations += 1
        return None if self.hook is None else self.hook(self.operations, kind, path)

    def did(self) -> None:
        """Something changed."""
        if self.after is not None:
            self.after()

    def _change(self, *edits: Edit) -> None:
        for directory, name, before, after in edits:
            _apply(directory.current, name, before, after)
        self._pending.append(edits)
        self.did()

    def _find(self, path: str) -> tuple[_Directory, str, _Node | _Directory | None]:
        """The directory that a path is in, its name there, and what has that name."""
        *above, name = path.split("/")
        directory = self._root
        for each in above:
            found = directory.current.get(each)
            if not isinstance(found, _Directory):
                raise error(errno.ENOENT, path)
            directory = found
        return directory, name, directory.current.get(name)

    def _directory(self, path: str) -> _Directory:
        if path in ("", "."):
            return self._root
        found = self._find(path)[2]
        if not isinstance(found, _Directory):
            raise error(errno.ENOENT, path)
        return found

    def _throw_away(self, content: bytes | bytearray) -> None:
        """Freed sectors may turn up where a file was growing."""
        for at in range(0, len(content), SECTOR):
            if len(self._debris) < _DEBRIS:
                self._debris.append(bytes(content[at : at + SECTOR]))
            else:
                self._debris[self._rng.randrange(_DEBRIS)] = bytes(content[at : at + SECTOR])

    def room(self, more: int, path: str) -> int:
        """How much of what a file grows by fits; ENOSPC when nothing does."""
        if not self.capacity or more <= 0:
            return more
        left = self.capacity - self.used()
        if left <= 0:
            raise error(errno.ENOSPC, path)
        return min(left, more)

    # --- what the store calls -------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file, or make it."""
        directory, name, node = self._find(path)
        self.step("open" if node is not None or not create else "create", path)
        if isinstance(node, _Directory):
            raise error(errno.EISDIR, path)
        if node is None:
            if not create:
                raise error(errno.ENOENT, path)
            node = _Node()
            self._change((directory, name, None, node))
        self._opened += 1
        self.handles[self._opened] = path
        return SimFile(self, node, path, self._opened)

    def names(self, directory: str) -> list[str]:
        """What is in a directory."""
        self.step("names", directory)
        try:
            return sorted(self._directory(directory).current)
        except FileNotFoundError:
            return []

    def make_directory(self, directory: str) -> None:
        """Make a directory and those above it."""
        parts = directory.split("/")
        for end in range(1, len(parts) + 1):
            path = "/".join(parts[:end])
            parent, name, node = self._find(path)
            if isinstance(node, _Directory):
                continue
            self.step("make_directory", path)
            if node is not None:
                raise error(errno.EEXIST, path)
            self._change((parent, name, None, _Directory()))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        self.step("rename", old)
        source, old_name, node = self._find(old)
        target, new_name, replaced = self._find(new)
        if node is None:
            raise error(errno.ENOENT, old)
        if isinstance(replaced, _Directory):
            raise error(errno.EISDIR, new)
        if isinstance(replaced, _Node):
            self._throw_away(replaced.current)
        self._change((source, old_name, node, None), (target, new_name, replaced, node))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.step("remove", path)
        directory, name, node = self._find(path)
        if not isinstance(node, _Node):
            raise error(errno.ENOENT if node is None else errno.EISDIR, path)
        self._throw_away(node.current)
        self._change((directory, name, node, None))

    def remove_directory(self, directory: str) -> None:
        """Remove an empty directory."""
        self.step("remove_directory", directory)
        parent, name, node = self._find(directory)
        if not isinstance(node, _Directory):
            raise error(errno.ENOENT if node is None else errno.ENOTDIR, directory)
        if node.current:
            raise error(errno.ENOTEMPTY, directory)
        self._change((parent, name, node, None))

    def sync_directory(self, directory: str) -> None:
        """Make the names in a directory durable, or leave it to the system."""
        if self.puts_off(directory):
            return
        try:
            self.step("sync_directory", directory)
        except OSError as failure:
            # A directory has to be opened first; one that could not be is as it was.
            if failure.errno not in (errno.EMFILE, errno.ENFILE):
                self._settle_names(directory, self._rng.choice((0.0, 0.5, 1.0)))
            raise
        self._directory(directory)
        self._settle_names(directory, 1.0)
        self.did()

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Make files and directories durable: many by one operation, none fails alone."""
        mine = [f for f in files if isinstance(f, SimFile) and not self.puts_off(f.path)]
        names = [directory for directory in directories if not self.puts_off(directory)]
        if len(mine) + len(names) < self.together:
            super().sync_all(files, directories)
            return
        try:
            self.step("sync_all", mine[0].path if mine else names[0])
        except OSError:
            for file in mine:
                file.loses()
            for directory in names:
                self._settle_names(directory, self._rng.choice((0.0, 0.5, 1.0)))
            raise
        for file in mine:
            file.settles()
        for directory in names:
            self._settle_names(directory, 1.0)
        self.did()

    def _settle_names(self, path: str, odds: float) -> None:
        """Make changes with new names in a directory due, and earlier ones of the same names."""
        directory = self._directory(path)
        due: set[int] = set()
        names: set[tuple[int, str]] = set()
        for index in range(len(self._pending) - 1, -1, -1):
            edits = self._pending[index]
            keys = {(id(where), name) for where, name, _, _ in edits}
            if edits[-1][0] is directory or keys & names:
                due.add(index)
                names |= keys
        for index in sorted(due):
            if self._rng.random() < odds or odds >= 1.0:
                for where, name, before, after in self._pending[index]:
                    _apply(where.synced, name, before, after)
        self._pending = [e for index, e in enumerate(self._pending) if index not in due]

    def free(self) -> int:
        """Octets that can still be written."""
        self.step("free", "")
        return self.capacity - self.used() if self.capacity else 1 << 50

    def used(self) -> int:
        """Octets in files."""
        nodes = (n for f in self._every_directory() for n in f.current.values())
        return sum(len(node.current) for node in nodes if isinstance(node, _Node))

    # --- what tests do --------------------------------------------------------------------------

    def paths(self, directory: str = "") -> list[str]:
        """Every file below a directory."""
        found: list[str] = []
        for name, node in sorted(self._directory(directory).current.items()):
            path = f"{directory}/{name}" if directory else name
            found += self.paths(path) if isinstance(node, _Directory) else [path]
        return found

    def content(self, path: str) -> bytes:
        """A file as the process reads it."""
        return bytes(self._node(path).current)

    def replace(self, path: str, content: bytes | bytearray) -> None:
        """Damage: a file has another content, on the disk as well."""
        directory, name, node = self._find(path)
        if node is None:
            node = directory.current[name] = directory.synced[name] = _Node()
        assert isinstance(node, _Node)
        node.pending.clear()
        node.current[:] = content
        node.synced[:] = content

    def copy(self) -> SimDisk:
        """A disk with the same files, all of them synced."""
        found = SimDisk(self.capacity)
        for path in self.paths():
            above = path.rpartition("/")[0]
            if above:
                found.make_directory(above)
            found.replace(path, self.content(path))
        found._commit_all()
        return found

    def _commit_all(self) -> None:
        for edits in self._pending:
            for directory, name, before, after in edits:
                _apply(directory.synced, name, before, after)
        self._pending.clear()

    def _node(self, path: str) -> _Node:
        node = self._find(path)[2]
        if not isinstance(node, _Node):
            raise error(errno.ENOENT, path)
        return node


def _is(thing: object) -> TypeGuard[_Directory]:
    return isinstance(thing, _Directory)


class SimFile(File):
    """An open file of a simulated disk."""

    def __init__(self, disk: SimDisk, node: _Node, path: str, handle: int) -> None:
        self._disk = disk
        self._node = node
        self.path = path
        self._handle = handle

    def _step(self, kind: str) -> int | None:
        if self._handle not in self._disk.handles:
            raise error(errno.EBADF, self.path)
        return self._disk.step(kind, self.path)

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write, all of it or less."""
        limit = self._step("write")
        octets = bytes(data if limit is None else data[:limit])
        node = self._node
        growth = max(offset + len(octets) - len(node.current), 0)
        missing = growth - self._disk.room(growth, self.path)
        if missing >= len(octets) > 0:
            raise error(errno.ENOSPC, self.path)
        octets = octets[: len(octets) - missing]
        if octets:
            node.write(octets, offset)
            self._disk.did()
        return len(octets)

    def read_at(self, size: int, offset: int) -> bytes:
        """Read what the process sees."""
        self._step("read")
        if offset < 0:
            raise OSError(errno.EINVAL, f"Invalid argument at byte {offset}")
        return bytes(self._node.current[offset : offset + size])

    def size(self) -> int:
        """The size that the process sees."""
        self._step("size")
        return len(self._node.current)

    def truncate(self, size: int) -> None:
        """Cut it, or let it grow by zeros, which take room on the disk."""
        self._step("truncate")
        node = self._node
        growth = size - len(node.current)
        if growth > 0 and self._disk.room(growth, self.path) < growth:
            raise error(errno.ENOSPC, self.path)
        self._disk._throw_away(node.current[size:])
        node.truncate(size)
        self._disk.did()

    def sync(self) -> None:
        """Make it durable; when that fails what was pending is anybody's guess, for ever."""
        if self._disk.puts_off(self.path):
            return
        try:
            self._step("sync")
        except OSError:
            self.loses()
            raise
        self.settles()
        self._disk.did()

    def settles(self) -> None:
        """What was pending is durable."""
        self._node.sync()

    def loses(self) -> None:
        """A sync failed: what was pending is durable or lost."""
        node = self._node
        node.synced = node.survivors(self._disk._rng, self._disk._debris)
        node.pending.clear()

    def close(self) -> None:
        """Let it go."""
        if self._disk.off:
            raise PowerCut
        if self._disk.handles.pop(self._handle, None) is None:
            raise error(errno.EBADF, self.path)
