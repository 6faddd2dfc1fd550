"""The metadata of an Iceberg table stays small, and nothing that can be read is removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from harebell.pipeline.sinks import iceberg_expiry
from harebell.pipeline.sinks.iceberg import IcebergSink
from harebell.pipeline.sinks.iceberg_catalog import CatalogPlace
from harebell.pipeline.sinks.iceberg_expiry import Expired, expire, expire_some
from harebell.pipeline.sinks.table_form import TableForm

NAME = "shop.orders"
HOUR = 3600.0


class Rows:
    """The rows of a micro-batch, as a data frame hands them to the sink."""

    columns = ("id",)

    def __init__(self, number: int) -> None:
        self.number = number

    def toArrow(self) -> pa.Table:  # noqa: N802 - PySpark's name
        return pa.table({"id": [self.number]})


class Lake:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.place = CatalogPlace(f"sqlite:///{directory}/c.db", str(directory / "tables"))

    def sink(self, **form: Any) -> IcebergSink:
        return IcebergSink(NAME, self.place, "q/s", self.directory / "c", TableForm(**form))

    def catalog(self) -> Any:
        uri, warehouse = self.place.catalog, self.place.warehouse
        return load_catalog("default", type="sql", uri=uri, warehouse=warehouse)

    def table(self) -> Any:
        return self.catalog().load_table(NAME)

    def write(self, count: int, first: int = 0, **form: Any) -> None:
        sink = self.sink(**form)
        for number in range(first, first + count):
            assert sink.write(Rows(number), number) == 1  # type: ignore[arg-type]

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.table().scan().to_arrow().to_pylist())

    def files(self, ending: str) -> list[Path]:
        return sorted((self.directory / "tables").rglob(f"*{ending}"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """New tables keep three snapshots of any age."""
    kept = {"history.expire.min-snapshots-to-keep": "3", "history.expire.max-snapshot-age-ms": "0"}
    monkeypatch.setattr(iceberg_expiry, "PROPERTIES", iceberg_expiry.PROPERTIES | kept)
    monkeypatch.setattr("harebell.pipeline.sinks.iceberg.PROPERTIES", iceberg_expiry.PROPERTIES)


def test_old_metadata_is_removed_with_every_commit(lake: Lake) -> None:
    lake.write(20)
    assert len(lake.files(".metadata.json")) == 11
    assert lake.ids() == list(range(20))


@pytest.mark.usefixtures("few")
def test_snapshots_and_their_files_are_bounded_and_no_row_is_lost(lake: Lake) -> None:
    lake.write(40)
    table = lake.table()
    assert len(table.metadata.snapshots) < 6
    assert len(lake.files(".avro")) < 6 + 40 + 6
    assert lake.ids() == list(range(40))
    listed = {Path(each.manifest_list.removeprefix("file://")) for each in table.snapshots()}
    assert {each for each in lake.files(".avro") if each.name.startswith("snap-")} == listed


@pytest.mark.usefixtures("few")
def test_data_files_that_only_expired_snapshots_have_are_removed(lake: Lake) -> None:
    lake.write(16, overwrite=True)
    assert lake.ids() == [15]
    assert len(lake.files(".parquet")) <= 6
    # An overwrite makes two snapshots: the rows are deleted, and then added.
    for each in lake.table().snapshots():
        assert lake.table().scan(snapshot_id=each.snapshot_id).to_arrow().num_rows < 2


@pytest.mark.usefixtures("few")
def test_a_tag_keeps_its_snapshot_and_all_its_files(lake: Lake) -> None:
    lake.write(2, overwrite=True)
    table = lake.table()
    tagged = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(tagged, "audit").commit()
    lake.write(8, 2, overwrite=True)
    assert lake.ids() == [9]
    assert lake.table().scan(snapshot_id=tagged).to_arrow().to_pylist() == [{"id": 1}]


def test_snapshots_of_a_table_of_others_stay_and_its_properties_too(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("shop")
    schema = pa.schema([("id", pa.int64())])
    theirs = {"write.metadata.previous-versions-max": "5"}
    catalog.create_table(NAME, schema=schema, properties=theirs)
    lake.write(20)
    table = lake.table()
    assert len(table.metadata.snapshots) == 20
    assert table.properties["write.metadata.previous-versions-max"] == "5"
    assert "history.expire.max-snapshot-age-ms" not in table.properties
    assert expire_some(table) is None
    assert len(lake.files(".metadata.json")) == 6


def test_a_table_of_an_earlier_version_is_bounded_from_its_next_batch_on(lake: Lake) -> None:
    catalog = lake.catalog()
    catalog.create_namespace("shop")
    schema = pa.schema([("id", pa.int64())])
    catalog.create_table(NAME, schema=schema, properties={"harebell.batch.other": "7"})
    lake.write(1)
    assert iceberg_expiry.PROPERTIES.items() <= lake.table().properties.items()
    assert lake.table().properties["harebell.batch.other"] == "7"


def test_a_dry_run_counts_what_expiry_removes_and_removes_nothing(lake: Lake) -> None:
    lake.write(12, overwrite=True)
    before = lake.files("")
    planned = expire(lake.table(), 0, 1, dry_run=True)
    assert lake.files("") == before
    assert expire(lake.table(), 0, 1) == planned
    assert (planned.snapshots, planned.data) == (22, 11)
    assert len(lake.table().snapshots()) == 1
    assert lake.ids() == [11]
    assert len(lake.files(".parquet")) == 1


def test_young_snapshots_stay(lake: Lake) -> None:
    lake.write(5)
    assert expire(lake.table(), HOUR, 1) == Expired(0, 0, 0)


def test_metadata_that_an_earlier_version_has_left_is_removed_when_it_is_old(lake: Lake) -> None:
    lake.write(2)
    (newest, *_) = reversed(lake.files(".metadata.json"))
    old, young = (newest.with_name(f"0000{n}-left.metadata.json") for n in (8, 9))
    for each in (old, young):
        each.write_bytes(newest.read_bytes())
    os.utime(old, (1, 1))
    used = lake.files(".metadata.json")
    assert expire(lake.table(), 0, 10) == Expired(0, 0, 1)
    assert lake.files(".metadata.json") == [each for each in used if each != old]
    assert lake.ids() == [0, 1]


def test_the_last_batch_of_a_sink_is_known_after_all_has_expired(lake: Lake) -> None:
    lake.write(5)
    expire(lake.table(), 0, 1)
    table = lake.table()
    assert len(table.snapshots()) == 1
    assert lake.sink()._last(table) == 4
