"""The store: identities, what is tidied at a start, and logs nobody knows."""

from __future__ import annotations

import pytest

from harebell.base.errors import StoreError
from harebell.base.ports import Definitions
from harebell.store.disk import DiskStore
from tests.sim.disk import SimDisk
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message


def test_identities_are_never_the_same() -> None:
    store = Bench().store
    found = {store.new_identity() for _ in range(100)}
    assert len(found) == 100
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in found)


def test_a_start_empties_what_transient_queues_left() -> None:
    bench = Bench()
    bench.disk.make_directory("transient/abc")
    bench.disk.open("transient/abc/1.seg", create=True).close()
    bench.store.clean([])
    assert bench.disk.names("transient") == []


def test_a_start_finishes_the_removal_of_deleted_logs() -> None:
    bench = Bench()
    log = bench.log()
    log.append(message())
    bench.commit()
    bench.definitions.put("dropped", (IDENTITY,), {})
    bench.commit()
    again = bench.again()
    again.definitions.put("dropped", (IDENTITY,), {})
    again.commit()
    again.store.clean([])
    again.commit()
    assert bench.disk.names(DIRECTORY) == []
    assert list(again.definitions.load("dropped")) == []


def test_a_log_that_nobody_knows_is_found_and_left_alone() -> None:
    bench = Bench()
    bench.log().append(message())
    bench.commit()
    again = bench.again()
    assert again.store.clean([])
    assert again.files()
    assert not bench.again().store.clean([f"{IDENTITY}-3"])


def test_a_disk_that_refuses_is_an_error_with_a_sentence() -> None:
    disk = SimDisk()

    def refuse(_number: int, kind: str, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    bench = Bench(disk)
    disk.hook = refuse
    with pytest.raises(StoreError, match=f"queues/{IDENTITY}"):
        bench.log()
    with pytest.raises(StoreError, match="data directory"):
        DiskStore(disk, Definitions(), bench.gauge, bench.clock, bytes, lambda *_: None)
