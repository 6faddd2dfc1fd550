"""The sync thread writes and syncs everything, or reports what failed and stops there."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harebell.base import impl
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.osfs import OsFiles
from harebell.server.disk.sync_thread import SyncThread
from harebell.server.limits import PERFORM_MAX
from harebell.store.disk import DiskStore
from harebell.store.limits import AHEAD_PIECE_BYTES
from harebell.store.log.segment import unused
from tests.patience import SECONDS
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.unit.store.stores import IDENTITY, NOW, message


@pytest.fixture
def sync_thread() -> Iterator[SyncThread]:
    found = SyncThread()
    yield found
    found.stop()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    found = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield found
    os.close(found)


def ended(sync_thread: SyncThread) -> tuple[int, int, bool] | None:
    readable, _, _ = select.select([sync_thread.fileno()], [], [], SECONDS)
    assert readable, "the sync_thread did not end"
    return sync_thread.end()


def test_octets_are_written_where_they_belong(sync_thread: SyncThread, file: int) -> None:
    sync_thread.begin([(file, b"world", 6), (file, b"hello ", 0)], [file])
    assert ended(sync_thread) is None
    assert os.pread(file, 100, 0) == b"hello world"


def test_one_piece_of_work_follows_another(sync_thread: SyncThread, file: int) -> None:
    for number in range(300):
        sync_thread.begin([(file, number.to_bytes(4, "big"), number * 4)], [file])
        assert ended(sync_thread) is None
    assert os.pread(file, 4, 299 * 4) == (299).to_bytes(4, "big")
    assert os.fstat(file).st_size == 1200


def test_the_sync_thread_reports_nothing_before_it_is_done(
    sync_thread: SyncThread, file: int
) -> None:
    assert select.select([sync_thread.fileno()], [], [], 0)[0] == []
    sync_thread.begin([], [])
    assert ended(sync_thread) is None
    assert select.select([sync_thread.fileno()], [], [], 0)[0] == []


def test_a_write_that_fails_is_told_and_nothing_after_it_is_done(
    sync_thread: SyncThread, file: int, tmp_path: Path
) -> None:
    closed = os.open(tmp_path / "other", os.O_RDONLY | os.O_CREAT)
    try:
        sync_thread.begin([(file, b"a", 0), (closed, b"b", 0), (file, b"c", 1)], [file])
        assert ended(sync_thread) == (errno.EBADF, 1, False)
    finally:
        os.close(closed)
    assert os.pread(file, 10, 0) == b"a"


def test_a_full_disk_is_told_by_its_name(sync_thread: SyncThread) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    try:
        sync_thread.begin([(full, b"a", 0)], [])
        assert ended(sync_thread) == (errno.ENOSPC, 0, False)
    finally:
        os.close(full)


def test_a_sync_that_fails_is_told_as_one(sync_thread: SyncThread, file: int) -> None:
    reading, writing = os.pipe()
    try:
        sync_thread.begin([(file, b"a", 0)], [file, writing])
        assert ended(sync_thread) == (errno.EINVAL, 1, True)
    finally:
        os.close(reading)
        os.close(writing)
    sync_thread.begin([(file, b"b", 1)], [file])
    assert ended(sync_thread) is None, "a failure is told once"
    assert os.pread(file, 10, 0) == b"ab"


def test_a_write_repeats_its_bytes_up_to_its_size(sync_thread: SyncThread, file: int) -> None:
    writes = [(file, b"abc", 0), (file, b"not used", 3), (file, b"end", 103)]
    sync_thread.begin(writes, [file], repeated={1: 100})
    assert ended(sync_thread) is None
    assert os.pread(file, 200, 0) == b"abc" + (b"not used" * 13)[:100] + b"end"
    sync_thread.begin([(file, b"once", 0), (file, b"more", 4)], [file])
    assert ended(sync_thread) is None
    assert os.pread(file, 16, 0) == b"oncemoresednot u", "the next work repeats nothing"


def test_a_full_disk_is_told_of_a_write_that_repeats_its_bytes(sync_thread: SyncThread) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    try:
        sync_thread.begin([(full, b"a", 0)], [], repeated={0: 1 << 20})
        assert ended(sync_thread) == (errno.ENOSPC, 0, False)
    finally:
        os.close(full)


def test_space_ahead_of_records_is_written_in_pieces_and_is_as_if_written_at_once(
    sync_thread: SyncThread, tmp_path: Path
) -> None:
    files = OsFiles(str(tmp_path))
    store = DiskStore(
        *(files, SimDefinitions(SimDisk()), Gauge(), Clock(NOW), Random(7).randbytes),
        report=lambda *_: None,
        segment_bytes=1 << 20,
    )
    log = store.open_log(IDENTITY, durable=True)
    # The first batch creates the file. The others have an end at any remainder of eight.
    sizes = (10, 3 * AHEAD_PIECE_BYTES + 3, 1000, 2001)
    counted = 0
    for size in sizes:
        log.append(message(bytes(size)))
        batch = store.commit.gather()
        assert batch is not None
        if size == sizes[0]:
            batch.perform()
        else:
            work = batch.direct()
            assert work is not None
            assert bool(work.repeated) == (size == sizes[1])
            written = [len(data) for _, data, _ in work.writes]
            for place, whole in work.repeated.items():
                assert written[place] == AHEAD_PIECE_BYTES < whole
                written[place] = whole
            assert work.byte_count == sum(written)
            counted += len(work.repeated)
            sync_thread.begin(work.writes, work.syncs, repeated=work.repeated)
            assert ended(sync_thread) is None
        store.commit.finish(batch)
    assert counted == 1
    (segment,) = log.segments
    content = (tmp_path / segment.path).read_bytes()
    end = segment.end()
    assert len(content) == segment.ahead > end + AHEAD_PIECE_BYTES
    assert content[end:] == unused(end, len(content) - end)
    assert [log.read(place).body for place in range(len(sizes))] == [*map(bytes, sizes)]


def test_records_that_are_synced_later_are_written(sync_thread: SyncThread, file: int) -> None:
    size = 3 << 20
    for number in range(4):
        sync_thread.begin([(file, bytes((number,)) * size, number * size)], [], unsynced=True)
        assert ended(sync_thread) is None
    assert os.fstat(file).st_size == 4 * size
    assert os.pread(file, 2, 2 * size - 1) == b"\1\2"


def test_a_disk_that_cannot_begin_with_a_write_counts_as_a_failed_sync(
    sync_thread: SyncThread, file: int
) -> None:
    # An empty write is never done, so the pipe fails only where the disk is to begin with it.
    # Python has no call for that.
    failure = (errno.ESPIPE, 1, True) if impl.chosen() == impl.NATIVE else None
    reading, writing = os.pipe()
    try:
        sync_thread.begin([(file, b"a", 0), (writing, b"", 0)], [], unsynced=True)
        assert ended(sync_thread) == failure
    finally:
        os.close(reading)
        os.close(writing)


def test_more_than_it_takes_is_refused(sync_thread: SyncThread, file: int) -> None:
    with pytest.raises(ValueError, match=f"more than {PERFORM_MAX} writes or syncs at once"):
        sync_thread.begin([(file, b"a", 0)] * (PERFORM_MAX + 1), [])
    with pytest.raises(ValueError, match="writes or syncs at once"):
        sync_thread.begin([], [file] * (PERFORM_MAX + 1))
    sync_thread.begin([(file, b"a", place) for place in range(PERFORM_MAX)], [file] * PERFORM_MAX)
    assert ended(sync_thread) is None
    assert os.fstat(file).st_size == PERFORM_MAX


def test_the_sync_thread_can_be_stopped_twice_and_before_any_work() -> None:
    sync_thread = SyncThread()
    sync_thread.stop()
    sync_thread.stop()


def test_the_syncs_of_a_piece_of_work_are_timed(sync_thread: SyncThread, file: int) -> None:
    sync_thread.begin([(file, b"x" * 100_000, 0)], [file])
    assert ended(sync_thread) is None
    assert 0.0 < sync_thread.sync_seconds < SECONDS


def test_a_file_is_created_where_its_first_octets_are_written(
    sync_thread: SyncThread, file: int, tmp_path: Path
) -> None:
    path = tmp_path / "new"
    writes = [(file, b"the rest", 0), (-1, b"begin", 0)]
    sync_thread.begin(writes, [], unsynced=True, paths={1: str(path)}, last=[0])
    assert ended(sync_thread) is None
    assert path.read_bytes() == b"begin"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*sync_thread.opened] == [1]
    os.pwrite(sync_thread.opened[1], b" and end", 5)
    os.close(sync_thread.opened[1])
    assert path.read_bytes() == b"begin and end"
    sync_thread.begin([(file, b"the next", 0)], [file])
    assert ended(sync_thread) is None
    assert sync_thread.opened == {}


def _is_open(path: Path) -> bool:
    """Whether this process has a file open; other tests may have left threads that use others."""
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}") == str(path):
                return True
    return False


def test_a_file_that_cannot_be_created_counts_as_a_write_that_failed(
    sync_thread: SyncThread, file: int, tmp_path: Path
) -> None:
    writes = [(-1, b"one", 0), (-1, b"two", 0), (file, b"three", 0)]
    paths = {0: str(tmp_path / "one"), 1: str(tmp_path / "missing" / "two")}
    sync_thread.begin(writes, [], unsynced=True, paths=paths)
    assert ended(sync_thread) == (errno.ENOENT, 1, False)
    assert sync_thread.opened == {}
    assert (tmp_path / "one").exists()
    assert not _is_open(tmp_path / "one"), "the first file is closed"
    assert os.fstat(file).st_size == 0


def test_segments_of_unsynced_rows_are_created_and_written_on_without_another_thread(
    sync_thread: SyncThread, tmp_path: Path
) -> None:
    files, definitions = OsFiles(str(tmp_path)), SimDefinitions(SimDisk())

    def opened() -> DiskStore:
        clock = Clock(NOW)
        return DiskStore(
            files, definitions, Gauge(), clock, Random(7).randbytes, lambda *_: None, 2048
        )

    store = opened()
    log = store.open_log(IDENTITY, durable=True)
    bodies = [b"%d" % number * 900 for number in range(9)]
    created = 0
    for body in bodies:
        store.commit.staging = 1
        log.append(message(body))
        store.commit.staging = 0
        store.commit.unsynced = True
        batch = store.commit.gather()
        assert batch is not None
        if body == bodies[0]:
            assert batch.direct() is None, "its log has no directory"
            batch.perform()
        else:
            work = batch.direct()
            assert work is not None
            sync_thread.begin(
                work.writes, work.syncs, unsynced=True, paths=work.creates, last=work.last
            )
            assert ended(sync_thread) is None
            created += len(work.creates)
            work.adopt(sync_thread.opened)
        store.commit.finish(batch)
    assert created == len(log.segments) - 1 > 1
    assert all(segment.writer is not None for segment in log.segments[1:])
    while (batch := store.commit.gather()) is not None:
        assert batch.direct() is None
        batch.perform()
        store.commit.finish(batch)
    assert all(segment.writer is None for segment in log.segments[:-1]), "they are synced"
    store.shut()
    again = opened().open_log(IDENTITY, durable=True)
    found = [again.read(position) for position in range(len(bodies))]
    assert [each and each.body for each in found] == bodies
