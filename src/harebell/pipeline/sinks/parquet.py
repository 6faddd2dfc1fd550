"""Sink: micro-batches as Parquet files in a directory, each batch once.

    1  Spark writes the batch beside the table's files (staging)
    2  <directory>/_harebell/<key>.json lists the final paths of the files, and the batch: from here
       on the batch is committed
    3  the files are renamed to their final paths
    4  the same file records that this is done

When a batch is repeated after step 2, the renames are finished, and nothing is written. Files
between steps 2 and 3 are also renamed when the pipeline starts again, whichever batch comes next.
Spark's own log of files (`_spark_metadata`) would bind the table to one query and only grow. Spark
reads no other files where there is one, so such a directory is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging
from harebell.pipeline.sinks.known_table import KnownTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ParquetSink:
    """Write micro-batches to a directory of Parquet files.

    Args:
        directory: where the files go.
        transaction: permanent name of this sink of this query.
        known: the directory that the query has written to.
        partition_by: columns that become directories.
        compression: of the files.
    """

    def __init__(
        self,
        directory: Path,
        transaction: str,
        known: KnownTable,
        partition_by: tuple[str, ...],
        compression: str,
    ) -> None:
        self._directory = directory
        self._what = f"Parquet directory {directory}"
        self._known = known
        self._key = staging.key_of(transaction)
        self._partition_by = partition_by
        self._compression = compression
        self._note = directory / staging.HIDDEN / f"{self._key}.json"

    def write(self, frame: DataFrame, batch: int) -> int:
        """Write a batch, unless it is committed; return the number of rows written.

        Raises:
            PipelineError: the directory is a Delta table, it has Spark's own log of files, it is
                gone, or it cannot be written.
        """
        try:
            return self._write(frame, batch)
        except OSError as error:
            raise PipelineError(
                f"the Parquet files in {self._directory} cannot be written: "
                f"{error.strerror or error}; a micro-batch is not lost by this, and is written "
                "when the pipeline runs again"
            ) from error

    def _write(self, frame: DataFrame, batch: int) -> int:
        if (self._directory / "_delta_log").is_dir():
            raise PipelineError(
                f"the directory {self._directory} is a Delta table, which would not have these "
                "files: write to it as delta, or to another directory"
            )
        if (self._directory / "_spark_metadata").is_dir():
            raise PipelineError(
                f"the directory {self._directory} has Spark's own log of files (_spark_metadata), "
                "and readers with Spark would see only the files in it: write to another "
                "directory, or move _spark_metadata away, if all files beside it are wanted"
            )
        last = self._finished()
        self._known.check(None if last is None else self._key, self._what, last)
        if last is not None:
            # Also where a crash, or an earlier version, has not stored it.
            self._known.store(self._key, self._what, last)
        if staging.has_batch(last, batch, self._what):
            staging.pass_over(frame)
            return 0
        staging.prepare(self._directory)
        files = staging.stage(
            frame, self._directory, self._key, self._partition_by, self._compression
        )
        moves = [
            (each.path, self._directory / _named(each.final, self._key, batch, number))
            for number, each in enumerate(files)
        ]
        # Spark does not sync: a power loss after the note could leave a file without its end.
        for each in files:
            staging.sync(each.path)
        pairs = [(str(source), str(target)) for source, target in moves]
        # From here on the batch is committed: a crash leaves renames, which `_finished` ends.
        staging.store(self._note, {"batch": batch, "moves": pairs})
        staging.move(moves)
        staging.store(self._note, {"batch": batch, "moves": []})
        self._known.store(self._key, self._what, batch)
        staging.clear(self._directory, self._key)
        return sum(each.rows for each in files)

    def _finished(self) -> int | None:
        """Return the last committed batch; finish interrupted renames."""
        try:
            note = json.loads(self._note.read_text())
        except FileNotFoundError:
            return None
        batch = int(note["batch"])
        if note["moves"]:
            staging.move([(Path(source), Path(target)) for source, target in note["moves"]])
            staging.store(self._note, {"batch": batch, "moves": []})
        return batch


def _named(final: str, key: str, batch: int, number: int) -> str:
    """Return a file name that identifies the batch and the sink."""
    parent, _, name = final.rpartition("/")
    ending = name.partition(".")[2]
    place = f"{parent}/" if parent else ""
    return f"{place}part-{key}-{batch:08d}-{number:04d}.{ending}"
