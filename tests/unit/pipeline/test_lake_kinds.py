"""A directory is a Delta table or has plain Parquet files: what one kind writes the other hides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import staging
from harebell.pipeline.sinks.delta import DeltaSink
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.parquet import ParquetSink
from harebell.pipeline.sinks.table_form import TableForm

NOTHING: Any = None
"""It is refused before the rows are looked at."""


def parquet(directory: Path) -> ParquetSink:
    known = KnownTable(directory / "checkpoint", staging.key_of("t"))
    return ParquetSink(directory, "t", known, (), "zstd")


def test_plain_files_are_not_put_into_a_delta_table(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    with pytest.raises(PipelineError, match="is a Delta table, which would not have these files"):
        parquet(tmp_path).write(NOTHING, 0)


def test_files_are_not_put_where_readers_with_spark_would_not_see_them(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(PipelineError, match=r"has Spark's own log of files \(_spark_metadata\)"):
        parquet(tmp_path).write(NOTHING, 0)


def test_a_delta_table_is_not_begun_where_a_pipeline_has_plain_files(tmp_path: Path) -> None:
    note = tmp_path / staging.HIDDEN / f"{staging.key_of('t')}.json"
    note.parent.mkdir()
    note.write_text('{"batch": 0, "moves": []}')
    with pytest.raises(PipelineError, match="has Parquet files, which a Delta table there would"):
        DeltaSink(tmp_path, "other", None, TableForm()).write(NOTHING, 0)
