"""What was seen is known again: within bounds of number and time, and over a restart."""

from __future__ import annotations

import pytest

from harebell.base.gauge import Gauge
from harebell.model.dedup_cache import DedupCache, digest
from harebell.store.log.memory import MemoryLog


def test_a_value_is_seen_the_second_time() -> None:
    seen = DedupCache(10)
    assert not seen.seen("a", 0, 0)
    assert seen.seen("a", 0, 10**12)
    assert not seen.seen("b", 0, 10**12)


@pytest.mark.parametrize("pair", [(1, "1"), (1, True), (1.0, 1), (b"a", "a"), (None, "None")])
def test_values_of_different_types_are_different(pair: tuple[object, object]) -> None:
    first, second = pair
    assert digest(first) != digest(second)
    assert digest(first) == digest(first)


def test_the_oldest_value_goes_when_there_is_no_room() -> None:
    seen = DedupCache(2)
    for value in "abc":
        assert not seen.seen(value, 0, 0)
    assert len(seen) == 2
    assert seen.seen("b", 0, 0)
    assert not seen.seen("a", 0, 0)


def test_a_value_is_forgotten_when_its_time_is_up_and_asking_does_not_prolong_it() -> None:
    seen = DedupCache(10)
    assert not seen.seen("a", 100, 1_000)
    assert seen.seen("a", 100, 1_099)
    assert not seen.seen("a", 100, 1_100)
    assert seen.seen("a", 100, 1_101)
    assert len(seen) == 1


def test_what_was_written_down_is_known_again_and_no_more_than_that() -> None:
    log = MemoryLog(Gauge())
    before = DedupCache(3, log, 0)
    before.seen("short", 100, 0)
    before.seen("long", 10_000, 0)
    before.seen("ever", 0, 0)
    before.seen("another", 0, 0)
    after = DedupCache(3, log, 100)
    assert log.live() == len(after) == 3
    assert not after.seen("short", 0, 100)
    assert after.seen("ever", 0, 100)
    assert after.seen("another", 0, 100)
    assert not after.seen("long", 0, 100)


def test_a_smaller_memory_keeps_the_newest() -> None:
    log = MemoryLog(Gauge())
    before = DedupCache(9, log)
    for value in "abcd":
        before.seen(value, 0, 0)
    after = DedupCache(2, log)
    assert log.live() == 2
    assert after.seen("c", 0, 0)
    assert after.seen("d", 0, 0)


def test_nothing_is_left_of_what_was_cleared() -> None:
    log = MemoryLog(Gauge())
    seen = DedupCache(9, log)
    seen.seen("a", 0, 0)
    seen.clear()
    assert len(seen) == log.live() == 0
