"""`harebell lake compact` on real tables, and what it says about those that are not there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
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
def test_what_cannot_be_compacted_is_one_sentence(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = run_harebell("lake", "compact", *arguments)
    assert done.returncode == code
    assert said in error_of(done)
