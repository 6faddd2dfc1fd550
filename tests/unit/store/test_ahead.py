"""Space that is written ahead of records: when there is any, and what a start makes of it."""

from __future__ import annotations

import errno
from random import Random

import pytest

from harebell.base.ports import Log
from harebell.kernels.records import record_size
from harebell.store.limits import AHEAD_FROM_BYTES, AHEAD_WRITE_BYTES, WRITE_EARLY_BYTES
from harebell.store.log.segment import HEADER_BYTES, first_of, unused
from tests.sim.disk import error
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

BODY = bytes(100)


def ahead(bench: Bench, name: str) -> int:
    """How much space a segment's file has behind its records."""
    content = bench.disk.content(f"{DIRECTORY}/{name}")
    size = len(content)
    while size and content[size - 8 : size] == unused(size - 8, 8):
        size -= 8
    return len(content) - size


def live(log: Log) -> list[bytes]:
    """The bodies of what is in a log."""
    found, position = [], log.first()
    while position < log.end():
        there = log.read(position)
        assert there is not None
        found.append(there.body)
        position = log.next(position + 1)
    return found


def committed(bench: Bench, count: int, body: bytes = BODY) -> None:
    """Commits of a message each."""
    log = bench.store.logs.get(IDENTITY) or bench.log()
    for _ in range(count):
        log.append(message(body))
        bench.commit()


def test_the_unused_repeats_itself_by_offset() -> None:
    assert unused(0, 19) == b"not usednot usednot"
    assert unused(12, 9) == b"usednot u"
    assert unused(3, 0) == b""


def test_a_log_with_little_in_it_takes_no_space_ahead() -> None:
    bench = Bench(segment_bytes=1 << 20)
    committed(bench, 10)
    assert ahead(bench, *bench.files()) == 0


def test_space_doubles_and_the_next_commits_do_not_let_the_file_grow() -> None:
    bench = Bench(segment_bytes=1 << 20)
    committed(bench, 1, bytes(AHEAD_FROM_BYTES))
    (name,) = bench.files()
    size = len(bench.disk.content(f"{DIRECTORY}/{name}"))
    assert size - ahead(bench, name) == ahead(bench, name) > AHEAD_FROM_BYTES
    committed(bench, 300)
    assert len(bench.disk.content(f"{DIRECTORY}/{name}")) == size
    assert ahead(bench, name) > 0


def test_a_commit_with_much_in_it_takes_none() -> None:
    bench = Bench(segment_bytes=1 << 20)
    committed(bench, 1, bytes(AHEAD_WRITE_BYTES))
    assert ahead(bench, *bench.files()) == 0


def test_a_kill_leaves_nothing_to_say_and_the_space_is_used() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 8)
    name = bench.files()[-1]
    left = ahead(bench, name)
    assert left > 200
    again = bench.again()
    assert len(live(again.log())) == 8
    assert again.reports == []
    committed(again, 1)
    assert again.files() == bench.files()
    assert 0 < ahead(again, name) < left
    assert len(live(again.again().log())) == 9


def test_a_segment_that_another_follows_is_cut_to_its_records() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 40)
    older = bench.files()[:-1]
    assert len(older) > 1
    assert [ahead(bench, name) for name in older] == [0] * len(older)
    assert len(live(bench.again().log())) == 40


def test_space_that_nobody_came_to_cut_off_is_not_looked_at() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 40)
    first = f"{DIRECTORY}/{bench.files()[0]}"
    for rest in (unused(len(bench.disk.content(first)), 500), Random(1).randbytes(96)):
        disk = bench.disk.copy()
        disk.replace(first, disk.content(first) + rest)
        again = Bench(disk)
        assert len(live(again.log())) == 40
        assert again.reports == []


def test_space_whose_records_never_came_is_no_damage_where_another_segment_follows() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 40)
    path = f"{DIRECTORY}/{bench.files()[0]}"
    content = bench.disk.content(path)
    at = HEADER_BYTES
    records = []
    while at < len(content):
        records.append(at)
        size = record_size(content, at)
        at += size + -size % 8
    bench.disk.replace(path, content[: records[-1]] + unused(records[-1], 500))
    again = bench.again()
    assert len(live(again.log())) == 39
    assert again.reports == []


def test_space_between_records_none_of_which_is_missing_is_no_damage() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 8)
    path = f"{DIRECTORY}/{bench.files()[-1]}"
    content = bench.disk.content(path)
    size = record_size(content, HEADER_BYTES)
    at = HEADER_BYTES + size + -size % 8
    bench.disk.replace(path, content[:at] + unused(at, 64) + content[at:])
    again = bench.again()
    assert len(live(again.log())) == 8
    assert again.reports == []


def test_space_that_nobody_came_to_cut_off_is_no_damage_when_the_next_segment_has_gone() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 40)
    first, second, third, *_ = bench.files()
    content = bench.disk.content(f"{DIRECTORY}/{first}")
    bench.disk.replace(f"{DIRECTORY}/{first}", content + unused(len(content), 500))
    again = bench.again()
    again.log().settle_range(first_of(second), first_of(third))
    again.commit()
    assert second not in again.files()
    left = 40 - (first_of(third) - first_of(second))
    last = again.again()
    assert len(live(last.log())) == left
    assert last.reports == []


@pytest.mark.parametrize("gone", [64, 200])
def test_records_that_are_missing_before_the_next_segment_are_told_of(gone: int) -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 40)
    first = f"{DIRECTORY}/{bench.files()[0]}"
    content = bench.disk.content(first)
    bench.disk.replace(first, content[:-gone] + unused(len(content) - gone, gone))
    again = bench.again()
    assert len(live(again.log())) < 40
    assert [level for level, _ in again.reports] == ["error"]


def test_lost_sectors_in_the_newest_segment_do_not_pass_for_space() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 8)
    newest = f"{DIRECTORY}/{bench.files()[-1]}"
    content = bytearray(bench.disk.content(newest))
    end = len(content) - ahead(bench, bench.files()[-1])
    content[end - 200 :] = bytes(len(content) - end + 200)
    bench.disk.replace(newest, bytes(content))
    again = bench.again()
    assert len(live(again.log())) < 8
    assert "torn bytes at its end are cut off" in again.reports[0][1]


def test_torn_octets_before_the_space_are_kept_aside_and_cut_off() -> None:
    bench = Bench(ahead_from=512)
    committed(bench, 8)
    newest = f"{DIRECTORY}/{bench.files()[-1]}"
    content = bytearray(bench.disk.content(newest))
    end = len(content) - ahead(bench, bench.files()[-1])
    content[end : end + 24] = b"torn" * 6
    bench.disk.replace(newest, bytes(content))
    again = bench.again()
    assert len(live(again.log())) == 8
    (kept,) = again.disk.paths("quarantine")
    assert again.disk.content(kept) == b"torn" * 6
    assert len(again.disk.content(newest)) == end
    third = again.again()
    assert len(live(third.log())) == 8
    assert third.reports == []


def test_a_full_disk_makes_no_space_and_takes_what_there_is_room_for() -> None:
    bench = Bench(segment_bytes=1 << 20, ahead_from=512)
    committed(bench, 4)
    bench.disk.capacity = bench.disk.used() + 4_000
    committed(bench, 20)
    assert len(live(bench.again().log())) == 24


def test_a_disk_that_cannot_write_space_ahead_fails_the_commit() -> None:
    bench = Bench(segment_bytes=1 << 20, ahead_from=512)
    committed(bench, 4)
    log = bench.store.logs[IDENTITY]
    log.append(message(bytes(1_000)))
    writes = iter(range(10))

    def hook(number: int, kind: str, path: str) -> int | None:
        if kind == "write" and next(writes) == 1:
            raise error(errno.EIO, path)
        return None

    bench.disk.hook = hook
    batch = bench.store.commit.gather()
    assert batch is not None
    batch.perform()
    assert isinstance(batch.failed, OSError)
    assert batch.failed.errno == errno.EIO


def test_nothing_is_written_early_while_space_is_being_written() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    log.append(message(bytes(AHEAD_FROM_BYTES)))
    batch = bench.store.commit.gather()
    assert batch is not None
    bodies = [bytes([number]) * 100_000 for number in range(WRITE_EARLY_BYTES // 100_000 + 2)]
    for body in bodies:
        log.append(message(body))
    assert bench.files() == []
    batch.perform()
    bench.store.commit.finish(batch)
    bench.commit()
    again = bench.again().log()
    assert [again.read(1 + number).body for number in range(len(bodies))] == bodies


def test_what_comes_while_space_is_being_written_goes_early_into_another_segment() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    log.append(message(bytes(AHEAD_FROM_BYTES)))
    batch = bench.store.commit.gather()
    assert batch is not None
    body = bytes(100_000)
    count = 4 * WRITE_EARLY_BYTES // len(body)
    for _ in range(count):
        log.append(message(body))
    assert len(bench.files()) == 1
    assert bench.gauge.used < 3 * WRITE_EARLY_BYTES
    batch.perform()
    bench.store.commit.finish(batch)
    bench.commit()
    assert len(bench.files()) == 2
    again = bench.again()
    assert again.log().live() == count + 1
    assert again.reports == []


def test_the_header_of_a_segment_says_where_the_one_before_ends() -> None:
    bench = Bench()
    committed(bench, 40)
    sizes = [len(bench.disk.content(f"{DIRECTORY}/{name}")) for name in bench.files()]
    told = [
        8 * int.from_bytes(bench.disk.content(f"{DIRECTORY}/{name}")[12:16], "little")
        for name in bench.files()
    ]
    assert told == [0, *sizes[:-1]]
    assert min(sizes) > HEADER_BYTES
