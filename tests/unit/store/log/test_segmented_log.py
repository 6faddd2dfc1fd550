"""Segments in a row: the next live position is found over settled and removed segments."""

from __future__ import annotations

import pytest

from harebell.store.limits import READ_PLACES
from harebell.store.log.durable_log import DurableLog
from tests.unit.store.stores import NOW, Bench, message

COUNT = 12


def _filled() -> tuple[Bench, DurableLog]:
    """A log of twelve messages, two in every segment."""
    bench = Bench(segment_bytes=512)
    log = bench.log()
    for _ in range(COUNT):
        log.append(message(bytes(250)))
    bench.commit()
    assert [segment.first for segment in log.segments] == list(range(0, COUNT, 2))
    return bench, log


def test_the_next_live_position_may_be_in_another_segment() -> None:
    _, log = _filled()
    for position in (1, 3, 4, 6):
        log.settle(position)
    assert [log.next(at) for at in range(COUNT + 1)] == [
        *(0, 2, 2, 5, 5, 5, 7, 7, 8, 9, 10, 11),
        COUNT,
    ]
    assert (log.first(), log.end(), log.live()) == (0, COUNT, COUNT - 4)


def test_segments_that_are_gone_leave_a_gap_that_is_stepped_over() -> None:
    bench, log = _filled()
    log.settle_range(0, 2)
    log.settle_range(4, 8)
    bench.commit()
    assert [segment.first for segment in log.segments] == [2, 8, 10]
    assert (log.first(), log.next(0), log.next(4), log.next(7)) == (2, 2, 8, 8)
    assert [log.read(at) is None for at in (0, 2, 5, 8)] == [True, False, True, False]


def test_an_empty_log_has_its_end_as_first_and_next() -> None:
    bench, log = _filled()
    log.settle_range(0, COUNT)
    bench.commit()
    assert (log.first(), log.next(0), log.next(COUNT), log.live()) == (COUNT, COUNT, COUNT, 0)


def test_the_octets_of_all_segments_count() -> None:
    bench, log = _filled()
    sizes = [len(bench.disk.content(path)) for path in bench.disk.paths() if path.endswith(".seg")]
    # Padding behind the last record of a segment is not written.
    assert sum(sizes) <= log.byte_count() < sum(sizes) + 8 * len(sizes)


@pytest.mark.parametrize("segment_bytes", [400, 1 << 20])
def test_the_first_position_at_or_after_a_moment_is_found(segment_bytes: int) -> None:
    bench = Bench(segment_bytes=segment_bytes)
    log = bench.log()
    times = [0, 5, 5, 5, 9, 20, 20, 31]
    for time in times:
        bench.clock.ms = NOW + time
        log.append(message())
    bench.commit()
    for moment in range(-1, 33):
        expected = sum(time < moment for time in times)
        assert log.at_time(NOW + moment) == expected


def test_the_time_of_the_oldest_record_is_not_read_again_while_it_is_the_oldest() -> None:
    bench = Bench(segment_bytes=512)
    log = bench.log()
    for number in range(4 * READ_PLACES):
        bench.clock.ms = NOW + number
        log.append(message(bytes(250)))
    bench.commit()
    assert log.time_of(0) == NOW
    # Other blocks of the log take the place of the one with the oldest record.
    for position in range(1, log.end()):
        assert log.read(position) is not None
    reads = []
    bench.disk.hook = lambda _number, kind, _path: reads.append(kind)
    assert log.time_of(0) == NOW
    assert reads == []
    log.settle(0)
    assert (log.time_of(0), log.time_of(1), log.time_of(0)) == (0, NOW + 1, 0)


def test_records_removed_by_retention_are_not_found() -> None:
    bench = Bench(segment_bytes=400)
    log = bench.log()
    for time in range(20):
        bench.clock.ms = NOW + time
        log.append(message())
    bench.commit()
    first = log.retain(1, 0)
    assert first > 0
    assert log.at_time(NOW) == first


def test_retention_stops_at_a_position_that_is_still_needed() -> None:
    bench = Bench(segment_bytes=400)
    log = bench.log()
    for _ in range(20):
        log.append(message())
    bench.commit()
    assert log.retain(1, 0, 0) == 0
    reached = log.retain(1, 0, 12)
    assert 0 < reached <= 12
    assert log.retain(1, 0) > reached


@pytest.mark.parametrize("segment_bytes", [400, 1 << 20])
@pytest.mark.parametrize("gone", [(2, 3, 4), (0, 7), (3,), (4, 5, 6, 7), (1, 2, 3, 4, 5, 6)])
def test_settled_records_are_passed_over(segment_bytes: int, gone: tuple[int, ...]) -> None:
    bench = Bench(segment_bytes=segment_bytes)
    log = bench.log()
    for position in range(8):
        bench.clock.ms = NOW + 10 * position
        log.append(message())
    bench.commit()
    for position in gone:
        log.settle(position)
    bench.commit()
    for moment in range(-5, 85, 5):
        left = [each for each in range(8) if each not in gone and 10 * each >= moment]
        expected = left[0] if left else log.end()
        assert log.at_time(NOW + moment) == expected
