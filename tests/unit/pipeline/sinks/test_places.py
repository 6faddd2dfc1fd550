"""What hinders a sink is told with the place, before Spark computes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.delta import DeltaSink
from harebell.pipeline.sinks.evolving import check_names
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.parquet import ParquetSink
from harebell.pipeline.sinks.table_form import TableForm

NO_FRAME: Any = None
"""The rows, which no sink looks at where it has no place for them."""


def test_a_file_in_the_place_of_a_table_is_named(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.write_text("not a directory")
    known = KnownTable(tmp_path / "checkpoint", "q")
    for sink, what in (
        (ParquetSink(place, "q/parquet", known, (), "zstd"), "Parquet files in"),
        (DeltaSink(place, "q/delta", None, TableForm()), "Delta table"),
    ):
        with pytest.raises(PipelineError) as caught:
            sink.write(NO_FRAME, 0)
        said = str(caught.value)
        assert said.startswith(f"the {what} {place} cannot be written: Not a directory")
        assert "a micro-batch is not lost by this" in said


def test_columns_whose_names_differ_in_case_only_are_refused_with_both_names() -> None:
    check_names(["id", "total"], "Delta table lake")
    with pytest.raises(PipelineError, match="Delta table lake have the columns id and ID"):
        check_names(["id", "total", "ID"], "Delta table lake")
