"""Interfaces that one layer defines and another fills.

The model appends to a `Log`, keeps positions, and writes down what it declared in `Definitions`;
where that lives is the store's business. The store reaches the disk through `Files` only, so that
a simulated disk can stand in its place and lose what was not synced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harebell.base.durability import FSYNC, Durability
from harebell.base.limits import STREAM_SEGMENT_BYTES
from harebell.base.message import Message

EXCHANGE_LOG = "\0log"
"""Among the arguments of an exchange's definition: the identity of the log that it keeps."""

BRANCH_LOG = "0" * 32
"""The identity of the log of prepared transactions, which is no queue's."""


PUBLISHER_LOG = "1" * 32
"""The identity of the log of what publishers have published."""


class Log:
    """The records of one queue, by position. Positions grow by one and are never reused.

    Attributes are methods here because stores count in different ways.

    Attributes:
        has_large: whether a record may be `far`.
    """

    __slots__ = ("has_large",)

    def __init__(self) -> None:
        self.has_large = False

    def far(self, position: int) -> bool:
        """Whether a record is so large, and on disk, that `read` would keep others waiting."""
        return False

    def fetch(self, position: int, done: Callable[[], object]) -> None:
        """Read such a record in slices; it is far no longer when `done` is called."""
        done()

    def append(self, message: Message) -> int:
        """Add a record at the end; returns its position.

        The log may keep the object itself and give it out again: it is never changed from now on.
        """
        raise NotImplementedError

    def read(self, position: int) -> Message | None:
        """The record at a position; None when it was settled, or when it is damaged.

        What is damaged was reported by the store; it is never given out.
        """
        raise NotImplementedError

    def settle(self, position: int) -> int:
        """The record will not be needed again. Settling twice is harmless."""
        raise NotImplementedError

    def settle_range(self, first: int, end: int) -> int:
        """Settle every record from `first` up to, not including, `end`."""
        raise NotImplementedError

    def next(self, position: int) -> int:
        """The smallest position from `position` on that is not settled; `end()` without one."""
        raise NotImplementedError

    def first(self) -> int:
        """The smallest position that is not settled; `end()` when there is none."""
        raise NotImplementedError

    def end(self) -> int:
        """The position that the next record will get."""
        raise NotImplementedError

    def live(self) -> int:
        """How many records are not settled."""
        raise NotImplementedError

    def reach(self, position: int, end: int, messages: int, octets: int) -> tuple[int, int, int]:
        """How far so many records that are not settled go, or so many octets.

        Args:
            position: where to begin.
            end: the position to stop at.
            messages: how many at most.
            octets: stop before more than these; -1 for any number.

        Returns:
            The position behind the last record that counts, how many do, and their octets.
        """
        raise NotImplementedError

    def octets(self) -> int:
        """Octets that the log takes, settled records in the same segments included."""
        raise NotImplementedError

    def see(self, position: int) -> int:
        """Everything below `position` has been handed out; a restart will know that."""
        raise NotImplementedError

    def seen(self) -> int:
        """When opened: every record below this position may have been handed out before."""
        raise NotImplementedError

    def count(self, position: int) -> int:
        """How many deliveries of a record have failed, as set by `set_count`; 0 at first."""
        raise NotImplementedError

    def counted(self) -> list[int]:
        """The positions that `set_count` has been called for, in order."""
        raise NotImplementedError

    def set_count(self, position: int, count: int) -> int:
        """Remember how many deliveries of a record have failed, over a restart too."""
        raise NotImplementedError

    def time_of(self, position: int) -> int:
        """When a record was appended, in milliseconds since 1970; 0 when it cannot be read."""
        raise NotImplementedError

    def at_time(self, moment: int) -> int:
        """The first position appended at `moment` (milliseconds since 1970) or later."""
        raise NotImplementedError

    def pour(self, position: int, end: int, into: Any) -> int:
        """Make rows of records until there are enough.

        Args:
            position: the first position.
            end: the position behind the last.
            into: a `BatchBuilder` (`harebell.kernels.batches`).

        Returns:
            The position to go on from; `end` when nothing is left before it.
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

    def retain(self, octets: int, moment: int) -> int:
        """Let whole old segments go, never the one that is written to; returns `first()`.

        Args:
            octets: go on while the log takes more than this; 0 for no limit.
            moment: and while the newest record of the oldest segment is older; 0 for no limit.
        """
        raise NotImplementedError

    def cut_at(self, octets: int) -> int:
        """Go on in a new segment from this size on."""
        raise NotImplementedError

    def sync_soon(self) -> int:
        """What was settled so far shall be part of the next commit, not of a later one."""
        raise NotImplementedError

    def delete(self) -> int:
        """The queue is gone: let every record go."""
        raise NotImplementedError


class Commit:
    """Group commit: what changed since the last one reaches the disk together.

    Attributes:
        ticket: number of the commit that gathers now. Whatever changes now is on disk when `done`
            has reached this number.
        done: number of the last commit that is on disk.
        urgent: a reply or confirm waits for the commit that gathers now.
        records: how many messages are in it whose confirms wait.
        joint: a crash must keep all of it or nothing.
        staging: number of the batch whose rows are being appended; 0 for none. Its records say so
            in their logs, and a log that gets its first one adds itself to `staged`.
        staged: identities of these logs, and the position from which on there are such rows.
        closing: called when the commit that gathers is about to be closed, to add to it.
        pinned: something that takes several turns has to be in it as a whole, so it is not closed.
    """

    __slots__ = (
        "_pinned_at",
        "closing",
        "done",
        "joint",
        "pinned",
        "records",
        "staged",
        "staging",
        "ticket",
        "urgent",
    )

    def __init__(self) -> None:
        self.ticket = 1
        self.done = 0
        self.records = 0
        self.urgent = False
        self.joint = False
        self.staging = 0
        self.staged: list[tuple[str, int]] = []
        self.closing: list[Callable[[], None]] = []
        self.pinned = False
        self._pinned_at = 0

    def pin(self) -> bool:
        """Keep the commit that gathers open over several turns, until `unpin`.

        Returns:
            False while something else does, and until what has waited for that is on its way: who
            asks again and again must not keep all others from the disk.
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
        """It may be closed."""
        self.pinned = False

    @property
    def has_changes(self) -> bool:
        """Whether there is something for the commit that gathers."""
        return self.urgent


class Definitions:
    """What is declared and outlives the process: vhosts, exchanges, queues, bindings, users.

    A definition is a kind ("queue"), a key (vhost, name) and its fields. Changes gather and are
    part of the next commit, in their order.
    """

    __slots__ = ()

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add a definition, or replace it."""
        raise NotImplementedError

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition; a missing one is fine."""
        raise NotImplementedError

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Every definition of a kind as it was last committed, in the order of their making."""
        raise NotImplementedError

    def take(self) -> list[Any]:
        """The changes since the last time, for a batch."""
        raise NotImplementedError

    def be_durable(self) -> None:
        """From now on a write returns when the disk has it, if that was not so before."""

    def write(self, changes: list[Any]) -> None:
        """Make changes durable, all or none; called by the thread that performs the batch.

        Raises:
            OSError: with ENOSPC when the disk is full.
        """
        raise NotImplementedError


def log_identities(definitions: Definitions) -> list[str]:
    """The identity of every log that belongs to something."""
    found = [fields["identity"] for _, fields in definitions.load("queue")]
    for _, fields in definitions.load("exchange"):
        identity = fields["arguments"].get(EXCHANGE_LOG)
        if isinstance(identity, str):
            found.append(identity)
    return found


class Store:
    """Opens logs, and holds what they share.

    Attributes:
        files: the data directory, for what is neither a log nor a definition.
        commit: the group commit of all logs and definitions.
        definitions: what is declared.
        stream_segment_octets: the size of a stream's segment, unless the stream has its own.
        durability: of logs that have none of their own.
    """

    __slots__ = ("commit", "definitions", "files")

    stream_segment_octets: int = STREAM_SEGMENT_BYTES
    durability: Durability = Durability(FSYNC)

    commit: Commit
    definitions: Definitions
    files: Files

    def new_identity(self) -> str:
        """A name for a new log that no log ever had: 32 hexadecimal digits."""
        raise NotImplementedError

    def set_durability(self, identity: str, durability: Durability | None) -> None:
        """How durable the logs of an identity are from now on; None: as all others.

        A store without a disk has nothing to do.
        """

    def take_back(self, identity: str, position: int) -> None:
        """At the start: rows from a position on are of a batch that was not committed.

        To be called before the log is opened.
        """

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_octets: int = 0
    ) -> Log:
        """The log of that identity: what it held when it is durable, empty when it is new.

        Args:
            identity: from `new_identity`, with a suffix such as "-3" for one of several.
            durable: whether its persistent messages outlive the process.
            keep_all: whether all messages of a durable log do, persistent or not.
            segment_octets: the size of a segment; 0 for the store's default.
        """
        raise NotImplementedError


class File:
    """An open file. Every call may raise OSError."""

    __slots__ = ()

    def write_at(self, data: bytes | memoryview, offset: int) -> int:
        """Write octets at an offset; returns how many, which may be fewer than given."""
        raise NotImplementedError

    def read_at(self, size: int, offset: int) -> bytes:
        """Read at most `size` octets from an offset; fewer only at the end of the file."""
        raise NotImplementedError

    def size(self) -> int:
        """Its size in octets."""
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        """Cut it to a size."""
        raise NotImplementedError

    def sync(self) -> None:
        """Return when everything written is on disk (fdatasync)."""
        raise NotImplementedError

    def close(self) -> None:
        """Let it go; nothing is synced by that."""
        raise NotImplementedError


class Files:
    """A folder with everything in it. Paths are relative to it, with "/" between names.

    Every call may raise OSError.
    """

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; a missing one is made only with `create`."""
        raise NotImplementedError

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing when there is no such folder."""
        raise NotImplementedError

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it; an existing one is fine."""
        raise NotImplementedError

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, replacing what has that name."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """Remove a file."""
        raise NotImplementedError

    def remove_folder(self, folder: str) -> None:
        """Remove an empty folder."""
        raise NotImplementedError

    def sync_folder(self, folder: str) -> None:
        """Return when the names in a folder are on disk (fsync of the folder)."""
        raise NotImplementedError

    def delay(self, folder: str, lag: int | None) -> None:
        """Syncs in a folder may be put off; see `harebell.base.lags`. By default they never are."""

    def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Sync files and then folders; at once, where that is less work than one by one."""
        for file in files:
            file.sync()
        for folder in folders:
            self.sync_folder(folder)

    def descriptors(self, files: Sequence[File]) -> list[tuple[int, str]]:
        """Descriptors and whole paths of files, when each is to be synced now and by itself.

        Else nothing.
        """
        return []

    def free(self) -> int:
        """Octets that can still be written."""
        raise NotImplementedError
