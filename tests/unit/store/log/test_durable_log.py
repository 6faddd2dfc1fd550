"""The log: records in order, settled in any order, and segments that go when nothing is live."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.kernels.rows import Rows
from harebell.store.limits import SEEN_AHEAD, WRITE_EARLY_BYTES
from harebell.wire.arrow.decode import decode_batch
from tests.sim.disk import Random
from tests.unit.store.stores import IDENTITY, NOW, Bench, message


def live(log) -> list[bytes]:  # type: ignore[no-untyped-def]
    """The bodies of what is not settled."""
    found, position = [], log.first()
    while position < log.end():
        found.append(log.read(position).body)
        position = log.next(position + 1)
    return found


def rows_of(bodies: list[bytes]) -> Rows:
    """Persistent rows with these bodies."""
    data = pa.record_batch({"value": bodies}).serialize().to_pybytes()
    rows = Rows(("value",), (), "", "q", 2)
    rows.load(data, *decode_batch(data, ("value",), ()))
    return rows


def filled(bench: Bench, count: int, size: int = 100):  # type: ignore[no-untyped-def]
    """The log with numbered messages on disk."""
    log = bench.log()
    for number in range(count):
        log.append(message(b"%04d" % number + bytes(size)))
    bench.commit()
    return log


def test_positions_grow_by_one() -> None:
    log = Bench().log()
    assert [log.append(message()) for _ in range(3)] == [0, 1, 2]
    assert (log.first(), log.end(), log.live()) == (0, 3, 3)


def test_settled_messages_are_gone_and_settling_twice_is_harmless() -> None:
    bench = Bench()
    log = filled(bench, 5)
    log.settle(1)
    log.settle(1)
    log.settle(99)
    assert log.read(1) is None
    assert log.live() == 4
    assert (log.next(0), log.next(1), log.next(5)) == (0, 2, 5)
    log.settle(0)
    assert log.first() == 2


def test_segments_are_cut_at_another_size_from_then_on() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 10)
    before = len(log.segments)
    log.cut_at(1 << 20)
    for number in range(40):
        log.append(message(b"%04d" % number + bytes(100)))
    assert len(log.segments) <= before + 1
    log.cut_at(1000)
    for number in range(40):
        log.append(message(b"%04d" % number + bytes(100)))
    assert len(log.segments) >= before + 4


def test_everything_durable_is_back_after_a_kill() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 40)
    for position in (*range(10), 15, 39):
        log.settle(position)
    bench.commit()
    expected = live(log)
    again = bench.again().log()
    assert live(again) == expected
    assert (again.end(), again.live()) == (40, 28)
    assert again.append(message()) == 40


def test_uncommitted_records_are_not_back() -> None:
    bench = Bench()
    log = filled(bench, 3)
    log.append(message(b"late"))
    log.settle(0)
    again = bench.again().log()
    assert len(live(again)) == 3


def test_transient_messages_of_a_durable_log_are_gone_after_a_restart() -> None:
    bench = Bench()
    log = bench.log()
    for number, mode in enumerate((2, 1, 0, 2)):
        log.append(message(b"%d" % number, mode))
    bench.commit()
    assert live(bench.again().log()) == [b"0", b"3"]
    kept = Bench()
    for number, mode in enumerate((2, 1, 0, 2)):
        kept.log(keep_all=True) if number == 0 else None
        kept.store.logs[IDENTITY].append(message(b"%d" % number, mode))
    kept.commit()
    assert live(kept.again().log(keep_all=True)) == [b"0", b"1", b"2", b"3"]


def test_a_segment_goes_when_nothing_in_it_is_live() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 30)
    before = bench.files()
    assert len(before) > 3
    assert bench.files()[1] == f"{log.segments[1].first:020d}.seg"
    second = range(log.segments[1].first, log.segments[2].first)
    for position in second:
        log.settle(position)
    bench.commit()
    assert bench.files() == [before[0], *before[2:]]
    assert log.live() == 30 - len(second)
    assert log.next(second[0]) == second[-1] + 1


def test_a_segment_is_closed_before_it_is_removed() -> None:
    """The last close of a removed file frees it, and the loop must not wait for that."""
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 30)
    assert len(live(log)) == 30
    still_open: list[bool] = []

    def hook(_number: int, kind: str, path: str) -> None:
        if kind == "remove" and path.endswith(".seg"):
            still_open.append(path in bench.disk.handles.values())

    bench.disk.hook = hook
    for position in range(20):
        log.settle(position)
    bench.commit()
    assert still_open
    assert not any(still_open)


def test_a_leaving_segment_repeats_what_it_says_of_others() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 12)
    log.settle(0)
    log.set_count(1, 5)
    bench.commit()
    holder = log.segments[-1].first
    for _ in range(30):
        log.append(message(bytes(100)))
    bench.commit()
    # Everything goes but what the first segment has.
    keep = log.segments[0].positions.end()
    log.settle_range(keep, log.end() - 1)
    bench.commit()
    assert f"{holder:020d}.seg" not in bench.files()
    again = bench.again().log()
    assert again.first() == 1
    assert again.count(1) == 5
    assert again.live() == keep


def test_messages_settled_before_they_are_written_cost_no_file() -> None:
    bench = Bench(segment_bytes=1000)
    log = bench.log()
    for _ in range(100):
        log.settle(log.append(message(bytes(100))))
    bench.commit()
    assert len(bench.files()) == 1
    assert bench.gauge.used == 0


def test_delivered_messages_are_known_exactly_after_a_good_end() -> None:
    bench = Bench()
    log = filled(bench, 10)
    log.see(4)
    bench.store.close()
    bench.commit()
    again = Bench(bench.disk, clean=True)
    assert again.log().seen() == 4
    assert again.reports == []


def test_a_good_end_is_the_last_record_when_a_segment_is_removed_with_it() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 30)
    log.set_count(0, 3)
    bench.commit()
    noted = log.segments[-1].first
    for _ in range(30):
        log.append(message(bytes(100)))
    bench.commit()
    # The records of this segment about position 0 are repeated at the end of the log.
    log.settle_range(noted, log.segments[-1].first)
    bench.store.close()
    bench.commit()
    again = Bench(bench.disk, clean=True)
    assert again.log().count(0) == 3
    assert again.reports == []


def test_an_old_good_end_is_no_word_about_what_was_handed_out_since() -> None:
    bench = Bench()
    log = filled(bench, 10)
    log.see(4)
    bench.store.close()
    bench.commit()
    assert bench.again().log().seen() == 10


def test_after_a_kill_everything_may_have_been_handed_out() -> None:
    bench = Bench()
    log = filled(bench, 10)
    log.see(4)
    bench.commit()
    assert bench.again().log().seen() == 10


def test_counts_are_kept_until_the_message_is_settled() -> None:
    bench = Bench()
    log = filled(bench, 3)
    log.set_count(1, 2)
    log.set_count(1, 3)
    assert (log.count(1), log.count(0)) == (3, 0)
    bench.commit()
    again = bench.again().log()
    assert again.count(1) == 3
    again.settle(1)
    assert again.count(1) == 0


def test_more_than_a_commit_can_take_is_written_early() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    body = bytes(100_000)
    count = 4 * WRITE_EARLY_BYTES // len(body) // 2 * 2
    for _ in range(count // 2):
        log.append(message(body))
    batch = bench.store.commit.gather()
    assert batch is not None
    for _ in range(count // 2):
        log.append(message(body))
    assert bench.gauge.used < 2 * WRITE_EARLY_BYTES
    assert all(log.read(number).body == body for number in range(count))
    batch.perform()
    bench.store.commit.finish(batch)
    bench.commit()
    again = bench.again()
    assert len(live(again.log())) == count
    assert again.reports == []
    lost = Bench(bench.disk.crash(Random(1)))
    assert len(live(lost.log())) == count, "what was written early is synced by the next commit"


def test_full_segments_leave_no_rest_in_memory_while_publishers_are_ahead_of_the_disk() -> None:
    bench = Bench(segment_bytes=WRITE_EARLY_BYTES * 5 // 2)
    log = bench.log()
    log.append(message(b"first"))
    batch = bench.store.commit.gather()
    assert batch is not None
    body = bytes(100_000)
    count = 10 * WRITE_EARLY_BYTES // len(body)
    for _ in range(count):
        log.append(message(body))
        assert bench.gauge.used < WRITE_EARLY_BYTES + 2 * len(body)
    batch.perform()
    bench.store.commit.finish(batch)
    bench.commit()
    assert len(live(bench.again().log())) == count + 1
    lost = Bench(bench.disk.crash(Random(1)))
    assert len(live(lost.log())) == count + 1


def test_without_room_what_would_be_written_early_stays_in_memory() -> None:
    bench = Bench(segment_bytes=1 << 30)
    log = bench.log()
    bench.disk.capacity = 1_000
    body = bytes(100_000)
    count = 2 * WRITE_EARLY_BYTES // len(body)
    for _ in range(count):
        log.append(message(body))
    assert bench.gauge.used > WRITE_EARLY_BYTES
    assert all(log.read(number).body == body for number in range(count))
    bench.disk.capacity = 0
    bench.commit()
    assert len(live(bench.again().log())) == count


def test_retention_lets_whole_old_segments_go_and_keeps_the_newest() -> None:
    bench = Bench(segment_bytes=1000)
    log = bench.log()
    for number in range(30):
        bench.clock.ms = NOW + number
        log.append(message(bytes(100)))
    bench.commit()
    firsts = [segment.first for segment in log.segments]
    limit = log.byte_count() - 1
    assert log.retain(limit, 0) == firsts[1]
    assert log.retain(0, NOW + firsts[3]) == firsts[3]
    assert log.retain(1, 0) == firsts[-1]
    bench.commit()
    assert len(bench.files()) == 1
    again = bench.again().log()
    assert (again.first(), again.end()) == (firsts[-1], 30)


def test_a_purge_settles_a_range_at_once() -> None:
    bench = Bench(segment_bytes=1000)
    log = filled(bench, 50)
    log.settle_range(3, 48)
    assert (log.live(), log.next(3)) == (5, 48)
    bench.commit()
    again = bench.again().log()
    assert [again.first(), again.live(), again.next(3)] == [0, 5, 48]


@pytest.mark.parametrize(("end", "left"), [(11, [12, 40]), (13, [40]), (50, [])])
def test_a_settled_range_forgets_the_counts_in_it_and_no_others(end: int, left: list[int]) -> None:
    log = filled(Bench(segment_bytes=1000), 50)
    for position in (10, 12, 40):
        log.set_count(position, 2)
    log.settle_range(10, end)
    assert log.counted() == left


def test_a_message_that_cannot_be_read_is_kept_back_and_reported_once() -> None:
    bench = Bench()
    log = filled(bench, 3)
    path = log.segments[0].path
    file = bench.disk.open(path)
    offset = log.segments[0].positions.offset(1)
    file.write_at(b"\xff", offset + 40)
    assert [log.read(0) is None, log.read(1), log.read(2) is None] == [False, None, False]
    assert log.read(1) is None
    ((level, text),) = bench.reports
    assert level == "error"
    assert path in text
    assert "position 1 " in text
    assert log.live() == 3


def test_all_that_is_on_disk_is_marked_once_somebody_takes_messages() -> None:
    """A consumer may take them all while the disk is full, and then the process is killed."""
    bench = Bench(segment_bytes=1 << 24)
    log = bench.log()
    for _ in range(SEEN_AHEAD + 100):
        log.append(message(b""))
    bench.commit()
    assert bench.again().log().seen() == SEEN_AHEAD
    log.see(1)
    log.append(message(b""))
    bench.commit()
    assert bench.again().log().seen() == log.end()


def test_rows_that_are_appended_together_are_the_records_of_their_messages() -> None:
    bodies = [b"%04d" % number + bytes(number) for number in range(60)]
    loaded = rows_of(bodies)
    bench = Bench(segment_bytes=1000)
    log = bench.log()
    log.append(message(b"before"))
    assert log.append_rows(loaded, 0, 40, loaded.message(0)) == 1
    assert log.append_rows(loaded, 40, 60, loaded.message(40)) == 41
    assert log.append(message(b"after")) == 61
    assert (log.end(), log.live()) == (62, 62)
    assert len(log.segments) > 4
    assert all(segment.end() < 1000 + 200 for segment in log.segments)
    expected = [b"before", *bodies, b"after"]
    assert live(log) == expected
    log.settle_range(10, 30)
    bench.commit()
    assert bench.store.commit.records == 0
    again = bench.again().log()
    assert live(again) == expected[:10] + expected[30:]
    assert again.read(40).raw == loaded.message(39).raw


def test_a_large_row_has_a_segment_of_its_own() -> None:
    large = bytes(LARGE_RECORD_BYTES)
    loaded = rows_of([large, b"small"])
    bench = Bench()
    log = bench.log()
    for row in range(2):
        log.append_rows(loaded, row, loaded.same_until(row, 2), loaded.message(row))
    bench.commit()
    again = bench.again().log()
    assert live(again) == [large, b"small"]
    assert len(again.segments) == 2


def test_many_rows_are_written_before_their_commit() -> None:
    bodies = [bytes(10_000)] * (2 * WRITE_EARLY_BYTES // 10_000)
    loaded = rows_of(bodies)
    bench = Bench(segment_bytes=16 * WRITE_EARLY_BYTES)
    log = bench.log()
    log.append_rows(loaded, 0, len(bodies), loaded.message(0))
    assert log.segments[-1].buffer.start > WRITE_EARLY_BYTES
    assert live(log) == bodies


def test_rows_of_an_uncommitted_batch_are_taken_back() -> None:
    loaded = rows_of([b"%d" % number for number in range(8)])
    bench = Bench()
    log = bench.log()
    log.append(message(b"before"))
    bench.store.commit.staging = 1
    log.append_rows(loaded, 0, 8, loaded.message(0))
    assert bench.store.commit.staged == [(IDENTITY, 1)]
    assert bench.store.commit.joint
    bench.store.commit.staging = 0
    log.append(message(b"after"))
    bench.commit()
    again = bench.again().log()
    assert again.take_back(1) == 8
    assert live(again) == [b"before", b"after"]
