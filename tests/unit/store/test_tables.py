"""The tables of the definitions: what an older version wrote is read, and brought up to date.

`version_1.sql` is the database of a broker of format 1, as its own process left it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.store.definitions import (
    NAME,
    SqliteDefinitions,
    open_definitions,
    read_definitions,
)
from harebell.store.tables import TABLES, VERSION
from harebell.wire.v09.fields import decode_table, encode_table

OLD = Path(__file__).with_name("version_1.sql")
SHA256 = "rabbit_password_hashing_sha256"


def decode(data: bytes) -> dict[str, Any]:
    return decode_table(data)[0]


def old_database(directory: Path) -> None:
    link = sqlite3.connect(directory / NAME)
    link.executescript(OLD.read_text())
    link.execute(f"PRAGMA application_id = {int.from_bytes(b'HBDF')}")
    link.execute("PRAGMA journal_mode = WAL")
    link.close()


def opened(directory: Path) -> SqliteDefinitions:
    return open_definitions(str(directory), OsFiles(str(directory)), encode_table, decode)


def contents(definitions: SqliteDefinitions) -> dict[str, list[Any]]:
    return {kind: list(definitions.load(kind)) for kind in TABLES}


def check_contents(definitions: SqliteDefinitions) -> None:
    found = contents(definitions)
    assert [key for key, _ in found["queue"]] == [("/", "q")]
    assert [key for key, _ in found["binding"]] == [("/", "orders", "queue", "q", "a.#", "")]
    (_, ann) = found["user"][1]
    assert ann["hashing_algorithm"] == SHA256
    assert (ann["max_connections"], ann["max_channels"]) == (-1, -1)
    assert found["vhost"] == [
        (
            ("reports",),
            {
                "description": "",
                "tags": "",
                "default_queue_type": "",
                "durability": "",
                "tracing": False,
            },
        )
    ]
    assert found["topic_permission"] == found["global_parameter"] == []
    assert len(found["policy"]) == len(found["parameter"]) == 1


def schema(directory: Path) -> dict[str, list[tuple[Any, ...]]]:
    link = sqlite3.connect(directory / NAME)
    try:
        return {
            table.name: [
                row[1:] for row in link.execute(f"PRAGMA table_info({table.name})").fetchall()
            ]
            for table in TABLES.values()
        }
    finally:
        link.close()


def version(directory: Path) -> int:
    link = sqlite3.connect(directory / NAME)
    try:
        found: int = link.execute("SELECT version FROM meta").fetchone()[0]
        return found
    finally:
        link.close()


def test_an_older_database_is_brought_up_to_date_and_keeps_what_it_had(tmp_path: Path) -> None:
    old_database(tmp_path)
    definitions = opened(tmp_path)
    check_contents(definitions)
    assert definitions.was_clean
    definitions.put("topic_permission", ("/", "ann", "orders"), {"write": "^a", "read": ""})
    definitions.write(definitions.take())
    definitions.close()
    assert version(tmp_path) == VERSION
    again = opened(tmp_path)
    assert list(again.load("topic_permission")) == [
        (("/", "ann", "orders"), {"write": "^a", "read": ""})
    ]
    again.close()


def test_a_database_that_was_brought_up_to_date_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    opened(new).close()
    old_database(old)
    opened(old).close()
    assert schema(old) == schema(new)


def test_rows_of_an_older_database_get_checksums(tmp_path: Path) -> None:
    old_database(tmp_path)
    opened(tmp_path).close()
    again = opened(tmp_path)
    check_contents(again)
    again.close()
    link = sqlite3.connect(tmp_path / NAME)
    link.execute("UPDATE users SET tags = 'administrator' WHERE name = 'ann'")
    link.commit()
    link.close()
    with pytest.raises(StoreError, match="a row of users is not what was written"):
        contents(opened(tmp_path))


def test_an_older_database_is_looked_at_without_a_change(tmp_path: Path) -> None:
    old_database(tmp_path)
    definitions = read_definitions(str(tmp_path), OsFiles(str(tmp_path)), encode_table, decode)
    check_contents(definitions)
    definitions.detach()
    assert version(tmp_path) == 1


def test_a_database_that_cannot_be_brought_up_to_date_stays_what_it_was(tmp_path: Path) -> None:
    old_database(tmp_path)
    link = sqlite3.connect(tmp_path / NAME)
    link.execute("DROP TABLE vhosts")
    link.commit()
    link.close()
    with pytest.raises(StoreError, match=r"is damaged \(no such table: vhosts\)"):
        opened(tmp_path)
    assert version(tmp_path) == 1
    link = sqlite3.connect(tmp_path / NAME)
    tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master")}
    link.close()
    assert "topic_permissions" not in tables
