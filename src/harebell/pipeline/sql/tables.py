"""Read tables on disk as data frames: Delta if the directory has its log, else Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.delta import delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lake_of(spark: SparkSession, name: str, root: Path) -> DataFrame:
    """Return a table.

    Args:
        spark: the session.
        name: its path, absolute or relative.
        root: base of a relative path.

    Raises:
        PipelineError: it does not exist.
    """
    path, is_delta = place_of(name, root)
    return _delta(spark, path) if is_delta else spark.read.parquet(str(path))


def place_of(name: str, root: Path) -> tuple[Path, bool]:
    """Return where a table is, and whether it is one of Delta; for the arguments see `lake_of`.

    Raises:
        PipelineError: it does not exist, or its directory cannot be read.
    """
    path = root / name
    try:
        path = path.expanduser()
        if (path / "_delta_log").is_dir():
            return path, True
        found = any(path.rglob("*.parquet"))
    # RuntimeError: `~ann`, and there is no such user.
    except (OSError, RuntimeError) as error:
        raise PipelineError(f"there is no table at {path} that can be read: {error}") from None
    if not found:
        raise PipelineError(f"there is no table at {path}: neither a Delta log nor Parquet files")
    return path, False


def _delta(spark: SparkSession, path: Path) -> DataFrame:
    from pyspark.sql.types import StructType

    table = delta().DeltaTable(str(path))
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    files = table.file_uris()
    if not files:
        return spark.createDataFrame([], schema)
    # Partition columns are not in the files; basePath lets Spark find them in the paths.
    return spark.read.schema(schema).option("basePath", str(path)).parquet(*files)
