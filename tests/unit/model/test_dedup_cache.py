"""What was seen is known again: within bounds of number and time, and over a restart."""

from __future__ import annotations

import pytest

from harebell.base.gauge import Gauge
from harebell.model.dedup_cache import DedupCache, digest
from harebell.store.log.memory import MemoryLog


def saw(cache: DedupCache, value: object, ttl_ms: int, now: int) -> bool:
    """Whether a value was known; it is afterwards."""
    key = digest(value)
    if cache.knows(key, now):
        return True
    cache.add(key, ttl_ms, now)
    return False


def test_a_value_is_seen_the_second_time() -> None:
    seen = DedupCache(10)
    assert not saw(seen, "a", 0, 0)
    assert saw(seen, "a", 0, 10**12)
    assert not saw(seen, "b", 0, 10**12)


def test_a_dropped_value_is_unknown_also_after_a_restart() -> None:
    log = MemoryLog(Gauge())
    seen = DedupCache(10, log)
    saw(seen, "a", 0, 0)
    seen.drop(digest("a"))
    seen.drop(digest("never there"))
    assert not seen.knows(digest("a"), 0)
    assert len(DedupCache(10, log)) == log.live() == 0


@pytest.mark.parametrize("pair", [(1, "1"), (1, True), (1.0, 1), (b"a", "a"), (None, "None")])
def test_values_of_different_types_are_different(pair: tuple[object, object]) -> None:
    first, second = pair
    assert digest(first) != digest(second)
    assert digest(first) == digest(first)


def test_the_oldest_value_goes_when_there_is_no_room() -> None:
    seen = DedupCache(2)
    for value in "abc":
        assert not saw(seen, value, 0, 0)
    assert len(seen) == 2
    assert saw(seen, "b", 0, 0)
    assert not saw(seen, "a", 0, 0)


def test_a_value_is_forgotten_when_its_time_is_up_and_asking_does_not_prolong_it() -> None:
    seen = DedupCache(10)
    assert not saw(seen, "a", 100, 1_000)
    assert saw(seen, "a", 100, 1_099)
    assert not saw(seen, "a", 100, 1_100)
    assert saw(seen, "a", 100, 1_101)
    assert len(seen) == 1


def test_written_identifiers_are_known_again_and_no_others() -> None:
    log = MemoryLog(Gauge())
    before = DedupCache(3, log, 0)
    saw(before, "short", 100, 0)
    saw(before, "long", 10_000, 0)
    saw(before, "ever", 0, 0)
    saw(before, "another", 0, 0)
    after = DedupCache(3, log, 100)
    assert log.live() == len(after) == 3
    assert not saw(after, "short", 0, 100)
    assert saw(after, "ever", 0, 100)
    assert saw(after, "another", 0, 100)
    assert not saw(after, "long", 0, 100)


def test_a_smaller_memory_keeps_the_newest() -> None:
    log = MemoryLog(Gauge())
    before = DedupCache(9, log)
    for value in "abcd":
        saw(before, value, 0, 0)
    after = DedupCache(2, log)
    assert log.live() == 2
    assert saw(after, "c", 0, 0)
    assert saw(after, "d", 0, 0)


def test_nothing_is_left_of_what_was_cleared() -> None:
    log = MemoryLog(Gauge())
    seen = DedupCache(9, log)
    saw(seen, "a", 0, 0)
    seen.clear()
    assert len(seen) == log.live() == 0
