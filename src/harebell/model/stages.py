"""Batches that arrive in parts, from many writers, and are published together or not at all.

A batch belongs to a publisher and has a number. Its parts are written by tasks that may fail and be
tried again, so each attempt is kept apart, and the commit says which attempts count. A batch is
kept in a file of its own, which holds nothing but the pieces as they came; what stands where is
known in memory only, for staged batches need not survive the process: whoever commits one that is
not here is told so, and sends it again.

    stages/<number>     piece | piece | piece ...

What waits for longer than `STAGE_KEEP_SECONDS` is dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import (
    STAGE_BATCH_BYTES,
    STAGE_BATCH_ROWS,
    STAGE_KEEP_SECONDS,
    STAGES_BYTES,
    STAGES_COUNT,
)
from harebell.base.ports import File, Files
from harebell.base.timers import Timers
from harebell.kernels.records import crc32c
from harebell.model.publishers import Key

FOLDER = "stages"
_MS = 1000

Attempt = tuple[int, int]
"""A part of a batch, and which attempt to write it."""


class Piece(NamedTuple):
    """A piece of an attempt.

    Args:
        columns: what its sender calls its columns.
        start: where it stands in the file.
        size: its octets.
        rows: how many it has.
        check: of its octets.
    """

    columns: str
    start: int
    size: int
    rows: int
    check: int


class StagedBatch:
    """What is here of one batch.

    Args:
        path: of its file.

    Attributes:
        path: as given.
        pieces: of each attempt, in their order.
        octets: in the file.
        touched: when something last came, in milliseconds of the clock that only passes.
        file: open as long as the batch is here.
    """

    def __init__(self, path: str, file: File) -> None:
        self.path = path
        self.file = file
        self.pieces: dict[Attempt, list[Piece]] = {}
        self.octets = 0
        self.touched = 0


class Stages:
    """All staged batches of a broker.

    Args:
        files: the data directory.
        clock: the time.
        timers: wake it when something has been here for too long.
    """

    def __init__(self, files: Files, clock: Clock, timers: Timers) -> None:
        self._files = files
        self._clock = clock
        self._timer = timers.timer(self._tend)
        self._batches: dict[tuple[Key, int], StagedBatch] = {}
        self._octets = 0
        self._made = 0
        with contextlib.suppress(OSError):
            for name in files.names(FOLDER):
                files.remove(f"{FOLDER}/{name}")

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def octets(self) -> int:
        """What all staged batches take on disk."""
        return self._octets

    def append(
        self, key: Key, batch: int, attempt: Attempt, number: int, piece: Piece, data: bytes
    ) -> tuple[int, int]:
        """Keep a piece.

        Args:
            key: the publisher.
            batch: its number.
            attempt: what it is a piece of.
            number: of the piece within the attempt, from 0; one that is here already is passed
                over if it is the same.
            piece: what it is; `start` is found here.
            data: its octets.

        Returns:
            How many rows and octets of the attempt are here.

        Raises:
            Refusal: PRECONDITION_FAILED, a piece is missing before it, or there is no room.
        """
        staged = self._batches.get((key, batch)) or self._make(key, batch)
        pieces = staged.pieces.setdefault(attempt, [])
        staged.touched = self._clock.steady
        if number > len(pieces):
            raise _refusal(
                f"piece {number} of part {attempt[0]} of {_named(key, batch)} came, and "
                f"{len(pieces)} is the next"
            )
        if number < len(pieces):
            known = pieces[number]
            if (known.check, known.size, known.columns) != (piece.check, len(data), piece.columns):
                raise _refusal(
                    f"piece {number} of part {attempt[0]} of {_named(key, batch)} is here already, "
                    "and was another"
                )
        else:
            self._check_room(key, batch, staged, len(data))
            try:
                _write(staged.file, data, staged.octets)
            except OSError as error:
                raise _refusal(f"cannot stage {_named(key, batch)}: {error.strerror}") from None
            pieces.append(piece._replace(start=staged.octets, size=len(data)))
            staged.octets += len(data)
            self._octets += len(data)
        return sum(each.rows for each in pieces), sum(each.size for each in pieces)

    def chosen(
        self, key: Key, batch: int, wanted: Iterable[tuple[int, int, int]]
    ) -> list[tuple[int, Piece]]:
        """The pieces of those attempts that count, each with the number of its part.

        Args:
            key: the publisher.
            batch: the batch.
            wanted: part, attempt and rows of each.

        Raises:
            Refusal: PRECONDITION_FAILED, not all of them are here as they are wanted.
        """
        staged = self._batches.get((key, batch))
        known = {} if staged is None else staged.pieces
        found: list[tuple[int, Piece]] = []
        seen: set[int] = set()
        total = 0
        for part, attempt, rows in wanted:
            if part in seen:
                raise _refusal(f"part {part} of {_named(key, batch)} is to be committed twice")
            seen.add(part)
            pieces = known.get((part, attempt), [])
            here = sum(piece.rows for piece in pieces)
            if here != rows:
                raise _refusal(
                    f"{_named(key, batch)} cannot be committed: {here} of {rows} rows of its part "
                    f"{part} (attempt {attempt}) are here; send the batch again"
                )
            total += rows
            found += [(part, piece) for piece in pieces]
        if total > STAGE_BATCH_ROWS:
            raise _refusal(
                f"{_named(key, batch)} has {total} rows, and the most is {STAGE_BATCH_ROWS}: "
                "make smaller batches"
            )
        return found

    def read(self, key: Key, batch: int, piece: Piece) -> bytes:
        """The octets of a piece.

        Raises:
            Refusal: PRECONDITION_FAILED, the disk has not kept them.
        """
        staged = self._batches[key, batch]
        try:
            data = staged.file.read_at(piece.size, piece.start)
        except OSError as error:
            raise _refusal(f"cannot read {_named(key, batch)}: {error.strerror}") from None
        if len(data) != piece.size or crc32c(data) != piece.check:
            raise _refusal(f"the disk has damaged {_named(key, batch)}; send the batch again")
        return data

    def drop(self, key: Key, batch: int) -> int:
        """Forget a batch; returns how many rows it had."""
        staged = self._batches.pop((key, batch), None)
        if staged is None:
            return 0
        self._octets -= staged.octets
        staged.file.close()
        # What a broken disk keeps goes with the next start.
        with contextlib.suppress(OSError):
            self._files.remove(staged.path)
        return sum(piece.rows for pieces in staged.pieces.values() for piece in pieces)

    def drop_below(self, key: Key, batch: int) -> None:
        """A batch is committed: forget it, and those before it."""
        for known, number in list(self._batches):
            if known == key and number < batch:
                self.drop(known, number)

    def drop_all(self, key: Key) -> None:
        """Forget every batch of a publisher."""
        for known, number in list(self._batches):
            if known == key:
                self.drop(known, number)

    def vhost_gone(self, name: str) -> None:
        """A vhost is deleted, and what was staged there with it."""
        for known, number in list(self._batches):
            if known.vhost == name:
                self.drop(known, number)

    # --- inside ---------------------------------------------------------------------------------

    def _make(self, key: Key, batch: int) -> StagedBatch:
        if len(self._batches) >= STAGES_COUNT:
            raise _refusal(
                f"cannot stage {_named(key, batch)}: {STAGES_COUNT} batches are staged and not "
                "committed"
            )
        path = f"{FOLDER}/{self._made}"
        self._made += 1
        try:
            self._files.make_folder(FOLDER)
            file = self._files.open(path, create=True)
        except OSError as error:
            raise _refusal(f"cannot stage {_named(key, batch)}: {error.strerror}") from None
        staged = self._batches[key, batch] = StagedBatch(path, file)
        self._timer.set_earlier(self._clock.steady + STAGE_KEEP_SECONDS * _MS)
        return staged

    def _check_room(self, key: Key, batch: int, staged: StagedBatch, size: int) -> None:
        for have, most, what in (
            (staged.octets, STAGE_BATCH_BYTES, "of it"),
            (self._octets, STAGES_BYTES, "of all batches"),
        ):
            if have + size > most:
                raise _refusal(
                    f"cannot stage {size} octets more of {_named(key, batch)}: {have} {what} are "
                    f"staged, and the most is {most}"
                )
        free = self._files.free()
        if size > free:
            raise _refusal(
                f"cannot stage {size} octets more of {_named(key, batch)}: {free} are free"
            )

    def _tend(self) -> None:
        """Drop what has been here for too long."""
        now, keep = self._clock.steady, STAGE_KEEP_SECONDS * _MS
        for (key, number), staged in list(self._batches.items()):
            if now - staged.touched >= keep:
                self.drop(key, number)
        if self._batches:
            oldest = min(staged.touched for staged in self._batches.values())
            self._timer.set_earlier(oldest + keep)


def _refusal(text: str) -> Refusal:
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)


def _named(key: Key, batch: int) -> str:
    return f"batch {batch} of publisher '{key.name}'"


def _write(file: File, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = file.write_at(view, offset)
        offset += done
        view = view[done:]
