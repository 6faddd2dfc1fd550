"""SQLite over the simulated disk: errors and power losses reach it, and it keeps its word."""

from __future__ import annotations

import errno
from contextlib import closing
from itertools import count

import pytest

from harebell.base.errors import StoreError
from harebell.store import tables
from harebell.store.definitions import _connect
from tests.sim import vfs
from tests.sim.database import Database
from tests.sim.disk import CHANGES, PowerCut, Random, SimDisk
from tests.sim.faults import CutNth

QUEUE = {"kind": "classic", "identity": "i", "auto_delete": False, "arguments": {"x": 1}}


def _put(database: Database, *names: str) -> None:
    for name in names:
        database.put("queue", ("/", name), QUEUE)
    database.write(database.take())


def _names(database: Database) -> list[str]:
    return [key[1] for key, _ in database.load("queue")]


def test_a_transaction_is_found_whole_or_not_at_all_after_every_operation() -> None:
    disk = SimDisk()
    database = Database(disk)
    _put(database, "one")
    found = []

    def lose_power() -> None:
        found.extend([_names(Database(disk.crash(Random(seed)))) for seed in range(5)])

    disk.after = lose_power
    _put(database, *(f"more {number}" for number in range(60)))
    disk.after = None
    assert {len(each) for each in found} == {1, 61}


def test_a_full_disk_refuses_a_transaction_that_succeeds_when_there_is_room() -> None:
    disk = SimDisk()
    database = Database(disk)
    _put(database, "one")
    disk.capacity = disk.used() + 100
    database.put("queue", ("/", "two"), QUEUE)
    changes = database.take()
    with pytest.raises(OSError, match="full") as caught:
        database.write(changes)
    assert caught.value.errno == errno.ENOSPC
    disk.capacity = 0
    database.write(changes)
    assert _names(Database(disk.crash(Random(1)))) == ["one", "two"]


def test_a_database_is_made_whole_or_made_again() -> None:
    for number in count(1):
        disk = SimDisk(seed=number)
        disk.hook = CutNth(disk, number, CHANGES)
        try:
            Database(disk)
        except (PowerCut, StoreError):
            # Inside of SQLite the cut is an error, and the sentence about it may come first.
            for seed in range(3):
                found = Database(disk.crash(Random(seed)))
                assert found.load("queue") == []
                _put(found, "one")
        else:
            break
    assert number > 50


def _old(disk: SimDisk) -> None:
    """Make the database one of version 2, which had no leases, no eras and no checksums."""
    database = Database(disk)
    _put(database, "old")
    database.close()
    with closing(_connect(f"{vfs.mount(disk)}/definitions.sqlite", vfs.NAME)) as link:
        for table in tables.TABLES.values():
            link.execute(f"ALTER TABLE {table.name} DROP COLUMN crc")
        link.execute("DROP TABLE leases")
        link.execute("DROP TABLE eras")
        link.execute("UPDATE meta SET version = 2")
    assert disk.handles == {}


def test_a_database_of_an_older_version_is_brought_up_to_date_as_a_whole() -> None:
    for number in count(1):
        disk = SimDisk(seed=number)
        _old(disk)
        disk = disk.copy()
        disk.hook = CutNth(disk, number, CHANGES)
        try:
            Database(disk)
        except (PowerCut, StoreError):
            for seed in range(3):
                found = Database(disk.crash(Random(seed)))
                assert found.load("lease") == []
                assert found.load("era") == []
                assert [key for key, _ in found.load("queue")] == [("/", "old")]
                found.put("lease", ("/", "q", "g"), {"identity": "i", "state": {}})
                found.write(found.take())
        else:
            break
    assert number > 3
    assert tables.VERSION == 5
