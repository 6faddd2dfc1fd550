"""The spool: deliveries on disk, between the queue and the executors.

    <spoolDir>/<name>/00000000000000000000-00000000000000250000.arrow     positions [0, 250000)
                      00000000000000250000-00000000000000336776.arrow     positions [250000, 336776)
                      receiving.arrow                                     being written

Each connection to the broker has a directory of its own: after a loss its deliveries are repeated,
and a process that was presumed dead cannot write into what its successor reads. The files are
Arrow IPC files, which executors map into memory. A file gets its final name when it is complete,
and is deleted when Spark has committed its rows. It is not synced: after a loss of power the
messages are still in the broker, which got no acknowledgement.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from harebell.base.errors import HarebellError
from harebell.spark.limits import SPARK_ROWS_PER_PARTITION

_FILE = re.compile(r"(\d{20})-(\d{20})\.arrow\Z")
_RECEIVING = "receiving.arrow"


class SpoolError(HarebellError):
    """The spool cannot be written or read."""


@dataclass(frozen=True)
class SpoolSlice:
    """Some rows of a spool file.

    Args:
        path: the file.
        first: first row, from the beginning of the file.
        end: row after the last.
    """

    path: str
    first: int
    end: int


class SpoolPartition(InputPartition):
    """The rows that one task reads.

    Args:
        pieces: in their order.
    """

    def __init__(self, pieces: list[SpoolSlice]) -> None:
        super().__init__(None)
        self.pieces = pieces


def default_root() -> Path:
    """Return the spool of this user in the system's temporary directory, private to the user.

    Raises:
        SpoolError: another user owns it.
    """
    root = Path(tempfile.gettempdir()) / f"harebell-spool-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    # Not `stat`: another user may have put a link there, to a directory of this user.
    status = root.lstat()
    private = not stat.S_IMODE(status.st_mode) & 0o077
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or not private:
        raise SpoolError(
            f"{root} is not a directory that only this user can enter: remove it, or choose "
            "another place with the option spoolDir"
        )
    return root


class Spool:
    """A directory of spool files, written from one connection.

    Args:
        root: the directory of all spools.
        schema: of the record batches.
    """

    def __init__(self, root: Path, schema: pa.Schema) -> None:
        self.name = secrets.token_hex(8)
        self._root = root
        self._directory = root / self.name
        self._schema = schema
        self._file: pa.OSFile | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._first = 0
        self._end = 0

    def write(self, position: int, batch: pa.RecordBatch) -> None:
        """Append a record batch whose first row has this position.

        Raises:
            SpoolError: the disk refuses it.
        """
        with self._explained():
            if self._writer is None:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = pa.OSFile(str(self._directory / _RECEIVING), "wb")
                self._writer = pa.ipc.new_file(self._file, self._schema)
                self._first = self._end = position
            assert position == self._end, "record batches follow each other"
            self._writer.write_batch(batch)
            self._end += batch.num_rows

    def seal(self) -> None:
        """Complete the file that is being written, if any."""
        if self._writer is None:
            return
        with self._explained():
            self._close()
            sealed = self._directory / f"{self._first:020d}-{self._end:020d}.arrow"
            # Only a whole file has a final name, so a process that dies leaves none that is short.
            (self._directory / _RECEIVING).rename(sealed)

    def forget_before(self, position: int) -> None:
        """Delete committed files."""
        for _, end, path in _files(self._directory):
            if end <= position:
                path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Stop writing; complete files stay for the next process."""
        with contextlib.suppress(OSError):
            self._close()

    def drop(self) -> None:
        """Stop writing and delete everything."""
        self.leave()
        drop(self._root, self.name)

    def _close(self) -> None:
        if self._writer is not None and self._file is not None:
            writer, file = self._writer, self._file
            self._writer = self._file = None
            writer.close()
            file.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SpoolError(
                f"cannot write the spool {self._directory}: {error}; choose another place with the "
                "option spoolDir"
            ) from error


def drop(root: Path, name: str) -> None:
    """Delete a spool."""
    shutil.rmtree(root / name, ignore_errors=True)


def plan(
    root: Path,
    name: str,
    first: int,
    end: int,
    partitions: int,
    max_rows: int | None = None,
    minimum: int = SPARK_ROWS_PER_PARTITION,
) -> list[SpoolPartition]:
    """Split positions [first, end) into partitions of about equal size.

    Args:
        root: directory of all spools.
        name: name of the spool.
        first: the first position.
        end: the position after the last.
        partitions: wanted number of partitions; few rows make fewer.
        max_rows: maximum number of rows of a partition.
        minimum: minimum number of rows of a partition.

    Raises:
        FileNotFoundError: not all of them are in the spool.
    """
    pieces: list[tuple[int, SpoolSlice]] = []
    position = first
    for file_first, file_end, path in sorted(_files(root / name)):
        if file_first <= position < file_end and position < end:
            until = min(end, file_end)
            _check(path, file_end - file_first)
            pieces.append(
                (position, SpoolSlice(str(path), position - file_first, until - file_first))
            )
            position = until
    if position < end:
        raise FileNotFoundError(f"positions {position} to {end} are not in the spool {root / name}")
    count = max(1, min(partitions, -(-(end - first) // minimum)))
    if max_rows is not None:
        count = max(count, -(-(end - first) // max_rows))
    bounds = [first + (end - first) * number // count for number in range(count + 1)]
    return [SpoolPartition(_cut(pieces, low, high)) for low, high in pairwise(bounds)]


def _cut(pieces: list[tuple[int, SpoolSlice]], low: int, high: int) -> list[SpoolSlice]:
    """Return the parts of the slices between two positions."""
    spool_slices: list[SpoolSlice] = []
    for position, piece in pieces:
        first = piece.first + max(0, low - position)
        end = min(piece.end, piece.first + high - position)
        if first < end:
            spool_slices.append(SpoolSlice(piece.path, first, end))
    return spool_slices


def read(partition: SpoolPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a partition, mapped into memory, not copied.

    Raises:
        SpoolError: a file is missing or has other columns.
    """
    for piece in partition.pieces:
        reader = _open(Path(piece.path))
        if reader.schema != schema:
            raise SpoolError(
                f"{piece.path} was written with the columns {', '.join(reader.schema.names)}, and "
                f"the query asks for {', '.join(schema.names)} now: use the former schema for one "
                "more run, or remove the file to have its messages delivered again"
            )
        row = 0
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            first, end = max(piece.first, row), min(piece.end, row + batch.num_rows)
            if first < end:
                yield batch.slice(first - row, end - first)
            row += batch.num_rows


def _open(path: Path) -> pa.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except OSError as error:
        raise SpoolError(
            f"cannot read {path}: {error}; the option spoolDir must name a directory that the "
            "driver and every executor share"
        ) from error


def _check(path: Path, rows: int) -> None:
    """Handle a file that a loss of power has torn like a missing one.

    Raises:
        FileNotFoundError: it is not complete.
    """
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        row_count = sum(reader.get_batch(n).num_rows for n in range(reader.num_record_batches))
    except (pa.ArrowInvalid, OSError) as error:
        raise FileNotFoundError(f"{path} is torn: {error}") from error
    if row_count != rows:
        raise FileNotFoundError(f"{path} has {row_count} rows instead of {rows}")


def _files(directory: Path) -> list[tuple[int, int, Path]]:
    if not directory.is_dir():
        return []
    files = [(_FILE.match(path.name), path) for path in directory.iterdir()]
    return [(int(match[1]), int(match[2]), path) for match, path in files if match]
