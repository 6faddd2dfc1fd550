"""Group commit: while one batch is written and synced, the next one gathers.

The event loop gathers a batch of all changes, the sync thread (or a test) performs it, and the
event loop finishes it. There is one batch at a time. A batch has five steps, and this is what a
crash after each of them leaves:

    1  definitions       a queue without messages; never a log without its queue
    2  the redo file     a joint batch (a transaction) only: from its sync on, the next start
                         repeats all records of the batch; before it, none is on disk
    3  records           without a redo file: any of them, none of which is confirmed
    4  syncs             all records; confirms may go out
    5  removals          settled segments that the next start removes again

Removals are last since the records that replace a segment must be on disk before it goes. No
confirm waits for them, so a batch can leave them to its caller.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.c_types import C, Done, Py, i32, i64
from harebell.base.ports import Commit, Definitions, File, Files, write_all
from harebell.store.limits import AHEAD_PIECE_BYTES
from harebell.store.log.segment import Segment, unused
from harebell.store.removal import Removal

if TYPE_CHECKING:
    from harebell.store.backup.cut import Cut
    from harebell.store.log.handles import Handles
    from harebell.store.redo import Redo

_NO_HANDLES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT, *_NO_HANDLES)
_NO_DESCRIPTOR = -1
_PIECE: i64 = AHEAD_PIECE_BYTES


class Write:
    """Bytes for one segment.

    Args:
        segment: where they go.
        start: their offset in the file.
        data: the bytes.
        goes_on: whether more will be written to the segment later.

    Attributes:
        ahead: bytes of space to write behind them; afterwards, how many there are.
        cuts: whether the file ends with the bytes, and space behind them goes.
    """

    def __init__(self, segment: Segment, start: i64, data: bytes, goes_on: bool) -> None:
        self.segment = segment
        self.start = start
        self.data = data
        self.goes_on = goes_on
        self.ahead: i64 = 0
        self.cuts = False


class CommittedLog(Protocol):
    """A log as the group commit uses it."""

    def written(self) -> list[tuple[str, int]]:
        """Return the paths of its segments on disk, with how many bytes are written."""

    def collect(self) -> Any:
        """Return the changes for the next batch; None if there are none."""

    def committed(self, part: Any) -> object:
        """Note that the changes of a part are on disk."""


class Part:
    """The changes of one log in a batch.

    Args:
        log: the log that has changed.
        directory: of its segments.

    Attributes:
        writes: in the order of the segments.
        large: segments whose large messages are among the writes.
        early: segments that were written to without a batch, and have to be synced.
        started: those of `early` whose writing was begun without a sync: rows of a staged batch.
        rows_only: its one write has only rows of a staged batch, and may stay unsynced.
        removals: segments to remove, the oldest first, once the writes are durable.
        gone: whether the whole directory is removed.
    """

    def __init__(self, log: CommittedLog, directory: str) -> None:
        self.log = log
        self.directory = directory
        self.writes: C[list[Write]] = []
        self.large: list[Segment] = []
        self.early: list[Segment] = []
        self.started: list[Segment] = []
        self.rows_only = False
        self.removals: list[Segment] = []
        self.gone = False


class Direct:
    """A batch that consists of writes to open files and their syncs only.

    Attributes:
        writes: file descriptors, bytes, and their offsets.
        syncs: the descriptors to sync afterwards.
        unsynced: whether the disk only starts to write, and a later batch syncs the files.
        paths: of the files to sync, for errors; of those to write if they are not synced.
        creates: paths of files to create, by the index of the first write of each, which has no
            descriptor. Only if they are not synced.
        last: the indices of the last writes of their files, if they are not synced.
        repeated: how many bytes a write has, by its index, if its bytes are repeated.
        byte_count: the bytes of all writes.
    """

    def __init__(self, files: Files) -> None:
        self.unsynced = False
        self.writes: C[list[tuple[int, bytes, int]]] = []
        self.syncs: list[int] = []
        self.paths: list[str] = []
        self.creates: dict[int, str] = {}
        self.last: list[int] = []
        self.repeated: dict[int, int] = {}
        self.byte_count: i64 = 0
        self._files = files
        self._segments: Py[dict[int, Segment]] = {}

    def add(self, descriptor: i32, write: Write) -> Done:
        """Add a write to an open file, and the space ahead of it."""
        end: i64 = write.start + len(write.data)
        self.writes.append((descriptor, write.data, write.start))
        self.byte_count += len(write.data) + write.ahead
        if write.ahead:
            # If the disk is full, this write fails, and `perform` repeats the batch: it goes on
            # without space ahead.
            if write.ahead > _PIECE:
                self.repeated[len(self.writes)] = write.ahead
            self.writes.append((descriptor, unused(end, min(write.ahead, _PIECE)), end))
        return 0

    def add_unsynced(self, write: Write) -> bool:
        """Add a write that is not synced; False if only `perform` can do it."""
        segment, place = write.segment, len(self.writes)
        descriptor = _NO_DESCRIPTOR
        if segment.writer is not None:
            descriptors = self._files.descriptors([segment.writer])
            if not descriptors:
                return False
            descriptor, path = descriptors[0]
        else:
            new_path = self._files.system_path(segment.path) if write.start == 0 else None
            if new_path is None:
                return False
            path = self.creates[place] = new_path
            self._segments[place] = segment
        self.writes.append((descriptor, write.data, write.start))
        self.byte_count += len(write.data)
        self.paths.append(path)
        if not write.goes_on:
            self.last.append(place)
        return True

    def adopt(self, opened: dict[int, int]) -> None:
        """Take the descriptors of the created files, by the indices of their writes."""
        for place, descriptor in opened.items():
            segment = self._segments[place]
            segment.writer = self._files.adopt(descriptor, segment.path)


class Batch:
    """The work of one commit.

    Args:
        ticket: the commit's number.
        files: the disk.
        definitions: the declarations of the store.
        changes: statements for the definitions.
        parts: the changes of each log.
        redo: the redo file of the store.
        handles: its open files.
        joint: whether a crash must keep all of the batch or nothing.

    Attributes:
        stalled: a passing error, such as a full disk; the batch has to be performed again.
        failed: a final error; nothing of the batch may be confirmed.
        records: messages in it whose confirms wait for it.
        unsynced: whether it has only rows of a staged batch, and a later batch syncs them.
        removals: files that the caller has to remove after the confirms, in this order.
    """

    def __init__(
        self,
        ticket: int,
        files: Files,
        definitions: Definitions,
        changes: list[Any],
        parts: list[Part],
        redo: Redo,
        handles: Handles,
        joint: bool,
    ) -> None:
        self.ticket = ticket
        self.parts = parts
        self.records = 0
        self.unsynced = False
        self.stalled: OSError | None = None
        self.failed: Exception | None = None
        self.removals: list[Removal] = []
        self._files = files
        self._definitions = definitions
        self._changes = changes
        self._written = 0
        self._syncing = False
        self._made: dict[str, None] = {}
        # Segments that were synced and closed, to free descriptors for other files.
        self._closed: set[Segment] = set()
        self._redo = redo
        self._handles = handles
        self._joint = joint
        self._redone = False

    def perform(self, *, removing: bool = True) -> None:
        """Write and sync this batch. Never raises: `stalled` or `failed` say what went wrong.

        Args:
            removing: remove its segments too; otherwise they are left in `removals`, unless a whole
                log is removed.
        """
        self.stalled = None
        try:
            if self._changes:
                # Before the records: after a crash a queue may lack messages that were not
                # confirmed, but a directory of a log always has the definition that says whose it
                # is.
                self._definitions.write(self._changes)
                # If a later step stalls, the batch is performed again: SQLite has these changes
                # already.
                self._changes = []
            if self._joint and not self._redone:
                self._write_redo()
            self._write()
            if not self.unsynced:
                with self._certainly():
                    self._sync_all()
            self._remove(later=not removing)
        except OSError as error:
            # Only a failed sync is final. Without a free descriptor a file could not even be
            # opened, so its sync was not tried; on a full disk a write can be repeated.
            if error.errno in _NO_HANDLES or (error.errno in _FULL and not self._syncing):
                self._syncing = False
                self.stalled = error
            else:
                self.failed = error
        except Exception as error:  # a thread cannot raise: the server ends the process
            self.failed = error

    def direct(self) -> Direct | None:
        """Return the work as plain writes and syncs; None if there is more to do.

        After a failed write `perform` may be called, which repeats all writes. After a failed sync
        nothing may be called: see `_certainly`.
        """
        if self.unsynced:
            return self._direct_unsynced()
        files = self._only_written()
        return None if files is None else _direct(self._files, self.parts, files)

    def _direct_unsynced(self) -> Direct | None:
        """Return writes of rows, which a later batch syncs; None if there is more to do."""
        if self._changes or self._written or (self._redo.holds and self._redo.large):
            return None
        work = Direct(self._files)
        work.unsynced = True
        writes = [write for part in self.parts for write in part.writes]
        for write in writes:
            if not work.add_unsynced(write):
                return None
        return work

    def is_small(self, byte_count: int) -> bool:
        """True if it only writes, to open files, and at most so many bytes."""
        return self._only_written() is not None and self.byte_count <= byte_count

    @property
    def byte_count(self) -> int:
        """Return how many bytes it writes."""
        return sum([len(write.data) for part in self.parts for write in part.writes])

    def _only_written(self) -> dict[File, None] | None:
        """Return the files, if all work is to write to files that are open."""
        # A batch that stalled halfway goes on where it stopped (`_written`), and a large redo file
        # has to be emptied: only `perform` does either.
        if self._changes or self._joint or self._written or (self._redo.holds and self._redo.large):
            return None
        return _open_files(self.parts)

    @contextmanager
    def _certainly(self) -> Iterator[None]:
        """Run a step whose error is final: `_syncing` stays set.

        After a failed fsync, Linux marks the lost pages as clean. A second fsync would succeed,
        and messages that are not on disk would be confirmed.
        """
        self._syncing = True
        yield
        self._syncing = False

    def _write_redo(self) -> None:
        """Write and sync the redo file before any of its writes is done."""
        planned = [
            (write.segment.path, write.start, write.data)
            for part in self.parts
            for write in part.writes
        ]
        if not planned:
            return
        self._open_early()
        with self._certainly():
            # Early writes precede those of this batch in their segments and are not in the redo
            # file. If they were lost, the repeated writes would begin behind a gap.
            self._sync_all(early_only=True)
        self._redo.write(planned)
        with self._certainly():
            self._redo.sync()
        # If the batch stalls from here on, it must not write the redo file again: a crash during
        # that write would leave some of the records and no whole file.
        self._redone = True

    def _write(self) -> None:
        writes = [(part, write) for part in self.parts for write in part.writes]
        while self._written < len(writes):
            part, write = writes[self._written]
            self._open(part, write)
            assert write.segment.writer is not None
            write_all(write.segment.writer, write.data, write.start)
            _make_room(write)
            self._written += 1
        # A file that was written early may have been closed since, to open others. Its sync needs a
        # descriptor.
        self._open_early()

    def _open_early(self) -> None:
        for part in self.parts:
            for segment in part.early:
                if segment.writer is None and segment not in self._closed:
                    segment.writer = self._opened(segment, create=False)
                # The directory was not synced since the file was created: a loss of power may lose
                # its name.
                if segment.fresh:
                    self._made[part.directory] = None

    def _open(self, part: Part, write: Write) -> None:
        segment = write.segment
        if segment.writer is not None:
            return
        if write.start == 0:
            self._files.make_directory(part.directory)
            self._made[part.directory] = None
        segment.writer = self._opened(segment, create=write.start == 0)

    def _opened(self, segment: Segment, *, create: bool) -> File:
        """Return the open file of a segment."""
        self._closed.discard(segment)
        try:
            return self._files.open(segment.path, create=create)
        except OSError as error:
            if error.errno not in _NO_HANDLES or not self._free_descriptors():
                raise
            return self._files.open(segment.path, create=create)

    def _free_descriptors(self) -> bool:
        """Sync and close files of this batch, and idle ones; False if there are none."""
        writes = [write for part in self.parts for write in part.writes]
        done = {write.segment: None for write in writes[: self._written]}
        done.update({segment: None for part in self.parts for segment in part.early})
        segments = [segment for segment in done if segment.writer is not None]
        with self._certainly():
            for segment in segments:
                assert segment.writer is not None
                # The kernel reports a failed write to the descriptors that were open at that time.
                # After the close, no later sync of this file would see the error.
                segment.writer.sync()
        self._close(segments)
        return self._handles.close_idle_writers() or bool(segments)

    def _close(self, synced: Iterable[Segment]) -> None:
        """Close files that are synced."""
        for segment in synced:
            self._closed.add(segment)
            file, segment.writer = segment.writer, None
            if file is not None:
                file.close()

    def _sync_all(self, *, early_only: bool = False) -> None:
        segments: dict[Segment, None] = {}
        for part in self.parts:
            segments.update(dict.fromkeys(part.early))
            if not early_only:
                segments.update(dict.fromkeys(write.segment for write in part.writes))
        started = {segment for part in self.parts for segment in part.started}
        writers = []
        for segment in segments:
            if segment not in self._closed:
                assert segment.writer is not None
                if segment in started:
                    # One file at a time: `sync_all` may sync the whole file system, with staged
                    # pieces that need not be on disk.
                    segment.writer.sync()
                else:
                    writers.append(segment.writer)
        # The name of a new log's directory is an entry of the directory above it.
        above = dict.fromkeys(directory.rpartition("/")[0] for directory in self._made)
        directories = [*self._made, *above]
        if not (writers or directories):
            return
        try:
            self._files.sync_all(writers, directories)
        except OSError as error:
            if error.errno not in _NO_HANDLES or early_only:
                raise
            # Files are synced first and are open: it is a directory that could not be opened.
            self._close(segments)
            self._handles.close_idle_writers()
            self._files.sync_all([], directories)

    def _remove(self, *, later: bool) -> None:
        redo = self._redo
        removes = any(part.removals or part.gone for part in self.parts)
        if redo.holds and (removes or redo.large):
            # A replayed write would create a removed segment again.
            redo.empty()
            with self._certainly():
                redo.forget()
        removals = [
            Removal(self._files, part.directory, segment.path)
            for part in self.parts
            for segment in part.removals
        ]
        for part in self.parts:
            if part.gone:
                # Never left for later: when this batch is finished, the definitions forget that the
                # log was dropped, and a start would take its files for a log that lost its queue.
                for name in self._files.names(part.directory):
                    _remove_file(self._files, f"{part.directory}/{name}")
                _remove_directory(self._files, part.directory)
                # The definitions of the queue are gone, so a directory that reappeared after a loss
                # of power would belong to no queue.
                with self._certainly():
                    self._files.sync_directory(part.directory.rpartition("/")[0])
        if later:
            self.removals = removals
            return
        for removal in removals:
            try:
                removal.remove()
            except OSError:
                self._syncing = removal.syncing
                raise


def _open_files(parts: list[Part]) -> C[dict[File, None] | None]:
    """Return the files of all writes; None if there is more to do than to write to open files."""
    files: dict[File, None] = {}
    part: Part
    write: Write
    for part in parts:
        if part.removals or part.gone or part.early:
            return None
        for write in part.writes:
            if write.segment.writer is None or write.cuts:
                return None
            files[write.segment.writer] = None
    return files


def _direct(files: Files, parts: list[Part], opened: dict[File, None]) -> C[Direct | None]:
    """Return writes to these files, and their syncs; None if some are not synced alone."""
    part: Part
    write: Write
    descriptors = files.descriptors(list(opened))
    if not descriptors:
        return None
    work = Direct(files)
    work.syncs = [descriptor for descriptor, _ in descriptors]
    work.paths = [path for _, path in descriptors]
    into: dict[Any, int] = dict(zip(opened, work.syncs, strict=True))
    for part in parts:
        for write in part.writes:
            work.add(into[write.segment.writer], write)
    return work


def _make_room(write: Write) -> None:
    """Write space ahead behind a write, or truncate space that is not needed any more.

    Raises:
        OSError: the disk refuses.
    """
    file, end = write.segment.writer, write.start + len(write.data)
    assert file is not None
    if write.cuts:
        file.truncate(end)
    elif write.ahead:
        piece = memoryview(unused(end, min(write.ahead, _PIECE)))
        try:
            for at in range(0, write.ahead, _PIECE):
                write_all(file, piece[: write.ahead - at], end + at)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            # No room for space ahead is no error: the data itself was written.
            write.ahead = 0


def _remove_file(files: Files, path: str) -> None:
    try:
        files.remove(path)
    except FileNotFoundError:
        return


def _remove_directory(files: Files, directory: str) -> None:
    try:
        files.remove_directory(directory)
    except FileNotFoundError:
        return


class GroupCommit(Commit):
    """The group commit of a store.

    Args:
        files: the disk.
        definitions: what is declared.
        redo: the redo file of the store.
        handles: its open files.

    Attributes:
        dirty: logs with something for the next batch, each once.
        waiting: whether there is work for a batch, even if no reply waits for it.
        cut: notes what is on disk for a backup; None when it has noted everything.
    """

    def __init__(
        self, files: Files, definitions: Definitions, redo: Redo, handles: Handles
    ) -> None:
        super().__init__()
        self.dirty: C[list[CommittedLog]] = []
        self.waiting = False
        self.flying: Batch | None = None
        self.finished: list[Callable[[], None]] = []
        self.cut: Cut | None = None
        self._files = files
        self._definitions = definitions
        self._redo = redo
        self._handles = handles

    def changed(self) -> None:
        """Note changed definitions with a waiting reply."""
        self.waiting = True
        self.urgent = True

    @property
    def has_changes(self) -> bool:
        """Return whether there are changes for the gathering commit."""
        return self.urgent or self.waiting or bool(self.dirty)

    def between(self, call: Callable[[], None]) -> None:
        """Call a function when no batch is being written: now, or when this one is finished."""
        if self.flying is None:
            call()
        else:
            self.finished.append(call)

    def close_up(self) -> None:
        """Close the gathering commit: add what was kept for this moment."""
        for call in self.closing:
            call()

    def gather(self) -> C[Batch | None]:
        """Return a batch of all changes; None if there are none, or while it has to wait.

        With waiting replies there is a batch even if nothing has changed: its end releases them.
        """
        if self.flying is not None or self.pinned:
            return None
        # Before anything is collected: these calls append records and change definitions.
        self.close_up()
        changes = self._definitions.take()
        if not (changes or self.dirty or self.urgent):
            self.waiting = False
            return None
        dirty: list[CommittedLog] = self.dirty
        self.dirty = []
        if self.cut is not None:
            # Before the logs hand over their writes: a backup has their lengths before this batch.
            self.cut.note(dirty)
        parts: list[Part] = []
        only_rows: bool = True
        for log in dirty:
            part: Part | None = log.collect()
            if part is not None:
                parts.append(part)
                only_rows = only_rows and part.rows_only
        self.flying = Batch(
            self.ticket,
            self._files,
            self._definitions,
            changes,
            parts,
            self._redo,
            self._handles,
            self.joint,
        )
        # A joint batch has a redo file, whose replay needs every earlier row on disk.
        self.flying.unsynced = bool(parts) and only_rows and not self.joint
        self.joint = False
        self.unsynced = False
        self.flying.records = self.records
        self.records = 0
        self.ticket += 1
        # A log may need another commit as soon as this one is collected.
        self.waiting = bool(self.dirty)
        self.urgent = False
        return self.flying

    def finish(self, batch: Batch) -> None:
        """Finish a batch that was performed: its writes are on disk."""
        assert batch is self.flying
        assert batch.stalled is None
        assert batch.failed is None
        self.flying = None
        self.done = batch.ticket
        for part in batch.parts:
            part.log.committed(part)
        finished, self.finished = self.finished, []
        for call in finished:
            call()
