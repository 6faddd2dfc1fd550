"""The sinks of Delta, Iceberg and Parquet: batches once, new columns, and what they refuse."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks import delta, iceberg_expiry
from harebell.pipeline.sinks.iceberg import IcebergSink
from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace
from harebell.pipeline.sinks.iceberg_compaction import compact
from harebell.pipeline.sinks.known_table import KnownTable
from harebell.pipeline.sinks.parquet import ParquetSink
from harebell.pipeline.sinks.staging import key_of
from harebell.pipeline.sinks.table_form import TableForm
from tests.refusing_store import refusing_store
from tests.spark.lakes import KINDS, NAME, Lake

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def orders(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last).selectExpr(
        "id",
        "id * 1.5D AS total",
        "DATE '2026-01-01' + CAST(id % 2 AS INT) AS day",
        "TIMESTAMP '2026-01-01 12:00:00' AS time",
        "map('n', CAST(id AS STRING)) AS headers",
        "named_struct('app', 'till', 'n', CAST(id AS SMALLINT)) AS properties",
        "encode(CAST(id AS STRING), 'utf-8') AS value",
    )


def test_a_micro_batch_that_is_repeated_is_written_once(spark: SparkSession, lake: Lake) -> None:
    assert lake.sink(partition_by=("day",)).write(orders(spark, 0, 10), 0) == 10
    assert lake.sink(partition_by=("day",)).write(orders(spark, 0, 10), 0) == 0
    sink = lake.sink(partition_by=("day",))
    assert sink.write(orders(spark, 10, 15), 1) == 5
    assert sink.write(orders(spark, 0, 0), 2) == 0
    assert sink.write(orders(spark, 10, 15), 1) == 0
    # Only the last one is repeated.
    with pytest.raises(PipelineError, match="put back to an older state"):
        sink.write(orders(spark, 20, 25), 0)
    assert [row["id"] for row in lake.rows()] == list(range(15))
    assert lake.rows()[3]["total"] == 4.5
    assert lake.on_disk() == lake.files()


def test_two_queries_write_to_one_table_and_each_counts_its_own_batches(
    spark: SparkSession, lake: Lake
) -> None:
    for transaction in ("a/sink", "b/sink", "a/sink", "b/sink"):
        lake.sink(transaction).write(orders(spark, 0, 5), 0)
    assert [row["id"] for row in lake.rows()] == sorted([*range(5), *range(5)])


def test_new_columns_are_added_with_merge_schema_and_missing_ones_are_null(
    spark: SparkSession, lake: Lake
) -> None:
    lake.sink().write(orders(spark, 0, 2), 0)
    wider = orders(spark, 2, 4).selectExpr("*", "'eu' AS region").drop("total")
    said = "has other columns: total is double there and missing here, region is missing there"
    with pytest.raises(PipelineError, match=f"{said} and string here; set mergeSchema: true"):
        lake.sink().write(wider, 1)
    assert lake.sink(merge_schema=True).write(wider, 1) == 2
    assert lake.sink(merge_schema=True).write(wider, 1) == 0
    found = [(row["id"], row["total"], row["region"]) for row in lake.rows()]
    assert found == [(0, 0.0, None), (1, 1.5, None), (2, None, "eu"), (3, None, "eu")]
    assert lake.on_disk() == lake.files()


def test_a_column_of_another_type_is_one_sentence_and_leaves_the_table_as_it_was(
    spark: SparkSession, lake: Lake
) -> None:
    lake.sink().write(orders(spark, 0, 2), 0)
    other = orders(spark, 2, 4).selectExpr("* EXCEPT (total)", "CAST(total AS STRING) AS total")
    for merge in (False, True):
        with pytest.raises(PipelineError, match="total is double there and string here") as caught:
            lake.sink(merge_schema=merge).write(other, 1)
        assert "\n" not in str(caught.value)
    with pytest.raises(PipelineError, match="rows have Total: names must differ in more than case"):
        lake.sink(merge_schema=True).write(
            orders(spark, 2, 4).selectExpr("* EXCEPT (total)", "total AS Total"), 1
        )
    with pytest.raises(PipelineError, match="partitioned by nothing; partitionBy says day"):
        lake.sink(partition_by=("day",)).write(orders(spark, 2, 4), 1)
    with pytest.raises(PipelineError, match="names the column hour, which the rows lack"):
        lake.sink(partition_by=("hour",)).write(orders(spark, 2, 4), 1)
    assert [row["id"] for row in lake.rows()] == [0, 1]
    assert lake.on_disk() == lake.files()


def test_partitions_that_are_no_whole_columns_are_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.sink().write(orders(spark, 0, 2), 0)
    with lake.iceberg().update_spec() as update:
        update.add_field("time", "day")
    for by in ((), ("time",)):
        with pytest.raises(PipelineError, match=r"partitioned by day\(time\), and rows") as caught:
            lake.sink(partition_by=by).write(orders(spark, 2, 4), 1)
        assert "\n" not in str(caught.value)
    assert [row["id"] for row in lake.rows()] == [0, 1]
    assert lake.on_disk() == lake.files()


def test_a_micro_batch_replaces_the_table_with_the_mode_overwrite(
    spark: SparkSession, lake: Lake
) -> None:
    for batch, (first, last) in enumerate(((0, 5), (3, 8), (9, 9))):
        lake.sink(overwrite=True).write(orders(spark, first, last), batch)
        lake.sink(overwrite=True).write(orders(spark, first, last), batch)
        assert [row["id"] for row in lake.rows()] == list(range(first, last))


def test_small_files_are_merged_and_no_row_changes(spark: SparkSession, lake: Lake) -> None:
    sink = lake.sink(partition_by=("day",), compact_every=4)
    for batch in range(8):
        sink.write(orders(spark, batch * 5, batch * 5 + 5).coalesce(1), batch)
    assert [row["id"] for row in lake.rows()] == list(range(40))
    assert len(lake.files()) <= 6
    assert lake.sink(partition_by=("day",)).write(orders(spark, 35, 40), 7) == 0


def test_a_micro_batch_is_known_after_the_versions_of_its_table_have_expired(
    spark: SparkSession, lake: Lake
) -> None:
    for batch in range(3):
        lake.sink().write(orders(spark, batch * 5, batch * 5 + 5), batch)
    if lake.kind == "iceberg":
        assert iceberg_expiry.expire(lake.iceberg(), 0, 1).snapshots == 2
    else:
        delta.expire(lake.path, 0, dry_run=False)
    assert lake.sink().write(orders(spark, 10, 15), 2) == 0
    assert lake.sink().write(orders(spark, 15, 20), 3) == 5
    assert [row["id"] for row in lake.rows()] == list(range(20))


def test_a_table_that_is_gone_or_another_one_ends_the_query_with_one_sentence(
    spark: SparkSession, lake: Lake
) -> None:
    lake.sink().write(orders(spark, 0, 5), 0)
    place = lake.path if lake.kind == "delta" else lake.directory / "catalog.db"
    away = place.rename(lake.directory / "away")
    with pytest.raises(PipelineError, match="is gone, and this checkpoint counts what was written"):
        lake.sink().write(orders(spark, 5, 10), 1)
    assert not lake.there()
    lake.sink("other/sink").write(orders(spark, 0, 5), 0)
    with pytest.raises(PipelineError, match="is another table than before"):
        lake.sink().write(orders(spark, 5, 10), 1)
    assert [row["id"] for row in lake.rows()] == list(range(5))
    place.rename(lake.directory / "other")
    away.rename(place)
    assert lake.sink().write(orders(spark, 5, 10), 1) == 5
    assert [row["id"] for row in lake.rows()] == list(range(10))


def test_an_older_copy_of_a_table_ends_the_query_until_a_newer_one_is_back(
    spark: SparkSession, lake: Lake
) -> None:
    lake.sink().write(orders(spark, 0, 5), 0)
    place = lake.path if lake.kind == "delta" else lake.directory / "catalog.db"
    old, new = lake.directory / "old", lake.directory / "new"
    copied(place, old)
    lake.sink().write(orders(spark, 5, 10), 3)
    place.rename(new)
    copied(old, place)
    for batch in (3, 4):
        with pytest.raises(PipelineError, match="older than this checkpoint: its last micro-batch"):
            lake.sink().write(orders(spark, 10, 15), batch)
    assert [row["id"] for row in lake.rows()] == list(range(5))
    place.rename(lake.directory / "older")
    new.rename(place)
    assert lake.sink().write(orders(spark, 10, 15), 4) == 5
    assert [row["id"] for row in lake.rows()] == list(range(15))
    # What is overwritten as a whole may be of any date.
    place.rename(new)
    copied(old, place)
    assert lake.sink(overwrite=True).write(orders(spark, 0, 3), 5) == 3
    assert [row["id"] for row in lake.rows()] == list(range(3))


def copied(place: Path, to: Path) -> None:
    """Copy a file or a directory, as a backup does."""
    if place.is_dir():
        shutil.copytree(place, to)
    else:
        shutil.copy(place, to)


def test_an_older_copy_of_a_directory_of_parquet_files_ends_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    place, key = tmp_path / "table", key_of("query/sink")

    def written(first: int, end: int, batch: int) -> int:
        known = KnownTable(tmp_path / "checkpoint", key)
        sink = ParquetSink(place, "query/sink", known, (), "zstd")
        return sink.write(orders(spark, first, end), batch)

    assert written(0, 5, 0) == 5
    copied(place, tmp_path / "old")
    assert written(5, 10, 1) == 5
    place.rename(tmp_path / "new")
    copied(tmp_path / "old", place)
    with pytest.raises(PipelineError) as caught:
        written(10, 15, 2)
    note = tmp_path / "checkpoint" / "tables" / f"{key}.json"
    assert str(caught.value) == (
        f"the Parquet directory {place} is older than this checkpoint: its last micro-batch is 0, "
        "and the checkpoint counts what was written to it up to micro-batch 1. Restore a newer "
        f"copy of it, or a checkpoint of the same date, or remove {note} to go on without these "
        "rows"
    )
    note.unlink()
    assert written(10, 15, 2) == 5
    found = spark.read.parquet(str(place)).select("id").collect()
    assert sorted(row["id"] for row in found) == [*range(5), *range(10, 15)]


def test_a_directory_of_parquet_files_that_is_gone_ends_the_query_until_it_is_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "table"

    def written(first: int, end: int, batch: int, transaction: str = "query/sink") -> int:
        known = KnownTable(tmp_path / "checkpoint", key_of(transaction))
        sink = ParquetSink(place, transaction, known, (), "zstd")
        return sink.write(orders(spark, first, end), batch)

    assert written(0, 5, 0) == 5
    away = place.rename(tmp_path / "away")
    gone = f"the Parquet directory {place} is gone, and this checkpoint counts what was written"
    with pytest.raises(PipelineError, match=gone):
        written(5, 10, 1)
    assert not place.exists()
    # Another query's directory in the same place does not have the rows either.
    assert written(0, 5, 0, "other/sink") == 5
    with pytest.raises(PipelineError, match=gone):
        written(5, 10, 1)
    place.rename(tmp_path / "other")
    away.rename(place)
    assert written(5, 10, 1) == 5
    found = spark.read.parquet(str(place)).select("id").collect()
    assert sorted(row["id"] for row in found) == list(range(10))


def test_a_place_that_cannot_be_written_is_one_sentence(spark: SparkSession, lake: Lake) -> None:
    lake.directory = Path("/proc/lake")
    lake.place = CatalogPlace(f"sqlite:///{lake.checkpoint.parent}/c.db", "/proc/lake/tables")
    with pytest.raises(PipelineError, match="cannot be written: ") as caught:
        lake.sink().write(orders(spark, 0, 5), 0)
    assert "micro-batch is not lost" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_a_catalog_that_is_down_is_one_sentence_without_its_password(
    spark: SparkSession, closed_port: int, tmp_path: Path
) -> None:
    for catalog in (
        f"http://clerk:secret@127.0.0.1:{closed_port}",
        "sqlite:////proc/lake/catalog.db",
        "no-such-catalog",
    ):
        place = CatalogPlace(catalog, str(tmp_path), {"token": "secret"})
        sink = IcebergSink(NAME, place, "t", tmp_path, TableForm())
        with pytest.raises(
            PipelineError, match=r"the Iceberg catalog .* cannot be opened"
        ) as found:
            sink.write(orders(spark, 0, 1), 0)
        assert "secret" not in str(found.value)
        assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_an_object_store_without_rights_is_one_sentence_and_nothing_is_staged(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with refusing_store() as port:
        properties = {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "clerk",
            "s3.secret-access-key": "hunter2",
            "s3.region": "eu",
        }
        place = CatalogPlace(f"sqlite:///{tmp_path}/catalog.db", "s3://bucket/tables", properties)
        sink = IcebergSink(NAME, place, "t", checkpoint, TableForm())
        with pytest.raises(PipelineError, match=r"Iceberg table .* cannot be written: ") as found:
            sink.write(orders(spark, 0, 1), 0)
    said = str(found.value)
    assert "a micro-batch is not lost by this, and is written when the pipeline runs again" in said
    assert "hunter2" not in said
    assert "\n" not in said
    assert not checkpoint.exists()
    catalog = load_catalog("c", type="sql", uri=place.catalog)
    assert not catalog.table_exists(NAME)


def test_files_of_a_batch_that_an_iceberg_catalog_did_not_take_are_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.sink().write(orders(spark, 0, 5), 0)
    catalog, away = tmp_path / "catalog.db", tmp_path / "away.db"

    def lose_the_catalog(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if catalog.exists():
            catalog.rename(away)
            catalog.mkdir()
        yield from batches

    frame = orders(spark, 5, 10).coalesce(1)
    breaking = frame.mapInArrow(lose_the_catalog, frame.schema)
    with pytest.raises(PipelineError, match="cannot be written: "):
        lake.sink().write(breaking, 1)
    catalog.rmdir()
    away.rename(catalog)
    assert [row["id"] for row in lake.rows()] == list(range(5))
    assert lake.on_disk() == lake.files()
    assert lake.sink().write(orders(spark, 5, 10), 1) == 5
    assert [row["id"] for row in lake.rows()] == list(range(10))


def test_nothing_stays_behind_when_the_store_refuses_one_of_two_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake("iceberg", tmp_path)
    lake.sink(partition_by=("day",)).write(orders(spark, 0, 1), 0)
    before = sorted(path for path in lake.path.rglob("*") if path.is_file())
    # The store has something else where the files of the other day go.
    in_the_way = lake.path / "data" / "day=2026-01-02"
    in_the_way.write_text("no directory")
    with pytest.raises(PipelineError, match="cannot be written: "):
        lake.sink(partition_by=("day",)).write(orders(spark, 0, 4), 1)
    in_the_way.unlink()
    assert sorted(path for path in lake.path.rglob("*") if path.is_file()) == before
    assert lake.sink(partition_by=("day",)).write(orders(spark, 0, 4), 1) == 4
    assert [row["id"] for row in lake.rows()] == [0, 0, 1, 2, 3]
    assert lake.on_disk() == lake.files()


def test_compaction_that_meets_another_writer_leaves_the_rows_of_both(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake("iceberg", tmp_path)
    for batch in range(3):
        lake.sink().write(orders(spark, batch * 5, batch * 5 + 5).coalesce(1), batch)
    table = lake.iceberg()
    lake.sink("other").write(orders(spark, 100, 105).coalesce(1), 0)
    began = time.monotonic()
    assert compact(table) == (3, 1)
    assert time.monotonic() - began < 60
    assert [row["id"] for row in lake.rows()] == [*range(15), *range(100, 105)]
