"""Stage micro-batches as Parquet files beside a table, before they are part of it.

    <table>/_harebell/<key>/<uuid>/[date=2026-01-01/]part-....parquet

Spark writes there; the following steps are renames within one file system, so the table must be a
directory on this machine. Readers of Parquet and Delta ignore names that begin with `_`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from harebell.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = "_harebell"
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class StagedFile:
    """A file that Spark has written.

    Args:
        path: its staging path.
        final: its path in the table, with the directories of its partition.
        partition: its values by column; None is null.
        size: size in bytes.
        rows: number of rows.
        modified: when it was written, in milliseconds since 1970.
    """

    path: Path
    final: str
    partition: dict[str, str | None]
    size: int
    rows: int
    modified: int


def key_of(transaction: str) -> str:
    """Return a name for files and directories of one sink of one query."""
    return hashlib.sha256(transaction.encode()).hexdigest()[:20]


def stage(
    frame: DataFrame,
    table: Path,
    key: str,
    partition_by: tuple[str, ...],
    compression: str = "zstd",
) -> list[StagedFile]:
    """Write a micro-batch; first remove what earlier attempts of this sink have left.

    Args:
        frame: the rows.
        table: directory of the table.
        key: of the sink.
        partition_by: columns that become directories.
        compression: of the files.
    """
    # A killed attempt leaves files that no log has.
    clear(table, key)
    directory = table / HIDDEN / key / uuid.uuid4().hex
    # Delta and every newer reader require microseconds; Spark's default is INT96.
    frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = frame.write.option("compression", compression)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(str(directory))
    return _files(directory)


def prepare(table: Path) -> None:
    """Create the directory for staged files, so that Python names what hinders it.

    Raises:
        OSError: it cannot be created or written.
    """
    directory = table / HIDDEN
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / uuid.uuid4().hex
    # Spark would fail in a task, with an error of Hadoop.
    probe.touch()
    probe.unlink()


def has_batch(last: int | None, batch: int, what: str) -> bool:
    """Return whether a table has a batch, which is the last one then: only that is repeated.

    Args:
        last: batch that the table has; None or -1 for none.
        batch: that is to be written.
        what: the table, for the error.

    Raises:
        PipelineError: the table has later batches, so the checkpoint is an older one.
    """
    if last is None or batch > last:
        return False
    if batch < last:
        raise PipelineError(
            f"the {what} has the micro-batches up to {last} of this query, and micro-batch {batch} "
            "comes: the checkpoint was put back to an older state, and what comes under these "
            "numbers would not be written. Put the newer checkpoint back; or give the sink "
            "another name, which writes again what came after the older state"
        )
    return True


def pass_over(frame: DataFrame) -> None:
    """Compute a batch that is in the table already, and discard the result.

    Spark does not complete a batch whose state stores were not updated, such as that of a window.
    """
    frame.write.format("noop").mode("overwrite").save()


def clear(table: Path, key: str) -> None:
    """Remove staged files."""
    shutil.rmtree(table / HIDDEN / key, ignore_errors=True)


def _files(directory: Path) -> list[StagedFile]:
    import pyarrow.parquet as pq

    files = []
    for path in sorted(directory.rglob("*.parquet")):
        relative = path.relative_to(directory)
        state = path.stat()
        rows = pq.ParquetFile(path).metadata.num_rows
        # Spark writes a file without rows for an empty partition.
        if rows:
            files.append(
                StagedFile(
                    path,
                    relative.as_posix(),
                    _partition(relative.parts[:-1]),
                    state.st_size,
                    rows,
                    int(state.st_mtime * 1000),
                )
            )
    return files


def _partition(directories: tuple[str, ...]) -> dict[str, str | None]:
    pairs = (directory.partition("=") for directory in directories)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}


def move(files: list[tuple[Path, Path]]) -> None:
    """Rename files to their final paths, and sync the directories.

    A file that is not in staging was renamed before.
    """
    directories = set()
    for source, target in files:
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
        directories.add(target.parent)
    for directory in sorted(directories):
        sync(directory)


def sync(path: Path) -> None:
    """Sync a file, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store(file: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file, durably: after a crash it has the old content or the new one.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    with draft.open("w") as out:
        json.dump(document, out)
        out.flush()
        # Before the rename: else its name could be on disk before its content.
        os.fsync(out.fileno())
    draft.replace(file)
    sync(file.parent)
