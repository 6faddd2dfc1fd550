"""`harebell lake` on real tables, and what it says about those that are not there."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyiceberg.catalog import load_catalog

from tests.cli.conftest import error_of, run_harebell


def test_the_small_files_of_a_delta_table_are_merged(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    for number in range(4):
        write_deltalake(str(table), pa.table({"id": [number]}), mode="append")
    done = run_harebell("lake", "compact", str(table))
    assert done.stdout.decode() == f"4 small files of {table} merged into 1\n"
    assert sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]


def test_the_small_files_of_an_iceberg_table_are_merged(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = load_catalog("default", type="sql", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    done = run_harebell("lake", "compact", "shop.orders", "--catalog", uri)
    assert done.stdout.decode() == "4 small files of shop.orders merged into 1\n"
    rows = catalog.load_table("shop.orders").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [0, 1, 2, 3]
    missing = run_harebell("lake", "compact", "shop.others", "--catalog", uri)
    assert missing.returncode == 1
    assert error_of(missing).startswith("there is no table shop.others in the Iceberg")


def test_versions_of_a_delta_table_expire_and_its_rows_and_batches_stay(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    for number in range(4):
        batch = CommitProperties(app_transactions=[Transaction("query/sink", number)])
        rows = pa.table({"id": [number]})
        write_deltalake(str(table), rows, mode="append", commit_properties=batch)
    DeltaTable(str(table)).optimize.compact()
    in_work = table / "of-a-batch-in-work.parquet"
    in_work.touch()
    left = table / "of-a-batch-that-was-killed.parquet"
    left.touch()
    os.utime(left, (1, 1))
    young = run_harebell("lake", "expire", str(table), "--dry-run")
    assert young.stdout.decode() == f"1 data file of {table} would be removed\n"
    (newest,) = (table / "_delta_log").glob("*4.json")
    log = re.sub(r'"deletionTimestamp":\d+', '"deletionTimestamp":1', newest.read_text())
    newest.write_text(log)
    planned = run_harebell("lake", "expire", str(table), "--dry-run")
    assert planned.stdout.decode() == f"5 data files of {table} would be removed\n"
    assert len(list(table.glob("*.parquet"))) == 7
    done = run_harebell("lake", "expire", str(table), "--older-than", "1h")
    assert done.stdout.decode() == f"5 data files of {table} removed\n"
    assert len(list(table.glob("*.parquet"))) == 2
    assert in_work.exists()
    found = DeltaTable(str(table))
    assert sorted(found.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]
    assert found.transaction_version("query/sink") == 3


def test_snapshots_of_an_iceberg_table_expire_and_its_rows_stay(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = load_catalog("default", type="sql", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    metadata = Path(table.metadata_location.removeprefix("file://"))
    metadata.write_text(re.sub(r'"timestamp-ms":\d+', '"timestamp-ms":1', metadata.read_text()))
    arguments = ("lake", "expire", "shop.orders", "--catalog", uri)
    planned = run_harebell(*arguments, "--dry-run", "--keep", "2")
    said = "2 snapshots, 0 data files and 2 files of metadata of shop.orders would be removed\n"
    assert planned.stdout.decode() == said
    done = run_harebell(*arguments)
    said = "3 snapshots, 0 data files and 3 files of metadata of shop.orders removed\n"
    assert done.stdout.decode() == said
    rows = catalog.load_table("shop.orders").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 1, "there is no Delta table at nowhere; an Iceberg table needs --catalog"),
        (("t", "--older-than", "soon"), 2, "--older-than wants a time of at least an hour"),
        (("t", "--older-than", "5m"), 2, "--older-than wants a time of at least an hour"),
        (("t", "--keep", "5"), 2, "--keep belongs to --catalog"),
        (("t", "--keep", "0"), 2, "--keep"),
        (("t", "--warehouse", "x"), 2, "--warehouse belongs to --catalog"),
        (("orders", "--catalog", "sqlite:///c.db"), 2, "TABLE must be NAMESPACE.TABLE"),
    ],
)
def test_a_table_that_cannot_be_expired_is_one_sentence(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = run_harebell("lake", "expire", *arguments)
    assert done.returncode == code
    assert said in error_of(done)


def test_a_missing_catalog_file_is_told_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "lake" / "nosuch.db"
    done = run_harebell("lake", "compact", "shop.orders", "--catalog", f"sqlite:///{file}")
    assert done.returncode == 1
    assert error_of(done).startswith(f"there is no Iceberg catalog at {file}: the file does not")
    assert not file.parent.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 1, "there is no Delta table at nowhere; an Iceberg table needs --catalog"),
        (("nowhere", "--warehouse", "x"), 2, "--warehouse belongs to --catalog"),
        (("orders", "--catalog", "sqlite:///c.db"), 2, "TABLE must be NAMESPACE.TABLE"),
        (("a.b.c", "--catalog", "sqlite:///c.db"), 2, "a database has no inner namespaces"),
        (("a.b", "--catalog", "ftp://u:pw@h"), 2, "or a name of .pyiceberg.yaml, not ftp://***@h"),
    ],
)
def test_a_table_that_cannot_be_compacted_is_one_sentence(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = run_harebell("lake", "compact", *arguments)
    assert done.returncode == code
    assert said in error_of(done)
