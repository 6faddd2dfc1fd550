"""Offsets in memory: the oldest are left out, and come back when they are needed."""

from __future__ import annotations

import errno

import pytest

from harebell.base.work import Step
from harebell.store.log import loaded_offsets, segment_index
from harebell.store.log.loaded_offsets import LoadedOffsets
from harebell.store.log.segment import INDEX_SUFFIX, index_path
from tests.unit.store.stores import Bench, message

COUNT = 200
LIMIT_BYTES = 300


def filled(*, indexes: bool = True, commits: bool = True) -> Bench:
    """A log of more segments than may have their offsets in memory."""
    bench = Bench(segment_bytes=1000)
    bench.store.offsets = LoadedOffsets(
        bench.disk, bench.store.handles, LIMIT_BYTES, 4, indexes=indexes
    )
    log = bench.log()
    for number in range(COUNT):
        log.append(message(b"%d" % number))
        if commits:
            bench.commit()
    return bench


def loaded(bench: Bench) -> list[bool]:
    (log,) = bench.store.logs.values()
    return [segment.positions.is_loaded() for segment in log.segments]


def bodies(bench: Bench) -> list[bytes]:
    (log,) = bench.store.logs.values()
    read = [log.read(position) for position in range(COUNT)]
    return [each.body for each in read if each is not None]


def test_the_oldest_are_left_out_and_loaded_again() -> None:
    bench = filled()
    assert loaded(bench)[0] is False
    assert loaded(bench)[-2:] == [True, True]
    assert bodies(bench) == [b"%d" % number for number in range(COUNT)]
    assert bench.store.offsets.byte_count <= LIMIT_BYTES


def test_segments_that_nobody_reads_make_way_for_those_that_are_read() -> None:
    bench = Bench(segment_bytes=1000)
    bench.store.offsets = LoadedOffsets(
        bench.disk, bench.store.handles, 100 * LIMIT_BYTES, 4, LIMIT_BYTES
    )
    log = bench.log()
    for number in range(COUNT // 2):
        log.append(message(b"%d" % number))
        bench.commit()
    assert loaded(bench)[0] is False
    assert bench.store.offsets.byte_count <= LIMIT_BYTES
    assert log.read(0) is not None
    for number in range(COUNT // 2, COUNT):
        log.append(message(b"%d" % number))
        bench.commit()
    assert loaded(bench)[:2] == [True, False]
    assert bodies(bench) == [b"%d" % number for number in range(COUNT)]
    assert all(loaded(bench))
    log.delete()
    bench.commit()
    assert bench.store.offsets.byte_count == 0


def test_no_index_file_is_needed() -> None:
    bench = filled(indexes=False)
    assert loaded(bench)[0] is False
    assert not [path for path in bench.disk.paths() if path.endswith(INDEX_SUFFIX)]
    assert bodies(bench) == [b"%d" % number for number in range(COUNT)]


def test_what_is_in_no_file_stays_in_memory() -> None:
    bench = filled(commits=False)
    assert all(loaded(bench))
    assert bodies(bench) == [b"%d" % number for number in range(COUNT)]


def test_offsets_stay_in_memory_while_the_disk_refuses_their_files() -> None:
    bench = filled(commits=False)
    bench.disk.hook = refusing_indexes
    bench.commit()
    log = bench.log()
    log.append(message(b"x" * 1000))
    log.append(message(b"last"))
    bench.commit()
    assert all(loaded(bench)[:-1])
    bench.disk.hook = None
    for number in range(30):
        log.append(message(b"%d" % number))
        bench.commit()
    assert loaded(bench)[0] is False
    assert bench.store.offsets.byte_count <= LIMIT_BYTES
    assert bodies(bench)[:COUNT] == [b"%d" % number for number in range(COUNT)]


def refusing_indexes(number: int, kind: str, path: str) -> None:
    if path.endswith(INDEX_SUFFIX):
        raise OSError(errno.ENOSPC, "No space left on device", path)


def test_sizes_are_counted_with_offsets_left_out() -> None:
    bench = filled()
    (log,) = bench.store.logs.values()
    (other,) = filled(commits=False).store.logs.values()
    assert log.reach(5, COUNT, 90, -1) == other.reach(5, COUNT, 90, -1)
    assert log.reach(5, COUNT, COUNT, 5_000)[0] == other.reach(5, COUNT, COUNT, 5_000)[0]
    assert log.live_in(0, COUNT) == COUNT


def test_a_deleted_log_takes_no_memory() -> None:
    bench = filled()
    (log,) = bench.store.logs.values()
    log.delete()
    bench.commit()
    assert bench.store.offsets.byte_count == 0
    assert not bench.disk.paths("queues")


def test_a_segment_that_cannot_be_read_is_reported_and_read_later() -> None:
    bench = filled()
    (log,) = bench.store.logs.values()
    path = log.segments[0].path
    for suffix in ("", ".idx"):
        there = path.removesuffix(".seg") + suffix if suffix else path
        if there in bench.disk.paths():
            bench.disk.rename(there, f"{there}.away")
    assert log.read(0) is None
    assert [level for level, _ in bench.reports] == ["error"]
    assert log.reach(0, COUNT, COUNT, -1) == (1, 1, 0)
    bench.disk.rename(f"{path}.away", path)
    read = log.read(0)
    assert read is not None
    assert read.body == b"0"


def test_a_large_segment_without_an_index_is_searched_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (loaded_offsets, segment_index):
        monkeypatch.setattr(module, "SCAN_WINDOW_BYTES", 100)
    bench = filled()
    (log,) = bench.store.logs.values()
    log.has_large = True
    segment = log.segments[0]
    assert not segment.positions.is_loaded()
    # With its index it is read at once.
    assert not log.is_spilled(1)
    assert segment.positions.is_loaded()
    segment.positions.drop()
    bench.store.offsets.remove(segment)
    bench.disk.remove(index_path(segment.path))
    assert log.is_spilled(1)
    steps: list[Step] = []
    done: list[str] = []
    bench.store.work.later = steps.append
    bench.store.work.begin(1)
    log.load_spilled(1, lambda: done.append("first"))
    log.load_spilled(2, lambda: done.append("second"))
    count = 1
    while steps:
        assert not done
        bench.store.work.begin(1)
        step = steps.pop()
        if not step():
            steps.append(step)
        count += 1
    assert count >= segment.end() // 100 > 5
    assert done == ["first", "second"]
    assert not log.is_spilled(1)
    assert segment.recall is None
    assert bodies(bench) == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("event", ["settled", "refused"])
def test_a_search_ends_with_its_segment_or_its_disk(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (loaded_offsets, segment_index):
        monkeypatch.setattr(module, "SCAN_WINDOW_BYTES", 100)
    bench = filled(indexes=False)
    (log,) = bench.store.logs.values()
    segment = log.segments[0]
    assert log.is_spilled(1)
    steps: list[Step] = []
    done: list[str] = []
    bench.store.work.later = steps.append
    bench.store.work.begin(1)
    log.load_spilled(1, lambda: done.append("done"))
    if event == "settled":
        log.settle_range(segment.first, segment.positions.end())
        bench.commit()
    else:
        monkeypatch.setattr(bench.store.handles, "reader", refused)
    (step,) = steps
    bench.store.work.begin(1)
    assert step()
    assert done == ["done"]
    assert not log.is_spilled(1)
    assert log.read(1) is None


def refused(segment: object) -> None:
    raise OSError(errno.EIO, "refused")
