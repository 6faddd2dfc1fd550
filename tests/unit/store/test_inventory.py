"""What is missing from a directory that was closed in good order is told, file by file."""

from __future__ import annotations

import pytest

from harebell.store import inventory
from tests.sim.disk import SimDisk
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

BODY = bytes(400)


def closed(count: int) -> Bench:
    """A store that was closed in good order, with so many messages in its log."""
    bench = Bench()
    log = bench.log()
    for _ in range(count):
        log.append(message(BODY))
        bench.commit()
    close(bench)
    return bench


def close(bench: Bench) -> None:
    """End in good order."""
    bench.store.close()
    bench.commit()
    bench.store.describe()
    bench.store.shut()


def opened(bench: Bench) -> list[tuple[str, str]]:
    """What the next start reports."""
    again = Bench(bench.disk, clean=True)
    again.log()
    return again.reports


def test_a_written_inventory_is_read() -> None:
    disk = SimDisk()
    inventory.write(disk, {"a": 3, "b-1": 1, "empty": 0})
    assert inventory.read(disk) == {"a": 3, "b-1": 1}
    inventory.write(disk, {"c": 2})
    assert inventory.read(disk) == {"c": 2}
    inventory.forget(disk)
    assert inventory.read(disk) == {}
    assert disk.names("") == []


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b"0" * 8 + data[8:]])
def test_one_that_is_damaged_says_nothing(change) -> None:  # type: ignore[no-untyped-def]
    disk = SimDisk()
    inventory.write(disk, {"a": 3})
    disk.replace(inventory.NAME, change(disk.content(inventory.NAME)))
    assert inventory.read(disk) == {}


def test_a_full_disk_has_none() -> None:
    disk = SimDisk()
    inventory.write(disk, {"a": 3})
    disk.capacity = disk.used()
    inventory.write(disk, {str(number): 1 for number in range(100)})
    assert inventory.read(disk) == {}


@pytest.mark.parametrize("count", [1, 20])
def test_a_log_with_all_its_segments_is_not_spoken_of(count: int) -> None:
    assert opened(closed(count)) == []


@pytest.mark.parametrize("place", [0, 2])
def test_a_segment_that_is_missing_is_told(place: int) -> None:
    bench = closed(20)
    names = bench.files()
    assert len(names) > 3
    bench.disk.remove(f"{DIRECTORY}/{names[place]}")
    assert opened(bench) == [("error", f"{DIRECTORY}: 1 of its segments are missing")]


def test_a_log_that_is_missing_is_told() -> None:
    bench = closed(1)
    (name,) = bench.files()
    bench.disk.remove(f"{DIRECTORY}/{name}")
    assert opened(bench) == [("error", f"{DIRECTORY}: 1 of its segments are missing")]


def test_a_file_that_was_removed_in_good_order_is_not_missing() -> None:
    bench = closed(20)
    again = Bench(bench.disk, clean=True)
    log = again.log()
    again.store.clean([IDENTITY])
    log.settle_range(0, log.end() - 1)
    again.commit()
    assert len(again.files()) < len(closed(20).files())
    close(again)
    assert opened(again) == again.reports == []
