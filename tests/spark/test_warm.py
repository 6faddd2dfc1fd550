"""The class-data archive is made, and sessions start from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harebell.spark.java import find_java
from harebell.spark.places import find_places
from harebell.spark.warming import warm

pytestmark = pytest.mark.timeout(1_200)


def test_a_session_maps_the_archive_that_was_made(spark: SparkSession) -> None:
    # The fixture made it, before it started the session.
    archive, made = warm()
    assert not made
    assert archive == find_places(find_java()).archive
    machine = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    assert str(archive) in Path(f"/proc/{machine.getPid()}/maps").read_text()


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    def where(batches: object) -> object:
        import pyarrow
        import pyspark

        for _ in batches:  # type: ignore[attr-defined]
            yield pyarrow.RecordBatch.from_pydict({"file": [pyspark.__file__]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(where, "file string").collect()
    assert "pyspark.zip" not in row["file"]
