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
from harebell.base.ports import Commit, File, Files, write_all
from harebell.base.share import Shares
from harebell.base.timers import Timers
from harebell.model.limits import (
    STAGE_USER_SHARE,
    STAGED_CHUNK_BYTES,
    STAGED_FILES_COUNT,
    STAGED_KEEP_SECONDS,
)

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

    Attributes:
        floor: bytes of the disk that stay free: `disk_free_limit`.
    """

    def __init__(self, files: Files, clock: Clock, timers: Timers, commit: Commit) -> None:
        self.floor = 0
        self._files = files
        self._clock = clock
        self._timer = timers.timer(self._tend)
        self._commit = commit
        self._shares = Shares(
            "staged files", STAGED_FILES_COUNT, "publish some: unused ones are dropped after a day"
        )
        self._sizes = Shares("bytes of staged files", 0, "publish some")
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
        staged = self.find(key)
        if staged is not None and staged.size != size:
            # Another file under the same identifier.
            self.drop(staged)
            staged = None
        try:
            if staged is None:
                staged = self._make(key, size)
            elif staged.file is None:
                staged.file = self._files.open(staged.path)
                # A process that was killed may have left bytes behind the last good chunk.
                staged.file.truncate(staged.end)
        except OSError as error:
            raise self._no_room(key, error) from None
        staged.holder = holder
        staged.touched = self._clock.steady
        return staged

    def describe(self, staged: StagedFile, properties: bytes) -> None:
        """Store the encoded property list of a file that is being staged."""
        if staged.properties != properties:
            # In the order of arrival, as the checksum of each chunk continues that of the one
            # before.
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
        # What could not be written is not counted as staged: the next holder sends it again.
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
        entry = self._entries.get(key)
        # A file from before the start is read on first use.
        if entry is not None and entry.end == 0 and not self._read(entry):
            self.drop(entry)
            return None
        return entry

    def body(self, staged: StagedFile) -> bytes | None:
        """Return the body of a complete file; None if bytes are missing on the disk."""
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
        # It cannot be published again from here on. The file is removed after the commit: a crash
        # before that keeps it, and the peer publishes it once more.
        self._take_out(staged)
        self._published.append((self._commit.ticket, staged))
        self._timer.set_earlier(self._clock.steady + _MS)

    def drop(self, staged: StagedFile) -> None:
        """Remove a file."""
        self._take_out(staged)
        if staged.file is not None:
            staged.file.close()
            staged.file = None
        # Files that a full or failing disk does not delete are deleted at the next start.
        with contextlib.suppress(OSError):
            self._files.remove(staged.path)

    def vhost_gone(self, name: str) -> None:
        """Remove the files of a deleted vhost."""
        for staged in [each for each in self._entries.values() if each.key[0] == name]:
            self.drop(staged)

    # --- inside ---------------------------------------------------------------------------------

    def _make(self, key: Key, size: int) -> StagedFile:
        self._shares.check(key[1], cannot=f"cannot stage '{key[2]}'", kind=ErrorKind.RESOURCE_ERROR)
        free = self._files.free() - self.floor
        if size > free:
            raise Refusal(
                ErrorKind.RESOURCE_ERROR,
                f"cannot stage '{key[2]}': it has {size} bytes, {max(free, 0)} are free above "
                f"disk_free_limit ({self.floor})",
            )
        held, limit = self._sizes.of(key[1]), int(free * STAGE_USER_SHARE)
        if held + size > limit:
            raise Refusal(
                ErrorKind.RESOURCE_ERROR,
                f"cannot stage '{key[2]}': it has {size} bytes, {held} of user '{key[1]}' are "
                f"staged, and one user may stage {limit}: publish some",
            )
        if not self._made:
            self._files.make_directory(DIRECTORY)
            self._made = True
        staged = StagedFile(key, size)
        # A published file with this key may wait for its removal: that is over now.
        self._published = [each for each in self._published if each[1].key != key]
        staged.file = self._files.open(staged.path, create=True)
        try:
            # The published file, or one whose removal failed, may be at this path.
            staged.file.truncate(0)
            write_all(staged.file, _MAGIC, 0)
            staged.end = len(_MAGIC)
            names = b"".join(len(n.encode()).to_bytes(2, "little") + n.encode() for n in key)
            self._append(staged, _HEAD, size.to_bytes(8, "little") + names)
        except (OSError, Refusal):
            self.drop(staged)
            raise
        self._add(staged)
        self._timer.set_earlier(self._clock.steady + STAGED_KEEP_SECONDS * _MS)
        return staged

    def _add(self, staged: StagedFile) -> None:
        self._entries[staged.key] = staged
        self._shares.add(staged.key[1])
        self._sizes.add(staged.key[1], staged.size)

    def _take_out(self, staged: StagedFile) -> None:
        if self._entries.get(staged.key) is staged:
            del self._entries[staged.key]
            self._shares.remove(staged.key[1])
            self._sizes.remove(staged.key[1], staged.size)

    def _append(self, staged: StagedFile, kind: int, data: bytes) -> None:
        assert staged.file is not None, "who writes holds it open"
        rest = _CHUNK.pack(0, len(data), kind)[4:] + data
        crc = zlib.crc32(rest, staged.crc)
        chunk = crc.to_bytes(4, "little") + rest
        try:
            write_all(staged.file, chunk, staged.end)
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
                # The peer learns how much is here and sends the rest once more.
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
            offset, crc = len(_MAGIC), 0
            while offset + _CHUNK.size <= size:
                head = file.read_at(_CHUNK.size, offset)
                check, length, kind = _CHUNK.unpack(head)
                if offset + _CHUNK.size + length > size:
                    return
                data = file.read_at(length, offset + _CHUNK.size)
                # Continued from the chunk before, so a chunk counts in its place only.
                crc = zlib.crc32(data, zlib.crc32(head[4:], crc))
                if crc != check:
                    return
                offset += _CHUNK.size + length
                staged.end, staged.crc = offset, crc
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
                first = _read_first(file)
            except OSError:
                first = None
            finally:
                file.close()
            # The path is the hash of the key in the head: another one means damage.
            if first is None or f"{DIRECTORY}/{_name(first[0])}" != path:
                with contextlib.suppress(OSError):
                    self._files.remove(path)
                continue
            staged = StagedFile(*first)
            self._add(staged)
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


def _read_first(file: File) -> tuple[Key, int] | None:
    """Return key and size from the head of a file; None if it has no valid head."""
    if file.read_at(len(_MAGIC), 0) != _MAGIC:
        return None
    head = file.read_at(_CHUNK.size, len(_MAGIC))
    if len(head) < _CHUNK.size:
        return None
    check, length, kind = _CHUNK.unpack(head)
    if kind != _HEAD or length > file.size():
        return None
    data = file.read_at(length, len(_MAGIC) + _CHUNK.size)
    if zlib.crc32(head[4:] + data) != check:
        return None
    return _read_head(data)


def _read_head(data: bytes) -> tuple[Key, int]:
    """Return key and size of a head with a right checksum."""
    size = int.from_bytes(data[:8], "little")
    names = []
    offset = 8
    while offset < len(data):
        end = offset + 2 + int.from_bytes(data[offset : offset + 2], "little")
        names.append(data[offset + 2 : end].decode())
        offset = end
    vhost, user, identifier = names
    return (vhost, user, identifier), size
