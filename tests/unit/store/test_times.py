"""Times find positions, within a segment and over several."""

from __future__ import annotations

import pytest

from harebell.store.times import position_at
from tests.unit.store.stores import NOW, Bench, message


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
        assert position_at(log, log.segments, NOW + moment) == expected


def test_what_retention_let_go_is_not_found() -> None:
    bench = Bench(segment_bytes=400)
    log = bench.log()
    for time in range(20):
        bench.clock.ms = NOW + time
        log.append(message())
    bench.commit()
    first = log.retain(1, 0)
    assert first > 0
    assert position_at(log, log.segments, NOW) == first


@pytest.mark.parametrize("segment_bytes", [400, 1 << 20])
@pytest.mark.parametrize("gone", [(2, 3, 4), (0, 7), (3,), (4, 5, 6, 7), (1, 2, 3, 4, 5, 6)])
def test_what_was_settled_is_passed_over(segment_bytes: int, gone: tuple[int, ...]) -> None:
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
        assert position_at(log, log.segments, NOW + moment) == expected
