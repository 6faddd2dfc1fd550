"""Positions that are chosen in any order, and how many runs they make."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.base.gauge import Gauge
from harebell.model.queue.position_range import PickedPositions
from harebell.store.log.memory import MemoryLog
from tests.unit.model.things import message


@given(st.sets(st.integers(0, 19)), st.permutations(range(20)), st.integers(0, 20))
def test_runs_are_counted_as_they_come_and_have_what_was_chosen_and_nothing_else(
    settled: set[int], order: list[int], count: int
) -> None:
    log = MemoryLog(Gauge())
    for _ in range(20):
        log.append(message())
    for position in settled:
        log.settle(position)
    chosen = PickedPositions(log)
    picked = [each for each in order if each not in settled][:count]
    for position in picked:
        chosen.add(position)
        assert chosen.ranges == len(chosen.in_order())
    assert len(chosen) == len(picked)
    runs = chosen.in_order()
    assert runs == sorted(runs)
    inside = [each for first, end in runs for each in range(first, end) if each not in settled]
    assert inside == sorted(picked)
