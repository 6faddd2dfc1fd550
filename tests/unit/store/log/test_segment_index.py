"""The index of a full segment: it loads the offsets of its records, or is not used."""

from __future__ import annotations

import errno

import pytest

from harebell.store.log import segment_index
from harebell.store.log.segment import Segment, index_path, seed_of
from tests.sim.disk import SimDisk, error
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

SEED = seed_of(IDENTITY)


def full() -> tuple[SimDisk, Segment, bytes]:
    """A full segment on a disk, with its offsets."""
    bench = Bench(segment_bytes=1000)
    log = bench.log()
    for number in range(40):
        log.append(message(bytes(number % 9)))
        if number % 7 == 0:
            log.settle(number)
            bench.commit()
    bench.commit()
    segment: Segment = log.segments[1]
    return bench.disk, segment, segment.positions.offsets()


def read(disk: SimDisk, segment: Segment, seed: int) -> bool:
    """Load the offsets from the index; whether it fits."""
    return segment_index.read(disk, disk.open(segment.path), segment, seed)


def test_an_index_loads_the_offsets() -> None:
    disk, segment, offsets = full()
    assert segment_index.write(disk, segment, SEED)
    segment.positions.drop()
    assert read(disk, segment, SEED)
    assert segment.positions.offsets() == offsets


def test_without_an_index_the_records_load_the_offsets() -> None:
    disk, segment, offsets = full()
    segment.positions.drop()
    assert not read(disk, segment, SEED)
    segment_index.find_offsets(disk.open(segment.path), segment, SEED)
    assert segment.positions.offsets() == offsets


def test_no_bit_of_an_index_may_be_wrong_and_no_octet_missing() -> None:
    disk, segment, _ = full()
    segment_index.write(disk, segment, SEED)
    path = index_path(segment.path)
    content = disk.content(path)
    segment.positions.drop()
    for at in range(len(content)):
        wrong = bytearray(content)
        wrong[at] ^= 1 << at % 8
        disk.replace(path, wrong)
        assert not read(disk, segment, SEED), at
        disk.replace(path, content[:at])
        assert not read(disk, segment, SEED), at
    disk.replace(path, content)
    assert not read(disk, segment, seed_of("0" * 32))
    assert read(disk, segment, SEED)


def test_an_index_is_only_of_the_segment_with_its_header() -> None:
    disk, segment, _ = full()
    segment_index.write(disk, segment, SEED)
    content = bytearray(disk.content(segment.path))
    content[8] ^= 1
    disk.replace(segment.path, content)
    segment.positions.drop()
    assert not read(disk, segment, SEED)


def test_a_record_that_is_damaged_now_counts_as_lost() -> None:
    disk, segment, offsets = full()
    content = bytearray(disk.content(segment.path))
    at = segment.positions.offset(segment.first + 2)
    content[at + 50] ^= 1
    disk.replace(segment.path, content)
    segment.positions.drop()
    segment_index.find_offsets(disk.open(segment.path), segment, SEED)
    assert segment.positions.offset(segment.first + 2) == -1
    found = segment.positions.offsets()
    assert found[:8] + found[12:] == offsets[:8] + offsets[12:]


@pytest.mark.parametrize("cut", [0, 30, 70, 400])
def test_what_a_cut_segment_has_no_more_counts_as_lost(cut: int) -> None:
    disk, segment, _ = full()
    disk.replace(segment.path, disk.content(segment.path)[:cut])
    before = segment.positions.count
    segment.positions.drop()
    segment_index.find_offsets(disk.open(segment.path), segment, SEED)
    assert segment.positions.is_loaded()
    assert segment.positions.count == before
    assert segment.positions.offset(segment.positions.end() - 1) == -1


def test_a_disk_that_refuses_an_index_leaves_none() -> None:
    disk, segment, _ = full()

    def refuse(number: int, kind: str, path: str) -> int | None:
        if kind == "write":
            raise error(errno.ENOSPC, path)
        return None

    disk.hook = refuse
    assert not segment_index.write(disk, segment, SEED)
    assert index_path(segment.path) not in disk.paths(DIRECTORY)
