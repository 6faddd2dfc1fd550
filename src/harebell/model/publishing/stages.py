"""Stages: batches that arrive in parts from many writers, and are published atomically.

A batch belongs to a publisher and has a number. Its parts are written by tasks that may fail and be
retried, so attempts are kept apart, and the commit names the attempts that count. A batch has files
of its own. A start reads them, so a batch survives the end of the process, but nothing is synced:
after a power failure the commit reports what is missing. The files of a committed batch are used
again (`spare_files.py`).

    stages/0     piece | piece | piece ...        stages/1     piece ...

A batch may use the disk space above `disk_free_limit`, of which users and vhosts get a part. A
batch is dropped after some time, earlier if no connection stages for its publisher.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.ports import File, Files
from harebell.base.share import Shares
from harebell.base.timers import Timers
from harebell.kernels.records import crc32c
from harebell.model.limits import (
    STAGE_FILE_BYTES,
    STAGE_KEEP_SECONDS,
    STAGE_LEFT_LOW_SECONDS,
    STAGE_LEFT_SECONDS,
    STAGE_SWEEP_BYTES,
    STAGE_USER_SHARE,
    STAGE_VHOST_SHARE,
    STAGES_COUNT,
)
from harebell.model.publishing.publishers import Key
from harebell.model.publishing.spare_files import SpareFiles
from harebell.model.publishing.stage_files import Attempt, Piece, pieces_of, write_piece

DIRECTORY = "stages"
_MS = 1000
_REMEDY = "commit or drop some (`harebell stages list` shows them)"


class StagedBatch:
    """The staged parts of one batch.

    Args:
        key: the publisher.
        number: the number of the batch.

    Attributes:
        key, number: as given.
        pieces: the pieces of each attempt, in order.
        files: its open files.
        paths: the paths of the files.
        byte_count: the size of all files in bytes.
        size: the size of the last file.
        touched: when the last piece arrived, in milliseconds of the monotonic clock.
        committing: whether it is being published and must not be dropped.
    """

    def __init__(self, key: Key, number: int) -> None:
        self.key = key
        self.number = number
        self.pieces: dict[Attempt, list[Piece]] = {}
        self.files: list[File] = []
        self.paths: list[str] = []
        self.byte_count = 0
        self.size = 0
        self.touched = 0
        self.committing = False

    @property
    def rows(self) -> int:
        """Return the number of rows of all attempts."""
        return sum(sum(piece.rows for piece in pieces) for pieces in self.pieces.values())


class Room(NamedTuple):
    """Limits of the staged bytes.

    Args:
        floor: bytes of the disk that stay free: `disk_free_limit`.
        user: most bytes of one user; 0 for a part of the available space.
        vhost: most bytes in one vhost; 0 for a part of the available space.
    """

    floor: int = 0
    user: int = 0
    vhost: int = 0


class Stages:
    """All staged batches of a broker.

    Args:
        files: the data directory.
        clock: tells how long ago a batch was touched.
        timers: the timers, for dropping old batches.

    Attributes:
        room: the limits.
        shares: how many batches each user has staged.
        low: whether disk space is low, so that abandoned batches are dropped earlier.
        report: called with a text when an abandoned batch is dropped.
    """

    def __init__(self, files: Files, clock: Clock, timers: Timers) -> None:
        self.room = Room()
        self.low = False
        self.report: Callable[[str, str], None] = _no_report
        self._files = files
        self._clock = clock
        self._timer = timers.timer(self._tend)
        self._sweeper = timers.timer(self._sweep)
        self.shares = Shares("staged batches that are not committed", STAGES_COUNT, _REMEDY)
        self._batches: dict[tuple[Key, int], StagedBatch] = {}
        self._byte_count = 0
        self._made = 0
        self._gone: deque[str] = deque()
        self._spares = SpareFiles(files, clock, timers, self._remove)
        # Connections that stage, by publisher, and since when a publisher has none.
        self._present: dict[Key, set[object]] = {}
        self._left: dict[Key, int] = {}
        self._working: object = None
        self._waiting: deque[Callable[[], None]] = deque()

    def restore(self, next_of: Callable[[Key], int | None]) -> None:
        """Read the staged batches at a start, and drop those that are committed.

        Args:
            next_of: returns the next number of a publisher; None if it is unknown.
        """
        # Without the directory nothing was ever staged.
        with contextlib.suppress(OSError):
            names = [name for name in self._files.names(DIRECTORY) if not name.isdecimal()]
            self._gone.extend(f"{DIRECTORY}/{name}" for name in names)
            numbers = [int(name) for name in self._files.names(DIRECTORY) if name.isdecimal()]
            # Numbers of files are not used twice: a leftover file must not be taken for a new one.
            self._made = max(numbers, default=-1) + 1
            for number in sorted(numbers):
                self._take_up(f"{DIRECTORY}/{number}", next_of)
        now = self._clock.steady
        for key, _ in self._batches:
            # Clients of before the start have the usual time to come back.
            self._left[key] = now
        self._timer.set_earlier(now + self._patience() * _MS)
        self._sweep()

    def _take_up(self, path: str, next_of: Callable[[Key], int | None]) -> None:
        """Read a file; remove it if it has no valid piece."""
        staged: StagedBatch | None = None
        try:
            file = self._files.open(path)
            for piece in pieces_of(file):
                first = next_of(piece.key)
                # Committed before the last process ended, which had no time to remove the file.
                if first is None or piece.batch < first:
                    break
                place = (piece.key, piece.batch)
                if staged is not None and place != (staged.key, staged.number):
                    # Of a batch that had the file before, after a power failure.
                    break
                if staged is None:
                    staged = self._batches.get(place)
                    if staged is None:
                        staged = self._batches[place] = StagedBatch(*place)
                        self.shares.add(piece.key.user)
                    staged.touched = self._clock.steady
                    staged.files.append(file)
                    staged.paths.append(path)
                pieces = staged.pieces.setdefault(piece.attempt, [])
                if piece.number == len(pieces):
                    # Otherwise an earlier piece is lost.
                    pieces.append(piece.piece._replace(file=len(staged.files) - 1))
                staged.size = piece.piece.start + piece.piece.size
                staged.byte_count += piece.piece.size
                self._byte_count += piece.piece.size
            # The next piece overwrites only as much as it is long: a later start must not read old
            # bytes behind it as pieces.
            if staged is not None and file.size() > staged.size:
                file.truncate(staged.size)
        except OSError as error:
            self.report("warning", f"{path} cannot be read, and is passed over: {error.strerror}")
            return
        if staged is None:
            file.close()
            self._gone.append(path)

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def byte_count(self) -> int:
        """Return the size of all staged batches on disk."""
        return self._byte_count

    def all(self) -> list[StagedBatch]:
        """Return every batch by publisher and number."""
        return [batch for _, batch in sorted(self._batches.items(), key=lambda item: item[0])]

    def idle_ms(self, batch: StagedBatch) -> int:
        """Return the milliseconds since the last piece arrived."""
        return self._clock.steady - batch.touched

    # --- connections ----------------------------------------------------------------------------

    def came(self, key: Key, who: object) -> None:
        """Note a connection that stages for a publisher."""
        self._present.setdefault(key, set()).add(who)
        self._left.pop(key, None)

    def left(self, who: object) -> None:
        """Remove a closed connection."""
        if not self._present:
            return
        now = self._clock.steady
        for key in [key for key, present in self._present.items() if who in present]:
            connections = self._present[key]
            connections.discard(who)
            if not connections:
                del self._present[key]
                self._left[key] = now
                self._timer.set_earlier(now + self._patience() * _MS)

    def connections(self, key: Key) -> int:
        """Return how many connections stage for a publisher."""
        return len(self._present.get(key, ()))

    def set_low(self, low: bool) -> bool:
        """Set whether disk space is low; return it."""
        if low and not self.low:
            self._timer.set_earlier(self._clock.steady)
            # They only save time, and take disk space.
            self._spares.remove_all()
        self.low = low
        return low

    def _patience(self) -> int:
        return STAGE_LEFT_LOW_SECONDS if self.low else STAGE_LEFT_SECONDS

    # --- one commit at a time -------------------------------------------------------------------

    def begin(self, work: object, again: Callable[[], None]) -> bool:
        """Become the commit in progress; if there is another one, `again` is called after it."""
        if self._working is None or self._working is work:
            self._working = work
            return True
        self._waiting.append(again)
        return False

    def end(self, work: object) -> None:
        """End the commit in progress."""
        if self._working is work:
            self._working = None
            waiting, self._waiting = self._waiting, deque()
            # The first one begins, and the others queue again in the same order.
            for again in waiting:
                again()

    # --- pieces ---------------------------------------------------------------------------------

    def append(
        self, key: Key, batch: int, attempt: Attempt, number: int, piece: Piece, data: bytes
    ) -> tuple[int, int]:
        """Append a piece.

        Args:
            key: the publisher.
            batch: its number.
            attempt: the part, and which attempt to write it.
            number: the number of the piece in the attempt, from 0; an equal piece that is here
                already is skipped.
            piece: the piece; its file and offset are set here.
            data: its bytes.

        Returns:
            The rows and bytes of the attempt so far.

        Raises:
            Refusal: PRECONDITION_FAILED, an earlier piece is missing, or there is no room.
        """
        before = self._batches.get((key, batch))
        pieces = [] if before is None else before.pieces.get(attempt, [])
        if number > len(pieces):
            raise _refusal(
                f"piece {number} of part {attempt[0]} of {_named(key, batch)} came, and "
                f"{len(pieces)} is the next"
            )
        if number < len(pieces):
            # A client repeats a piece when it got no answer: an equal one is accepted.
            stored = pieces[number]
            sent = (piece.check, len(data), piece.columns)
            if (stored.check, stored.size, stored.columns) != sent:
                raise _refusal(
                    f"piece {number} of part {attempt[0]} of {_named(key, batch)} is here already, "
                    "and was another"
                )
            self._batches[key, batch].touched = self._clock.steady
        else:
            staged = before or self._make(key, batch)
            try:
                self._check_room(staged, len(data))
                pieces.append(self._written(staged, attempt, number, piece, data))
            except Refusal:
                if before is None:
                    self.drop(key, batch)
                raise
            staged.pieces[attempt] = pieces
            staged.touched = self._clock.steady
        return sum(each.rows for each in pieces), sum(each.size for each in pieces)

    def _written(
        self, staged: StagedBatch, attempt: Attempt, number: int, piece: Piece, data: bytes
    ) -> Piece:
        key, batch = staged.key, staged.number
        try:
            if not staged.files or staged.size >= STAGE_FILE_BYTES:
                self._add_file(staged)
            start = write_piece(
                staged.files[-1], staged.size, key, batch, attempt, number, piece, data
            )
        except OSError as error:
            with contextlib.suppress(OSError, IndexError):
                # The next start must not read any of it as a piece.
                staged.files[-1].truncate(staged.size)
            raise _refusal(f"cannot stage {_named(key, batch)}: {error.strerror}") from None
        kept = piece._replace(file=len(staged.files) - 1, start=start, size=len(data))
        staged.size = start + len(data)
        staged.byte_count += len(data)
        self._byte_count += len(data)
        return kept

    def _add_file(self, staged: StagedBatch) -> None:
        path = f"{DIRECTORY}/{self._made}"
        file = self._spares.take(path) or self._files.open(path, create=True)
        staged.files.append(file)
        staged.paths.append(path)
        staged.size = 0
        self._made += 1

    def chosen(
        self, key: Key, batch: int, attempts: Iterable[tuple[int, int, int]]
    ) -> list[tuple[int, Piece]]:
        """Return the pieces of the committed attempts, each with the number of its part.

        Args:
            key: the publisher.
            batch: its number, as given when it was staged.
            attempts: part, attempt and rows of each.

        Raises:
            Refusal: PRECONDITION_FAILED, some are missing or have other rows.
        """
        staged = self._batches.get((key, batch))
        by_attempt = {} if staged is None else staged.pieces
        chosen: list[tuple[int, Piece]] = []
        seen: set[int] = set()
        for part, attempt, rows in attempts:
            if part in seen:
                raise _refusal(f"part {part} of {_named(key, batch)} is to be committed twice")
            seen.add(part)
            pieces = by_attempt.get((part, attempt), [])
            here = sum(piece.rows for piece in pieces)
            if here != rows:
                raise _refusal(
                    f"{_named(key, batch)} cannot be committed: {here} of {rows} rows of its part "
                    f"{part} (attempt {attempt}) are here; send the batch again"
                )
            chosen += [(part, piece) for piece in pieces]
        return chosen

    def check_commit(self, key: Key, batch: int, pieces: Iterable[Piece]) -> None:
        """Refuse a commit without disk space for its rows: they are copied into logs.

        Raises:
            Refusal: PRECONDITION_FAILED.
        """
        byte_count = sum(piece.size for piece in pieces)
        free, floor = self._files.free(), self.room.floor
        if free - byte_count < floor:
            raise _refusal(
                f"cannot commit {_named(key, batch)}: its rows take {byte_count} bytes, {free} of "
                f"the disk are free, and disk_free_limit is {floor}; make room and commit it again"
            )

    def committing(self, key: Key, batch: int, under_way: bool) -> None:
        """Set whether a batch is being published."""
        staged = self._batches.get((key, batch))
        if staged is not None:
            staged.committing = under_way

    def read(self, key: Key, batch: int, piece: Piece) -> bytes:
        """Read the bytes of a piece.

        Raises:
            Refusal: PRECONDITION_FAILED, they are damaged or lost.
        """
        staged = self._batches[key, batch]
        try:
            data = staged.files[piece.file].read_at(piece.size, piece.start)
        except OSError as error:
            raise _refusal(f"cannot read {_named(key, batch)}: {error.strerror}") from None
        # Pieces are not synced: a power failure may have lost or damaged any of them.
        if len(data) != piece.size or crc32c(data) != piece.check:
            raise _refusal(f"the disk has damaged {_named(key, batch)}; send the batch again")
        return data

    # --- drop -----------------------------------------------------------------------------------

    def drop(self, key: Key, batch: int) -> int:
        """Drop a batch; return how many rows it had.

        Raises:
            Refusal: RESOURCE_LOCKED, it is being committed.
        """
        staged = self._batches.get((key, batch))
        if staged is None:
            return 0
        if staged.committing:
            text = f"{_named(key, batch)} is being committed: it cannot be dropped any more"
            raise Refusal(ErrorKind.RESOURCE_LOCKED, text)
        for file, path in self._taken_out(staged):
            file.close()
            self._gone.append(path)
        self._sweep()
        return staged.rows

    def discard(self, key: Key, batch: int, attempt: Attempt) -> int:
        """Drop a failed attempt; return how many rows it had.

        Its bytes stay in the files of the batch until those have nothing else.
        """
        staged = self._batches.get((key, batch))
        if staged is None or staged.committing:
            return 0
        # Its bytes cannot be removed from the middle of a file.
        rows = sum(piece.rows for piece in staged.pieces.pop(attempt, ()))
        if not staged.pieces:
            self.drop(key, batch)
        return rows

    def drop_below(self, key: Key, batch: int) -> None:
        """Drop a committed batch and those before it; their files are used again."""
        committed = [
            staged
            for (publisher, number), staged in self._batches.items()
            if publisher == key and number < batch and not staged.committing
        ]
        for staged in committed:
            for file, path in self._taken_out(staged):
                self._spares.keep(file, path, self.room.floor)

    def drop_all(self, *keys: Key) -> None:
        """Drop all batches of publishers."""
        publishers = frozenset(keys)
        self._drop_where(lambda key, _: key in publishers)

    def vhost_gone(self, name: str) -> None:
        """Drop all batches of a deleted vhost."""
        self._drop_where(lambda key, _: key.vhost == name)

    def _drop_where(self, selects: Callable[[Key, int], bool]) -> None:
        for (key, number), staged in list(self._batches.items()):
            if selects(key, number) and not staged.committing:
                self.drop(key, number)

    def _taken_out(self, staged: StagedBatch) -> Iterable[tuple[File, str]]:
        """Forget a batch; return its files with their paths."""
        del self._batches[staged.key, staged.number]
        self.shares.remove(staged.key.user)
        self._byte_count -= staged.byte_count
        return zip(staged.files, staged.paths, strict=True)

    def _remove(self, path: str) -> None:
        self._gone.append(path)
        self._sweep()

    def _sweep(self) -> None:
        """Remove files in pieces over several turns: freeing a large file at once takes long."""
        if self._gone:
            # Files that a failing disk does not delete are deleted at the next start.
            with contextlib.suppress(OSError):
                if self._cut(self._gone[0]):
                    self._sweeper.set_earlier(self._clock.steady)
                    return
                self._files.remove(self._gone[0])
            self._gone.popleft()
        if self._gone:
            self._sweeper.set_earlier(self._clock.steady)

    def _cut(self, path: str) -> bool:
        """Truncate a file; False when it is small enough to be removed."""
        file = self._files.open(path)
        try:
            size = file.size()
            if size > STAGE_SWEEP_BYTES:
                file.truncate(size - STAGE_SWEEP_BYTES)
            return size > STAGE_SWEEP_BYTES
        finally:
            file.close()

    # --- inside ---------------------------------------------------------------------------------

    def _make(self, key: Key, batch: int) -> StagedBatch:
        self.shares.check(key.user, cannot=f"cannot stage {_named(key, batch)}")
        try:
            self._files.make_directory(DIRECTORY)
        except OSError as error:
            raise _refusal(f"cannot stage {_named(key, batch)}: {error.strerror}") from None
        staged = self._batches[key, batch] = StagedBatch(key, batch)
        self.shares.add(key.user)
        self._timer.set_earlier(self._clock.steady + self._patience() * _MS)
        return staged

    def _check_room(self, staged: StagedBatch, size: int) -> None:
        """Refuse a piece if there is no room for it.

        Raises:
            Refusal: PRECONDITION_FAILED.
        """
        key, floor = staged.key, self.room.floor
        cannot = f"cannot stage {size} bytes more of {_named(key, staged.number)}"
        free = self._files.free()
        if free - size < floor:
            raise _refusal(
                f"{cannot}: {free} bytes of the disk are free, and disk_free_limit is {floor}; "
                "make room, or drop what is staged and not wanted (`harebell stages list`)"
            )
        # The space that there would be if nothing were staged: a share of it does not shrink with
        # what others stage.
        room = self._byte_count + self._spares.byte_count + free - floor
        for whose, setting, own, share, mine in (
            (f"user '{key.user}'", "user", self.room.user, STAGE_USER_SHARE, _user_of),
            (f"vhost '{key.vhost}'", "vhost", self.room.vhost, STAGE_VHOST_SHARE, _vhost_of),
        ):
            limit = own or int(room * share)
            # All batches together fit: the sum below, over up to a thousand, is not needed.
            if self._byte_count + size <= limit:
                continue
            have = sum(b.byte_count for b in self._batches.values() if mine(b.key) == mine(key))
            if have + size > limit:
                raise _refusal(
                    f"{cannot}: {have} bytes of {whose} are staged, and the most is {limit} "
                    f"(stage_{setting}_limit): raise it, or drop some (`harebell stages list`)"
                )

    def _tend(self) -> None:
        """Drop abandoned batches."""
        now = self._clock.steady
        for (key, number), staged in list(self._batches.items()):
            due = self._due(key, staged)
            if staged.committing:
                continue
            if due <= now:
                rows = self.drop(key, number)
                self.report(
                    "warning",
                    f"{_named(key, number)} of user '{key.user}' in vhost '{key.vhost}' is "
                    f"dropped with {rows} rows: it was not committed in time",
                )
            else:
                self._timer.set_earlier(due)
        # Publishers without a batch have nothing that could be dropped.
        self._left = {key: self._left[key] for key, _ in self._batches if key in self._left}

    def _due(self, key: Key, staged: StagedBatch) -> int:
        """Return when a batch is dropped if no piece arrives."""
        if key in self._present:
            return staged.touched + STAGE_KEEP_SECONDS * _MS
        return max(staged.touched, self._left.get(key, 0)) + self._patience() * _MS


def _no_report(level: str, text: str) -> None:
    """Ignore the report."""


def _user_of(key: Key) -> str:
    return key.user


def _vhost_of(key: Key) -> str:
    return key.vhost


def _refusal(text: str) -> Refusal:
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)


def _named(key: Key, batch: int) -> str:
    return f"batch {batch} of publisher '{key.name}'"
