"""Stage micro-batches as Parquet files beside a table, before they are part of it.

    <table>/_harebell/<key>/<uuid>/[date=2026-01-01/]part-....parquet

Spark writes there; what follows is renames within one file system, which is why a table is a
folder that this machine sees. Readers of Parquet and Delta pass over names that begin with `_`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = "_harebell"
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class StagedFile:
    """A file that Spark has written.

    Args:
        path: where it is.
        final: its path in the table, with the folders of its partition.
        partition: its values by column; None is null.
        size: octets.
        rows: how many.
        modified: when it was written, in milliseconds since 1970.
    """

    path: Path
    final: str
    partition: dict[str, str | None]
    size: int
    rows: int
    modified: int


def key_of(transaction: str) -> str:
    """A name for files and folders that belong to one sink of one query."""
    return hashlib.sha256(transaction.encode()).hexdigest()[:20]


def stage(
    frame: DataFrame,
    table: Path,
    key: str,
    partition_by: tuple[str, ...],
    compression: str = "zstd",
) -> list[StagedFile]:
    """Write a micro-batch; what earlier attempts of this sink have left is removed first.

    Args:
        frame: the rows.
        table: the folder of the table.
        key: of the sink.
        partition_by: columns that become folders.
        compression: of the files.
    """
    clear(table, key)
    directory = table / HIDDEN / key / uuid.uuid4().hex
    # Delta and every newer reader want microseconds, Spark writes INT96 unless told.
    frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = frame.write.option("compression", compression)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(str(directory))
    return _files(directory)


def pass_over(frame: DataFrame) -> None:
    """Compute a batch that is in the table already, and keep nothing of it.

    Spark does not end a batch of which a state store has not heard, such as that of a window.
    """
    frame.write.format("noop").mode("overwrite").save()


def clear(table: Path, key: str) -> None:
    """Remove what was staged."""
    shutil.rmtree(table / HIDDEN / key, ignore_errors=True)


def _files(directory: Path) -> list[StagedFile]:
    import pyarrow.parquet as pq

    found = []
    for path in sorted(directory.rglob("*.parquet")):
        relative = path.relative_to(directory)
        state = path.stat()
        rows = pq.ParquetFile(path).metadata.num_rows
        if rows:
            found.append(
                StagedFile(
                    path,
                    relative.as_posix(),
                    _partition(relative.parts[:-1]),
                    state.st_size,
                    rows,
                    int(state.st_mtime * 1000),
                )
            )
    return found


def _partition(folders: tuple[str, ...]) -> dict[str, str | None]:
    pairs = (directory.partition("=") for directory in folders)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}


def move(files: list[tuple[Path, Path]]) -> None:
    """Put files into their places, and make that last.

    A file that is not where it was is in its place already.
    """
    folders = set()
    for source, target in files:
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
        folders.add(target.parent)
    for directory in sorted(folders):
        sync(directory)


def sync(path: Path) -> None:
    """Make a file or a folder's names survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
