"""The staging area of class file (AMQP 0-8): files that arrive in parts before they are published.

A peer stages a file under an identifier, learns how much of it the broker has, sends the rest, and
publishes the file by the identifier. After a broken connection it can resume, and an unpublished
file takes no memory. The user is part of the key: other users cannot see, resume or publish the
file.

    staging/<SHA-256 of vhost, user and identifier>

    offset 0    magic  "HBSTAGE" 1      8 bytes; the last one is the version
    then        chunks, to the end of the file

    crc   CRC-32 of what follows, continued from the chunk before    u32
    size  of the bytes                                               u32
    kind  1 head, 2 body, 3 properties                               u32
    the bytes

The head is the first chunk: the announced size as u64, then vhost, user and identifier, each after
its length as u16. The last chunk of kind 3 has the property list. All numbers are little-endian.

Nothing is synced: the protocol allows a recipient to lose unpublished files. After a crash a file
ends at the first wrong checksum. An unused file is removed after `STAGED_KEEP_SECONDS`, counted
from the start of the process for older files.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import STAGED_CHUNK_BYTES, STAGED_FILES_COUNT, STAGED_KEEP_SECONDS
from harebell.base.ports import Commit, File, Files
from harebell.base.timers import Timers

DIRECTORY = "staging"
_MAGIC = b"HBSTAGE\x01"
_CHUNK = struct.Struct("<III")
_HEAD, _BODY, _PROPERTIES = 1, 2, 3
_MS = 1000

Key = tuple[str, str, str]
"""Vhost, user, identifier."""


class StagedFile:
    """One file of the staging area.

    Args:
        key: vhost, user and identifier.
        size: the announced size of the body.

    Attributes:
        key, size: as given.
        staged: bytes of the body so far.
        properties: the encoded property list; None until it arrives.
        holder: the channel that stages it now, or None.
        waiting: called when the file is complete, or its holder stops before.
        touched: when it was last used, in milliseconds of the monotonic clock.
    """

    def __init__(self, key: Key, size: int) -> None:
        self.key = key
        self.size = size
        self.staged = 0
        self.properties: bytes | None = None
        self.holder: object = None
        self.waiting: list[Callable[[], None]] = []
        self.touched = 0
        self.path = f"{DIRECTORY}/{_name(key)}"
        self.file: File | None = None
        self.end = 0
        self.crc = 0
        self.gathered = bytearray()

    @property
    def whole(self) -> bool:
        """Whether the body is complete."""
        return self.properties is not None and self.staged == self.size


class Staging:
    """The staging area of a broker.

    Args:
        files: the data directory.
        clock: tells how old a file is.
        timers: the timers, for removing old files.
        commit: the group commit; a published file is removed after it.
    """

    def __init__(self, files: Files, clock: Clock, timers: Timers, commit: Commit) -> None:
        self._files = files
        self._clock = clock
        self._timer = timers.timer(self._tend)
        self._commit = commit
        self._entries: dict[Key, StagedFile] = {}
        self._published: list[tuple[int, StagedFile]] = []
        self._made = False
        self._restore()

    def __len__(self) -> int:
        return len(self._entries)

    # --- staging --------------------------------------------------------------------------------

    def open(self, key: Key, size: int, holder: object) -> StagedFile:
        """Start or resume staging a file; a former holder loses it.

        Raises:
            Refusal: RESOURCE_ERROR, there is no room.
        """
        found = self.find(key)
        if found is not None and found.size != size:
            # Another file under the same identifier.
            self.drop(found)
            found = None
        try:
            if found is None:
                found = self._make(key, size)
            elif found.file is None:
                found.file = self._files.open(found.path)
                found.file.truncate(found.end)
        except OSError as error:
            raise self._no_room(key, error) from None
        found.holder = holder
        found.touched = self._clock.steady
        return found

    def describe(self, staged: StagedFile, properties: bytes) -> None:
        """Store the encoded property list of a file that is being staged."""
        if staged.properties != properties:
            self._flush(staged)
            self._append(staged, _PROPERTIES, properties)
            staged.properties = properties

    def write(self, staged: StagedFile, data: bytes) -> None:
        """Append bytes to the body.

        Raises:
            Refusal: RESOURCE_ERROR, there is no room.
        """
        staged.gathered += data
        staged.staged += len(data)
        staged.touched = self._clock.steady
        if len(staged.gathered) >= STAGED_CHUNK_BYTES:
            self._flush(staged)

    def release(self, staged: StagedFile) -> None:
        """Release the file; call the waiting publisher, whether or not the file is complete."""
        with contextlib.suppress(Refusal):
            self._flush(staged)
        staged.holder = None
        staged.touched = self._clock.steady
        if staged.file is not None:
            staged.file.close()
            staged.file = None
        waiting, staged.waiting = staged.waiting, []
        for call in waiting:
            call()

    # --- what is staged -------------------------------------------------------------------------

    def find(self, key: Key) -> StagedFile | None:
        """Return the staged file with this key, complete or not."""
        found = self._entries.get(key)
        # A file from before the start is read on first use.
        if found is not None and found.end == 0 and not self._read(found):
            self.drop(found)
            return None
        return found

    def body(self, staged: StagedFile) -> bytes | None:
        """Return the body of a complete file; None if the disk has lost a part of it."""
        pieces: list[bytes] = []
        try:
            self._flush(staged)
            for kind, data in self._chunks(staged):
                if kind == _BODY:
                    pieces.append(data)
        except (OSError, Refusal):
            return None
        body = b"".join(pieces)
        return body if len(body) == staged.size else None

    def published(self, staged: StagedFile) -> None:
        """Remove a published file as soon as the gathering commit is on disk."""
        if self._entries.get(staged.key) is staged:
            del self._entries[staged.key]
        self._published.append((self._commit.ticket, staged))
        self._timer.set_earlier(self._clock.steady + _MS)

    def drop(self, staged: StagedFile) -> None:
        """Remove a file."""
        if self._entries.get(staged.key) is staged:
            del self._entries[staged.key]
        if staged.file is not None:
            staged.file.close()
            staged.file = None
        # What a full or failing disk keeps is found at the next start and removed then.
        with contextlib.suppress(OSError):
            self._files.remove(staged.path)

    def vhost_gone(self, name: str) -> None:
        """Remove the files of a deleted vhost."""
        for staged in [each for each in self._entries.values() if each.key[0] == name]:
            self.drop(staged)

    # --- inside ---------------------------------------------------------------------------------

    def _make(self, key: Key, size: int) -> StagedFile:
        if len(self._entries) >= STAGED_FILES_COUNT:
            raise Refusal(
                ErrorKind.RESOURCE_ERROR,
                f"cannot stage '{key[2]}': {STAGED_FILES_COUNT} files are staged and not published",
            )
        if size > self._files.free():
            raise Refusal(
                ErrorKind.RESOURCE_ERROR,
                f"cannot stage '{key[2]}': it has {size} bytes, {self._files.free()} are free",
            )
        if not self._made:
            self._files.make_directory(DIRECTORY)
            self._made = True
        staged = StagedFile(key, size)
        # A published file with this key may wait for its removal: that is over now.
        self._published = [each for each in self._published if each[1].key != key]
        staged.file = self._files.open(staged.path, create=True)
        staged.file.truncate(0)
        _write(staged.file, _MAGIC, 0)
        staged.end = len(_MAGIC)
        names = b"".join(len(name.encode()).to_bytes(2, "little") + name.encode() for name in key)
        self._append(staged, _HEAD, size.to_bytes(8, "little") + names)
        self._entries[key] = staged
        self._timer.set_earlier(self._clock.steady + STAGED_KEEP_SECONDS * _MS)
        return staged

    def _append(self, staged: StagedFile, kind: int, data: bytes) -> None:
        assert staged.file is not None, "who writes holds it open"
        rest = _CHUNK.pack(0, len(data), kind)[4:] + data
        crc = zlib.crc32(rest, staged.crc)
        chunk = crc.to_bytes(4, "little") + rest
        try:
            _write(staged.file, chunk, staged.end)
        except OSError as error:
            raise self._no_room(staged.key, error) from None
        staged.end += len(chunk)
        staged.crc = crc

    def _flush(self, staged: StagedFile) -> None:
        if staged.gathered:
            data = bytes(staged.gathered)
            try:
                self._append(staged, _BODY, data)
            except Refusal:
                staged.staged -= len(data)
                raise
            finally:
                staged.gathered.clear()

    def _no_room(self, key: Key, error: OSError) -> Refusal:
        return Refusal(ErrorKind.RESOURCE_ERROR, f"cannot stage '{key[2]}': {error.strerror}")

    def _chunks(self, staged: StagedFile) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks of a file up to the first wrong checksum; set `end` and `crc`."""
        file = staged.file or self._files.open(staged.path)
        try:
            size = file.size()
            if file.read_at(len(_MAGIC), 0) != _MAGIC:
                return
            at, crc = len(_MAGIC), 0
            while at + _CHUNK.size <= size:
                front = file.read_at(_CHUNK.size, at)
                wanted, length, kind = _CHUNK.unpack(front)
                if at + _CHUNK.size + length > size:
                    return
                data = file.read_at(length, at + _CHUNK.size)
                crc = zlib.crc32(data, zlib.crc32(front[4:], crc))
                if crc != wanted:
                    return
                at += _CHUNK.size + length
                staged.end, staged.crc = at, crc
                yield kind, data
        finally:
            if staged.file is None:
                file.close()

    def _read(self, staged: StagedFile) -> bool:
        """Read the state of a file; False if it is not a staged file."""
        good = False
        try:
            for kind, data in self._chunks(staged):
                if kind == _HEAD:
                    good = _read_head(data) == (staged.key, staged.size)
                elif kind == _BODY:
                    staged.staged += len(data)
                elif kind == _PROPERTIES:
                    staged.properties = data
        except OSError:
            return False
        return good and staged.staged <= staged.size

    def _restore(self) -> None:
        """Find the files from before the start; only heads are read."""
        for name in self._files.names(DIRECTORY):
            self._made = True
            path = f"{DIRECTORY}/{name}"
            try:
                file = self._files.open(path)
            except OSError:
                continue
            try:
                found = _read_first(file)
            except OSError:
                found = None
            finally:
                file.close()
            if found is None or f"{DIRECTORY}/{_name(found[0])}" != path:
                with contextlib.suppress(OSError):
                    self._files.remove(path)
                continue
            staged = self._entries[found[0]] = StagedFile(*found)
            staged.touched = self._clock.steady
        if self._entries:
            self._timer.set_earlier(self._clock.steady + STAGED_KEEP_SECONDS * _MS)

    def _tend(self) -> None:
        """Remove published files and old ones."""
        done, now = self._commit.done, self._clock.steady
        waiting = []
        for ticket, staged in self._published:
            if ticket <= done:
                self.drop(staged)
            else:
                waiting.append((ticket, staged))
        self._published = waiting
        for staged in list(self._entries.values()):
            if staged.holder is None and now - staged.touched >= STAGED_KEEP_SECONDS * _MS:
                self.drop(staged)
        if waiting:
            self._timer.set_earlier(now + _MS)
        if self._entries:
            oldest = min(staged.touched for staged in self._entries.values())
            due = max(oldest + STAGED_KEEP_SECONDS * _MS, now + _MS)
            self._timer.set_earlier(due)


def _name(key: Key) -> str:
    """Return the file name, a hash: identifiers of users are not used as names."""
    parts = b"".join(len(text.encode()).to_bytes(2, "little") + text.encode() for text in key)
    return hashlib.sha256(parts).hexdigest()


def _write(file: File, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = file.write_at(view, offset)
        offset += done
        view = view[done:]


def _read_first(file: File) -> tuple[Key, int] | None:
    """Return key and size from the head of a file; None if it has no valid head."""
    if file.read_at(len(_MAGIC), 0) != _MAGIC:
        return None
    front = file.read_at(_CHUNK.size, len(_MAGIC))
    if len(front) < _CHUNK.size:
        return None
    wanted, length, kind = _CHUNK.unpack(front)
    if kind != _HEAD or length > file.size():
        return None
    data = file.read_at(length, len(_MAGIC) + _CHUNK.size)
    if zlib.crc32(front[4:] + data) != wanted:
        return None
    return _read_head(data)


def _read_head(data: bytes) -> tuple[Key, int]:
    """Return key and size of a head with a right checksum."""
    size = int.from_bytes(data[:8], "little")
    names = []
    at = 8
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "little")
        names.append(data[at + 2 : end].decode())
        at = end
    vhost, user, identifier = names
    return (vhost, user, identifier), size
