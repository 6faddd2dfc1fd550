"""Ports: interfaces that one layer defines and another implements.

The model appends to a `Log`, keeps positions, and stores declarations in `Definitions`; the store
implements both. The store uses the disk through `Files` only, so that tests can replace it with a
simulated disk that loses what was not synced.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from harebell.base.c_types import C, Done, i32, i64, isize
from harebell.base.durability import FSYNC, Durability
from harebell.base.limits import STREAM_SEGMENT_BYTES
from harebell.base.message import Message

EXCHANGE_LOG = "\0log"
"""Argument in the definition of an exchange: the identity of its log."""

BRANCH_LOG = "0" * 32
"""The identity of the log of prepared transactions."""


PUBLISHER_LOG = "1" * 32
"""The identity of the log of named publishers."""

JOB_LOG = "2" * 32
"""The identity of the log of jobs."""


class Log:
    """The records of one queue, by position. Positions grow by one and are never reused.

    Numbers are methods, as stores count in different ways.

    Attributes:
        has_large: whether a record may be spilled (`is_spilled`).
    """

    def __init__(self) -> None:
        self.has_large = False

    def is_spilled(self, position: i64) -> C[bool]:
        """True if a record is on disk, and `read` would block the event loop: it is large, say."""
        return False

    def load_spilled(self, position: int, done: Callable[[], object]) -> None:
        """Load a spilled record in slices; it is no longer spilled when `done` is called."""
        done()

    def append(self, message: Message) -> i64:
        """Append a record; return its position.

        The log may keep the object itself and return it later, so it must not be changed any more.
        """
        raise NotImplementedError

    def append_rows(self, rows: Any, first: isize, end: isize, like: Message) -> i64:
        """Append records of rows that differ in their bodies only; return their first position.

        Args:
            rows: a loaded `Rows` (`harebell.kernels.rows`).
            first: the first row; if its body is large, it is the only one.
            end: the row behind the last.
            like: the message of the first row.
        """
        position = self.append(like)
        for row in range(first + 1, end):
            self.append(rows.message(row))
        return position

    def read(self, position: i64) -> C[Message | None]:
        """Return the record at a position; None if it is settled or damaged.

        The store reports damaged records and never returns them.
        """
        raise NotImplementedError

    def settle(self, position: i64) -> Done:
        """Settle a record: it is not needed any more. Settling twice is harmless."""
        raise NotImplementedError

    def settle_range(self, first: i64, end: i64) -> Done:
        """Settle every record from `first` up to, not including, `end`."""
        raise NotImplementedError

    def next(self, position: i64) -> i64:
        """Return the smallest unsettled position from `position` on; `end()` if there is none."""
        raise NotImplementedError

    def first(self) -> i64:
        """Return the smallest unsettled position; `end()` if there is none."""
        raise NotImplementedError

    def end(self) -> i64:
        """Return the position that the next record gets."""
        raise NotImplementedError

    def live(self) -> i64:
        """Return how many records are not settled."""
        raise NotImplementedError

    def reach(
        self, position: i64, end: i64, messages: i64, byte_count: i64
    ) -> C[tuple[int, int, int]]:
        """Return how far that many unsettled records reach, or that many bytes.

        Args:
            position: the first position.
            end: the position to stop at.
            messages: how many at most.
            byte_count: most bytes; -1 for no limit.

        Returns:
            The position behind the last of these records, their number, and their size.
        """
        raise NotImplementedError

    def live_in(self, first: i64, end: i64) -> i64:
        """Return how many records from `first` up to, not including, `end` are not settled."""
        return self.reach(first, end, max(end - first, 0), -1)[1]

    def byte_count(self) -> i64:
        """Return the size of the log in bytes, settled records of its segments included."""
        raise NotImplementedError

    def see(self, position: i64) -> Done:
        """Note that records below `position` may have been delivered; kept over a restart."""
        raise NotImplementedError

    def seen(self) -> i64:
        """Return the position below which records may have been delivered before the start."""
        raise NotImplementedError

    def count(self, position: i64) -> i32:
        """Return the delivery count of a record, as set by `set_count`; 0 at first."""
        raise NotImplementedError

    def counted(self) -> C[list[int]]:
        """Return the positions with a count, in order."""
        raise NotImplementedError

    def set_count(self, position: i64, count: i32) -> Done:
        """Set the delivery count of a record; kept over a restart."""
        raise NotImplementedError

    def time_of(self, position: i64) -> i64:
        """Return when a record was appended, in milliseconds since 1970; 0 if it cannot be read."""
        raise NotImplementedError

    def at_time(self, moment: i64) -> i64:
        """Return the first position appended at `moment` (milliseconds since 1970) or later."""
        raise NotImplementedError

    def append_to(self, position: i64, end: i64, into: Any) -> i64:
        """Make rows of records until the builder is full.

        Args:
            position: the first position.
            end: the position behind the last.
            into: a `BatchBuilder` (`harebell.kernels.batches`).

        Returns:
            The position to continue from; `end` when nothing is left before it.
        """
        last = min(end, self.end())
        while position < last and not into.full:
            position = self.next(position)
            if position >= last:
                break
            into.count = self.count(position)
            message = self.read(position)
            if message is not None:
                into.message(message, position)
            elif not into.damaged(position):
                return position
            position += 1
        return end if position >= last else position

    def retain(self, byte_count: i64, moment: i64, below: i64 = -1) -> i64:
        """Remove old segments, never the one that is written to; return `first()`.

        Args:
            byte_count: remove while the log is larger than this; 0 for no limit.
            moment: remove while the newest record of the oldest segment is older; 0 for no limit.
            below: remove only segments whose records are below this position; -1 for all.
        """
        raise NotImplementedError

    def cut_at(self, byte_count: i64) -> Done:
        """Start a new segment from this size on."""
        raise NotImplementedError

    def sync_soon(self) -> Done:
        """Make the settlements so far part of the next commit, not of a later one."""
        raise NotImplementedError

    def delete(self) -> Done:
        """Remove all records: the queue was deleted."""
        raise NotImplementedError


class Commit:
    """Group commit: all changes since the last one are written and synced together.

    Attributes:
        ticket: number of the commit that gathers now. Changes made now are on disk when `done` has
            reached this number.
        done: number of the last commit that is on disk.
        urgent: whether a reply or confirm waits for the commit that gathers now.
        records: how many messages in it have waiting confirms.
        joint: whether a crash must keep all of it or nothing.
        unsynced: whether it may leave rows of a staged batch unsynced, if it has nothing else: a
            later commit syncs them, before the batch is committed.
        staging: number of the batch whose rows are being appended; 0 for none. The records have it
            in their logs, and a log that gets its first one adds itself to `staged`.
        staged: identities of these logs, and the positions of their first rows.
        closing: called before the gathering commit is closed, to add to it.
        pinned: whether work of several turns must be in it as a whole, so it is not closed.
    """

    def __init__(self) -> None:
        self.ticket: i64 = 1
        self.done: i64 = 0
        self.records: i64 = 0
        self.urgent = False
        self.joint = False
        self.unsynced = False
        self.staging: i64 = 0
        self.staged: list[tuple[str, int]] = []
        self.closing: list[Callable[[], None]] = []
        self.pinned = False
        self._pinned_at: i64 = 0

    def pin(self) -> bool:
        """Keep the gathering commit open over several turns, until `unpin`.

        Returns:
            False while another caller has pinned it, and until the commits that waited for that are
            written: repeated pins must not starve other commits.
        """
        if self.pinned:
            return False
        if self._pinned_at == self.ticket and self.has_changes:
            self.urgent = True
            return False
        self.pinned = True
        self._pinned_at = self.ticket
        return True

    def unpin(self) -> None:
        """Allow the commit to be closed."""
        self.pinned = False

    @property
    def has_changes(self) -> bool:
        """Return whether there are changes for the gathering commit."""
        return self.urgent


class Definitions:
    """Stored declarations: vhosts, exchanges, queues, bindings, users.

    A definition is a kind ("queue"), a key (vhost, name) and its fields. Changes are gathered and
    become part of the next commit, in order.
    """

    __slots__ = ()

    @property
    def gathered(self) -> bool:
        """Whether there are changes for the next commit."""
        raise NotImplementedError

    def check(self, resource: str, table: Mapping[str, Any]) -> int:
        """Return the size of a table of arguments, or refuse one that cannot be stored.

        Args:
            resource: what has the arguments, for the error.
            table: the arguments.

        Raises:
            Refusal: PRECONDITION_FAILED, with the reason.
        """
        raise NotImplementedError

    def whole(self) -> AbstractContextManager[None]:
        """Return a block whose changes are all gathered, or none of them if it raises."""
        raise NotImplementedError

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition.

        Raises:
            Refusal: PRECONDITION_FAILED, a value cannot be stored; nothing was changed.
        """
        raise NotImplementedError

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition; a missing one is no error."""
        raise NotImplementedError

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Return all committed definitions of a kind, in the order of creation."""
        raise NotImplementedError

    def take(self) -> list[Any]:
        """Return the changes since the last call, for a commit."""
        raise NotImplementedError

    def be_durable(self) -> None:
        """Make every write wait for the sync from now on."""

    def write(self, changes: list[Any]) -> None:
        """Write changes, all or none; called in the sync thread.

        Raises:
            OSError: with ENOSPC if the disk is full.
        """
        raise NotImplementedError


def log_identities(definitions: Definitions) -> list[str]:
    """Return the identities of all logs that are in use."""
    log_identities = [fields["identity"] for _, fields in definitions.load("queue")]
    for _, fields in definitions.load("exchange"):
        identity = fields["arguments"].get(EXCHANGE_LOG)
        if isinstance(identity, str):
            log_identities.append(identity)
    return log_identities


class Store:
    """Opens logs, and has the parts that they share.

    Attributes:
        files: the data directory, for files that are neither logs nor definitions.
        commit: the group commit of all logs and definitions.
        definitions: the stored declarations.
        stream_segment_bytes: the size of a stream's segment, unless the stream has its own.
        durability: the durability of logs without one of their own.
    """

    __slots__ = ("commit", "definitions", "files")

    stream_segment_bytes: int = STREAM_SEGMENT_BYTES
    durability: Durability = Durability(FSYNC)

    commit: Commit
    definitions: Definitions
    files: Files

    def new_identity(self) -> str:
        """Return a new, unique identity for a log: 32 hexadecimal digits."""
        raise NotImplementedError

    def new_era(self) -> str:
        """Return a new, unique name of an era: 16 hexadecimal digits."""
        raise NotImplementedError

    def set_durability(self, identity: str, durability: Durability | None) -> None:
        """Set the durability of the logs of an identity; None for the default.

        A store without a disk does nothing.
        """

    def take_back(self, identity: str, position: int) -> None:
        """Remove, at the start, the rows of an uncommitted batch from a position on.

        Called before the log is opened.
        """

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_bytes: int = 0
    ) -> Log:
        """Open the log of an identity: with its records if it is durable, empty if it is new.

        Args:
            identity: the result of `new_identity`, with a suffix such as "-3" for one of several.
            durable: whether persistent messages survive a restart.
            keep_all: whether all messages of a durable log do.
            segment_bytes: the size of a segment; 0 for the store's default.
        """
        raise NotImplementedError


class File:
    """An open file. Every method may raise OSError."""

    __slots__ = ()

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write bytes at an offset; return how many, which may be fewer than given."""
        raise NotImplementedError

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` bytes from an offset; fewer only at the end of the file."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the size in bytes."""
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        """Truncate or extend the file to a size."""
        raise NotImplementedError

    def sync(self) -> None:
        """Sync the file (fdatasync)."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file without a sync."""
        raise NotImplementedError


def write_all(file: File, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes at an offset, in as many calls as necessary.

    Raises:
        OSError: the disk refuses; ENOSPC also when nothing at all could be written.
    """
    rest = memoryview(data)
    while rest:
        done = file.write_at(rest, offset)
        # Would loop forever: nothing was written, and there is no error.
        if done <= 0:
            raise OSError(errno.ENOSPC, "nothing could be written")
        rest = rest[done:]
        offset += done


class Files:
    """A directory tree. Paths are relative to it, with "/" between names.

    Every method may raise OSError.
    """

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; a missing one is created only with `create`."""
        raise NotImplementedError

    def names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; none if it does not exist."""
        raise NotImplementedError

    def make_directory(self, directory: str) -> None:
        """Create a directory and its parents; an existing one is no error."""
        raise NotImplementedError

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace a file of the new name."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """Remove a file."""
        raise NotImplementedError

    def remove_directory(self, directory: str) -> None:
        """Remove an empty directory."""
        raise NotImplementedError

    def sync_directory(self, directory: str) -> None:
        """Sync the names in a directory (fsync)."""
        raise NotImplementedError

    def delay(self, directory: str, lag: int | None) -> None:
        """Allow syncs in a directory to be delayed; see `harebell.base.lags`. Default: never."""

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        """Sync files, then directories; with one call if that is faster."""
        for file in files:
            file.sync()
        for directory in directories:
            self.sync_directory(directory)

    def descriptors(self, files: Sequence[File]) -> list[tuple[int, str]]:
        """Return descriptors and paths of files, if each is to be synced now and by itself.

        Otherwise return an empty list.
        """
        return []

    def system_path(self, path: str) -> str | None:
        """Return the path of a file for open(2); None if only `open` of this class may open it."""
        return None

    def adopt(self, descriptor: int, path: str) -> File:
        """Return the open file of a descriptor that the caller has opened at `system_path`."""
        raise NotImplementedError

    def free(self) -> int:
        """Return the bytes that can still be written."""
        raise NotImplementedError
