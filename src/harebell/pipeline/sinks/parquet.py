"""Sink: micro-batches as Parquet files in a directory, each batch once.

    1  Spark writes the batch beside the folder's files (staging)
    2  <folder>/_harebell/<key>.json says which files belong where, and to which batch: from here
       on the batch is in
    3  the files are renamed to their places
    4  the same file says that this is done

When a batch comes again, step 2 is there: the renames are finished, and nothing is written. Files
that wait between 2 and 3 are finished when the pipeline starts again, whatever comes then.
Spark's own log of files (`_spark_metadata`) would bind the folder to one query and grow for ever.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ParquetSink:
    """A folder of Parquet files.

    Args:
        directory: the folder.
        transaction: names this sink of this query, for ever.
        partition_by: columns that become folders.
        compression: of the files.
    """

    def __init__(
        self, directory: Path, transaction: str, partition_by: tuple[str, ...], compression: str
    ) -> None:
        self._folder = directory
        self._key = staging.key_of(transaction)
        self._partition_by = partition_by
        self._compression = compression
        self._note = directory / staging.HIDDEN / f"{self._key}.json"

    def write(self, frame: DataFrame, batch: int) -> int:
        """Put a batch in, unless it is in; how many rows were put in.

        Raises:
            PipelineError: the folder is a Delta table.
        """
        if (self._folder / "_delta_log").is_dir():
            raise PipelineError(
                f"the folder {self._folder} is a Delta table, which would not have these files: "
                "write to it as delta, or to another folder"
            )
        last = self._finished()
        if last is not None and last >= batch:
            staging.pass_over(frame)
            return 0
        files = staging.stage(frame, self._folder, self._key, self._partition_by, self._compression)
        moves = [
            (each.path, self._folder / _named(each.final, self._key, batch, number))
            for number, each in enumerate(files)
        ]
        for each in files:
            staging.sync(each.path)
        pairs = [(str(source), str(target)) for source, target in moves]
        self._say({"batch": batch, "moves": pairs})
        staging.move(moves)
        self._say({"batch": batch, "moves": []})
        staging.clear(self._folder, self._key)
        return sum(each.rows for each in files)

    def _finished(self) -> int | None:
        """The last batch that is in; renames that were interrupted are finished."""
        try:
            note = json.loads(self._note.read_text())
        except FileNotFoundError:
            return None
        batch = int(note["batch"])
        if note["moves"]:
            staging.move([(Path(source), Path(target)) for source, target in note["moves"]])
            self._say({"batch": batch, "moves": []})
        return batch

    def _say(self, note: dict[str, Any]) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._note.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump(note, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._note)
        staging.sync(self._note.parent)


def _named(final: str, key: str, batch: int, number: int) -> str:
    """A name in the folder that tells which batch of which sink a file is of."""
    parent, _, name = final.rpartition("/")
    ending = name.partition(".")[2]
    place = f"{parent}/" if parent else ""
    return f"{place}part-{key}-{batch:08d}-{number:04d}.{ending}"
