"""Group commit: while one batch is written and synced, the next one gathers.

The event loop gathers a batch of all changes, the sync thread (or a test) performs it, and the
event loop finishes it. There is one batch at a time. Within a batch the order is: definitions, the
redo file for a transaction, records, syncs, removals; so no record is on disk without the
definition of its queue, and nothing is removed before the records that replace it are on disk.
No confirm has to wait for the removal of segments, so a batch can leave it to its caller.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.ports import Commit, Definitions, File, Files
from harebell.store.log.segment import Segment, unused
from harebell.store.removal import Removal

if TYPE_CHECKING:
    from harebell.store.log.handles import Handles
    from harebell.store.redo import Redo

_NO_HANDLES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT, *_NO_HANDLES)
_NO_DESCRIPTOR = -1


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

    __slots__ = ("ahead", "cuts", "data", "goes_on", "segment", "start")

    def __init__(self, segment: Segment, start: int, data: bytes, goes_on: bool) -> None:
        self.segment = segment
        self.start = start
        self.data = data
        self.goes_on = goes_on
        self.ahead = 0
        self.cuts = False


class CommittedLog(Protocol):
    """A log as the group commit uses it."""

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
        started: those of them that the disk has been writing since: rows of a staged batch.
        rows_only: its one write has only rows of a staged batch, and may stay unsynced.
        removals: segments to remove, the oldest first, once the writes are durable.
        gone: the whole directory is to be removed.
    """

    def __init__(self, log: CommittedLog, directory: str) -> None:
        self.log = log
        self.directory = directory
        self.writes: list[Write] = []
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
    """

    __slots__ = ("_files", "_segments", "creates", "last", "paths", "syncs", "unsynced", "writes")

    def __init__(self, files: Files) -> None:
        self.unsynced = False
        self.writes: list[tuple[int, bytes, int]] = []
        self.syncs: list[int] = []
        self.paths: list[str] = []
        self.creates: dict[int, str] = {}
        self.last: list[int] = []
        self._files = files
        self._segments: dict[int, Segment] = {}

    def add_unsynced(self, write: Write) -> bool:
        """Add a write that is not synced; False if only `perform` can do it."""
        segment, place = write.segment, len(self.writes)
        descriptor = _NO_DESCRIPTOR
        if segment.writer is not None:
            found = self._files.descriptors([segment.writer])
            if not found:
                return False
            descriptor, path = found[0]
        else:
            known = self._files.system_path(segment.path) if write.start == 0 else None
            if known is None:
                return False
            path = self.creates[place] = known
            self._segments[place] = segment
        self.writes.append((descriptor, write.data, write.start))
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
        definitions: what is declared.
        changes: what they changed.
        parts: what the logs have.
        redo: the redo file of the store.
        handles: its open files.
        joint: a crash must keep all of it or nothing.

    Attributes:
        stalled: why it could not go on for now, such as a full disk; perform it again later.
        failed: why it never will; nothing of it may be confirmed.
        records: messages in it whose confirms wait for it.
        unsynced: whether it has only rows of a staged batch, and a later batch syncs them.
        removals: what is left to be removed when all else is on disk, in this order.
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
        # Segments that are synced, and whose files were closed to open others.
        self._let_go: set[Segment] = set()
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
                self._definitions.write(self._changes)
                self._changes = []
            if self._joint and not self._redone:
                self._write_redo()
            self._write()
            if not self.unsynced:
                with self._certainly():
                    self._sync_all()
            self._remove(later=not removing)
        except OSError as error:
            # A file that cannot be opened was not synced, and no sync has failed.
            if error.errno in _NO_HANDLES or (error.errno in _FULL and not self._syncing):
                self._syncing = False
                self.stalled = error
            else:
                self.failed = error
        except Exception as error:  # a thread cannot raise: the server ends the process
            self.failed = error

    def direct(self) -> Direct | None:
        """Return the work as plain writes and syncs; None if there is more to it.

        When a write fails `perform` may still be called, and does everything again. When a sync
        fails nothing may be.
        """
        if self.unsynced:
            return self._direct_unsynced()
        files = self._only_written()
        if files is None:
            return None
        descriptors = self._files.descriptors([*files])
        if not descriptors:
            return None
        work = Direct(self._files)
        work.syncs = [descriptor for descriptor, _ in descriptors]
        work.paths = [path for _, path in descriptors]
        into = dict(zip(files, work.syncs, strict=True))
        for part in self.parts:
            for write in part.writes:
                assert write.segment.writer is not None
                place, end = into[write.segment.writer], write.start + len(write.data)
                work.writes.append((place, write.data, write.start))
                if write.ahead:
                    work.writes.append((place, unused(end, write.ahead), end))
        return work

    def _direct_unsynced(self) -> Direct | None:
        """Return writes of rows, which a later batch syncs; None if there is more to it."""
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
        if self._changes or self._joint or self._written or (self._redo.holds and self._redo.large):
            return None
        files: dict[File, None] = {}
        for part in self.parts:
            if part.removals or part.gone or part.early:
                return None
            for write in part.writes:
                file = write.segment.writer
                if file is None or write.cuts:
                    return None
                files[file] = None
        return files

    @contextmanager
    def _certainly(self) -> Iterator[None]:
        """Run a step that must not be tried again after an error: `_syncing` stays set."""
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
            # Early writes precede these writes, and are not in the redo file.
            self._sync_all(early_only=True)
        self._redo.write(planned)
        with self._certainly():
            self._redo.sync()
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
        self._open_early()

    def _open_early(self) -> None:
        for part in self.parts:
            for segment in part.early:
                if segment.writer is None and segment not in self._let_go:
                    segment.writer = self._opened(segment, create=False)
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
        self._let_go.discard(segment)
        try:
            return self._files.open(segment.path, create=create)
        except OSError as error:
            if error.errno not in _NO_HANDLES or not self._make_do():
                raise
            return self._files.open(segment.path, create=create)

    def _make_do(self) -> bool:
        """Close synced files to free descriptors; False if there are none."""
        writes = [write for part in self.parts for write in part.writes]
        done = {write.segment: None for write in writes[: self._written]}
        done.update({segment: None for part in self.parts for segment in part.early})
        found = [segment for segment in done if segment.writer is not None]
        with self._certainly():
            for segment in found:
                assert segment.writer is not None
                segment.writer.sync()
        self._close(found)
        return self._handles.let_writers_go() or bool(found)

    def _close(self, synced: Iterable[Segment]) -> None:
        """Close files that are synced."""
        for segment in synced:
            self._let_go.add(segment)
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
            if segment not in self._let_go:
                assert segment.writer is not None
                if segment in started:
                    # By itself, however many there are: syncing everything would write all staged
                    # pieces, too, which may stay off the disk.
                    segment.writer.sync()
                else:
                    writers.append(segment.writer)
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
            self._handles.let_writers_go()
            self._files.sync_all([], directories)

    def _remove(self, *, later: bool) -> None:
        redo = self._redo
        removes = any(part.removals or part.gone for part in self.parts)
        if redo.holds and (removes or redo.large):
            redo.empty()
            with self._certainly():
                redo.forget()
        left = [
            Removal(self._files, part.directory, segment.path)
            for part in self.parts
            for segment in part.removals
        ]
        for part in self.parts:
            if part.gone:
                for name in self._files.names(part.directory):
                    _remove_file(self._files, f"{part.directory}/{name}")
                _remove_directory(self._files, part.directory)
                # The definitions forget it now: it would not be found if it reappeared.
                with self._certainly():
                    self._files.sync_directory(part.directory.rpartition("/")[0])
        if later:
            self.removals = left
            return
        for removal in left:
            try:
                removal.remove()
            except OSError:
                self._syncing = removal.syncing
                raise


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
        try:
            write_all(file, unused(end, write.ahead), end)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            # No room for space ahead is no error: the data itself was written.
            write.ahead = 0


def write_all(file: File, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes at an offset, in as many calls as necessary.

    Raises:
        OSError: the disk refuses; ENOSPC also when nothing at all could be written.
    """
    rest = memoryview(data)
    while rest:
        done = file.write_at(rest, offset)
        if done <= 0:
            raise OSError(errno.ENOSPC, "nothing could be written")
        rest = rest[done:]
        offset += done


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
        waiting: something waits, perhaps nothing that anybody waits for.
    """

    def __init__(
        self, files: Files, definitions: Definitions, redo: Redo, handles: Handles
    ) -> None:
        super().__init__()
        self.dirty: list[CommittedLog] = []
        self.waiting = False
        self.flying: Batch | None = None
        self.finished: list[Callable[[], None]] = []
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

    def close_up(self) -> None:
        """Close the gathering commit: add what was kept for this moment."""
        for call in self.closing:
            call()

    def gather(self) -> Batch | None:
        """Return a batch of all changes; None if there are none, or while it has to wait.

        With waiting replies there is a batch even if nothing has changed: its end releases them.
        """
        if self.flying is not None or self.pinned:
            return None
        self.close_up()
        changes = self._definitions.take()
        if not (changes or self.dirty or self.urgent):
            self.waiting = False
            return None
        dirty, self.dirty = self.dirty, []
        parts = [part for part in (log.collect() for log in dirty) if part is not None]
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
        only_rows = bool(parts) and all(part.rows_only for part in parts)
        self.flying.unsynced = only_rows and not self.joint
        self.joint = False
        self.unsynced = False
        self.flying.records = self.records
        self.records = 0
        self.ticket += 1
        self.waiting = bool(self.dirty)
        self.urgent = False
        return self.flying

    def finish(self, batch: Batch) -> None:
        """Finish a batch that was performed: what it wrote is on disk."""
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
