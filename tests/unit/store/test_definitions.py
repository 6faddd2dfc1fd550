"""Definitions in SQLite: what was committed comes back, and a strange file is left as it is."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.store.definitions import (
    NAME,
    TABLES,
    SqliteDefinitions,
    open_definitions,
    read_definitions,
)
from harebell.wire.v09.fields import decode_table, encode_table

QUEUE = {"kind": "classic", "identity": "0" * 32, "auto_delete": False, "arguments": {}}


def decode(data: bytes) -> dict[str, Any]:
    return decode_table(data)[0]


def opened(directory: Path, **options: Any) -> SqliteDefinitions:
    files = OsFiles(str(directory))
    return open_definitions(str(directory), files, encode_table, decode, **options)


def commit(definitions: SqliteDefinitions) -> None:
    definitions.write(definitions.take())


def rows(definitions: SqliteDefinitions, kind: str) -> list[Any]:
    return list(definitions.load(kind))


def test_committed_definitions_are_there_when_the_database_is_opened_again(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    arguments = {"x-a": 1, "x-b": [True, "text"], "x-c": {"deep": 1.5}}
    definitions.put("queue", ("/", "b"), {**QUEUE, "arguments": arguments, "auto_delete": True})
    definitions.put("queue", ("/", "a"), QUEUE)
    definitions.put("queue", ("/", "b"), {**QUEUE, "arguments": arguments, "kind": "stream"})
    definitions.put("queue", ("other", "a"), QUEUE)
    definitions.drop("queue", ("other", "a"))
    definitions.drop("queue", ("other", "missing"))
    assert definitions.gathered
    assert rows(definitions, "queue") == []
    commit(definitions)
    assert not definitions.gathered
    definitions.close()
    expected = [
        (("/", "b"), {**QUEUE, "arguments": arguments, "kind": "stream"}),
        (("/", "a"), QUEUE),
    ]
    assert rows(opened(tmp_path), "queue") == expected


VALUES = {"TEXT": "text", "INTEGER": 2**40, "BOOLEAN": True, "BLOB": {"a": 1}}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_can_be_added_replaced_and_removed(kind: str, tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    table = TABLES[kind]
    key = tuple(table.key)
    fields = {name: VALUES[type_] for name, type_ in table.fields}
    for _ in range(2):
        definitions.put(kind, key, fields)
        commit(definitions)
        assert rows(definitions, kind) == [(key, fields)]
    definitions.drop(kind, key)
    commit(definitions)
    assert rows(definitions, kind) == []


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_names_come_back_exactly(name: str, tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    key = ("/", name, "queue", name, name, "")
    definitions.put("binding", key, {"arguments": {}})
    commit(definitions)
    assert key in [row[0] for row in rows(definitions, "binding")]
    definitions.close()


def test_a_change_is_what_it_was_when_it_was_made(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    arguments = {"x": 1}
    definitions.put("queue", ("/", "q"), {**QUEUE, "arguments": arguments})
    arguments["x"] = 2
    commit(definitions)
    assert rows(definitions, "queue")[0][1]["arguments"] == {"x": 1}


KILLED = """
import os, sys
from pathlib import Path
from tests.unit.store.test_definitions import *
definitions = opened(Path(sys.argv[1]))
for number in range(10):
    definitions.put("queue", ("/", str(number)), QUEUE)
commit(definitions)
definitions.put("queue", ("/", "not committed"), QUEUE)
definitions.take()
os.kill(os.getpid(), 9)
"""


def test_committed_definitions_survive_a_process_that_is_killed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, check=False)
    assert done.returncode == -9
    definitions = opened(tmp_path)
    assert [key[1] for key, _ in rows(definitions, "queue")] == [str(n) for n in range(10)]
    assert definitions.was_clean, "nothing had said that it was in use"


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    definitions.put("queue", ("/", "q"), QUEUE)
    changes = [*definitions.take(), ("INSERT INTO nowhere VALUES (1)", ())]
    with pytest.raises(OSError) as caught:
        definitions.write(changes)
    assert caught.value.errno == errno.EIO
    assert caught.value.filename.endswith(NAME)
    assert rows(definitions, "queue") == []
    definitions.write(changes[:1])
    assert len(rows(definitions, "queue")) == 1


def test_a_full_disk_is_told_and_the_batch_can_be_tried_again(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    link = definitions._link
    pages = link.execute("PRAGMA page_count").fetchone()[0]
    link.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(2_000):
        definitions.put("queue", ("/", f"{number:0200}"), QUEUE)
    changes = definitions.take()
    with pytest.raises(OSError) as caught:
        definitions.write(changes)
    assert caught.value.errno == errno.ENOSPC
    link.execute("PRAGMA max_page_count = 1000000")
    definitions.write(changes)
    assert len(rows(definitions, "queue")) == 2_000


def test_whether_the_directory_was_closed_in_good_order_is_remembered(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    assert definitions.was_clean
    definitions.mark(clean=False)
    definitions.close()
    definitions = opened(tmp_path)
    assert not definitions.was_clean
    definitions.mark(clean=True)
    definitions.close()
    assert opened(tmp_path).was_clean


def test_the_write_ahead_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    log = tmp_path / f"{NAME}-wal"
    for number in range(60):
        for queue in range(100):
            definitions.put("queue", ("/", f"{queue}"), {**QUEUE, "identity": f"{number:032}"})
        commit(definitions)
    assert log.stat().st_size < 2_000_000
    definitions.close()
    assert not log.exists()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".x"}


def test_something_else_under_that_name_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"my letters\n" * 1000)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=r"definitions.sqlite is damaged \(file is not a database"):
        opened(tmp_path)
    assert contents(tmp_path) == before


def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    link = sqlite3.connect(tmp_path / NAME)
    link.execute("CREATE TABLE letters (text TEXT)")
    link.commit()
    link.close()
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="is no database of Harebell: move it away"):
        opened(tmp_path)
    assert contents(tmp_path) == before


def change(directory: Path, statement: str, *values: Any) -> None:
    """Make a database and change it behind the back of its owner."""
    opened(directory).close()
    link = sqlite3.connect(directory / NAME)
    link.execute(statement, values)
    link.commit()
    link.close()


def test_a_newer_database_is_left_as_it_is(tmp_path: Path) -> None:
    change(tmp_path, "UPDATE meta SET version = 6")
    before = contents(tmp_path)
    with pytest.raises(
        StoreError, match=r"has format 6, and this version of Harebell reads 1 to 5"
    ):
        opened(tmp_path)
    after = contents(tmp_path)
    assert after[NAME] == before[NAME]


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    change(tmp_path, "DROP TABLE meta")
    with pytest.raises(StoreError, match=r"is damaged \(no such table: meta\)"):
        opened(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    change(tmp_path, "DROP TABLE queues")
    with pytest.raises(StoreError, match=r"is damaged \(no such table: queues\)"):
        rows(opened(tmp_path), "queue")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((None, "i", 0, b"\0\0\0\0"), None),
        (("classic", "i", "no", b"\0\0\0\0"), "queues.auto_delete has 'no'"),
        (("classic", "i", 0, b"\0\0\0\x09"), "queues.arguments: malformed field table"),
        (("classic", "i", 0, "text"), "queues.arguments has 'text'"),
    ],
)
def test_a_row_that_cannot_be_is_told(
    values: tuple[Any, ...], named: str | None, tmp_path: Path
) -> None:
    insert = "INSERT INTO queues (vhost, name, kind, identity, auto_delete, arguments)"
    insert += " VALUES ('/', 'q', ?, ?, ?, ?)"
    if named is None:
        with pytest.raises(sqlite3.IntegrityError):
            change(tmp_path, insert, *values)
        return
    change(tmp_path, insert, *values)
    with pytest.raises(StoreError, match=named):
        rows(opened(tmp_path), "queue")


def test_a_flipped_bit_in_the_database_is_harmless_or_refused_in_a_sentence(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    for number in range(100):
        definitions.put("queue", ("/", f"queue {number}"), QUEUE)
        binding = ("/", "amq.topic", "queue", f"queue {number}", f"a.{number}", "")
        definitions.put("binding", binding, {"arguments": {}})
    commit(definitions)
    definitions.close()
    path = tmp_path / NAME
    whole = path.read_bytes()
    expected = everything(tmp_path)
    used = [at for at, octet in enumerate(whole) if octet]
    refused = 0
    for turn, at in enumerate(used[::7]):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1 << turn % 8,)) + whole[at + 1 :])
        try:
            assert everything(tmp_path) == expected, at
        except StoreError:
            refused += 1
    assert refused > len(used) // 14, "most of it is names and the pages' own order"


def everything(directory: Path) -> list[list[tuple[tuple[str, ...], Mapping[str, Any]]]]:
    """All that is declared, as somebody reads it who only looks."""
    definitions = read_definitions(str(directory), OsFiles(str(directory)), encode_table, decode)
    try:
        return [rows(definitions, kind) for kind in TABLES]
    finally:
        definitions.detach()


def test_a_database_without_a_version_is_told(tmp_path: Path) -> None:
    change(tmp_path, "DELETE FROM meta")
    with pytest.raises(StoreError, match="is damaged \\(meta has no version\\)"):
        opened(tmp_path)


def test_a_row_that_somebody_changed_is_told(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    definitions.put("queue", ("/", "q"), QUEUE)
    commit(definitions)
    definitions.close()
    change(tmp_path, "UPDATE queues SET name = 'other'")
    with pytest.raises(StoreError, match="a row of queues is not what was written"):
        rows(opened(tmp_path), "queue")


def test_a_database_that_was_never_finished_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "definitions.new").write_bytes(b"half")
    (tmp_path / "definitions.new-wal").write_bytes(b"half")
    definitions = opened(tmp_path)
    assert rows(definitions, "queue") == []
    assert not (tmp_path / "definitions.new").exists()
    definitions.close()
    assert os.listdir(tmp_path) == [NAME]


def test_a_new_database_has_nothing_of_the_write_ahead_log_of_one_that_is_gone(
    tmp_path: Path,
) -> None:
    definitions = opened(tmp_path)
    for number in range(2_000):
        definitions.put("queue", ("/", f"queue-{number}"), QUEUE)
        commit(definitions)
    log = (tmp_path / f"{NAME}-wal").read_bytes()
    # As if the process had been killed, and somebody had moved away the database alone.
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    definitions.close()
    for name in kept.keys() - {NAME}:
        (tmp_path / name).write_bytes(kept[name])
    (tmp_path / NAME).unlink()
    again = opened(tmp_path)
    assert rows(again, "queue") == []
    again.close()
    (left,) = (tmp_path / "quarantine").iterdir()
    assert left.read_bytes() == log


def test_a_database_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    definitions.put("queue", ("/", "q"), QUEUE)
    commit(definitions)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert found[NAME] == found[f"{NAME}-wal"] == found[f"{NAME}-shm"] == 0o600


def test_ten_thousand_queues_are_read(tmp_path: Path) -> None:
    definitions = opened(tmp_path)
    for number in range(10_000):
        definitions.put("queue", ("/", f"queue-{number}"), QUEUE)
    commit(definitions)
    definitions.close()
    assert len(rows(opened(tmp_path), "queue")) == 10_000
