"""The files of a table at one moment: what a replay that goes on later reads again.

Tables grow and are compacted. A replay that is resumed has to see the same rows, so it stores which
files they are in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.delta import delta
from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace, catalog_errors, loaded, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class PinnedTable:
    """A table at one moment.

    Args:
        name: its path, or its name in a catalog.
        base: the directory from which the directories of partitions count; "" for none.
        files: paths below the base.
        schema: the columns as Spark's JSON; "" lets the files say them.
    """

    name: str
    base: str
    files: tuple[str, ...]
    schema: str = ""

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows.

        Raises:
            PipelineError: a file is gone.
        """
        from pyspark.sql.types import StructType

        for file in self.files:
            if "://" not in file and not Path(file).exists():
                raise PipelineError(
                    f"the file {file} of the table {self.name} is gone since the replay began: "
                    "restore it, or begin another replay with a new checkpoint"
                )
        reader = spark.read
        if self.schema:
            reader = reader.schema(StructType.fromJson(json.loads(self.schema)))
            # Spark reads no empty list of files.
            if not self.files:
                return spark.createDataFrame([], StructType.fromJson(json.loads(self.schema)))
        if self.base:
            reader = reader.option("basePath", self.base)
        return reader.parquet(*self.files)


def pinned(path: Path) -> PinnedTable:
    """Return a Delta table, or a directory of Parquet files.

    Raises:
        PipelineError: there is none.
    """
    path = path.resolve()
    if (path / "_delta_log").is_dir():
        table = delta().DeltaTable(str(path))
        schema = table.schema().to_json()
        return PinnedTable(str(path), str(path), tuple(sorted(table.file_uris())), schema)
    files = sorted(
        str(file)
        for file in path.rglob("*.parquet")
        if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
    )
    if not files:
        raise PipelineError(f"there is no table at {path}: neither a Delta log nor Parquet files")
    return PinnedTable(str(path), str(path), tuple(files))


def pinned_in_catalog(name: str, place: CatalogPlace) -> PinnedTable:
    """Return an Iceberg table.

    Raises:
        PipelineError: there is none, or Spark cannot read its files as they are.
    """
    table = loaded(opened(place), name)
    if table is None:
        raise PipelineError(f"there is no table {name} in the Iceberg catalog {place.shown}")
    with catalog_errors(place, f"the Iceberg table {name} cannot be read"):
        tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise PipelineError(
            f"the Iceberg table {name} has deleted rows in files of their own, which only an "
            "engine of Iceberg applies: rewrite its data files first"
        )
    files = sorted(task.file.file_path.removeprefix("file://") for task in tasks)
    return PinnedTable(name, "", tuple(files))
