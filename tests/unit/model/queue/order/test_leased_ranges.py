"""Ranges of positions that are leased."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.base.gauge import Gauge
from harebell.model.queue.order.leased_ranges import LeasedRanges
from harebell.store.log.memory import MemoryLog


def of(*runs: tuple[int, int]) -> LeasedRanges:
    made = LeasedRanges(MemoryLog(Gauge()))
    for first, end in runs:
        made.add(first, end)
    return made


def test_a_position_in_a_run_leads_behind_it_and_others_to_themselves() -> None:
    runs = of((10, 20), (3, 5))
    assert [runs.behind(at) for at in (2, 3, 4, 5, 9, 10, 19, 20)] == [2, 5, 5, 5, 9, 20, 20, 20]
    assert list(runs) == [(3, 5), (10, 20)]


def test_the_next_run_is_found_from_any_position() -> None:
    runs = of((3, 5), (10, 20))
    assert [runs.ahead(at, 15) for at in (0, 3, 4, 10, 11)] == [3, 3, 10, 10, 15]


def test_only_a_whole_run_can_be_removed() -> None:
    runs = of((3, 5), (10, 20))
    assert not runs.remove(3, 4)
    assert not runs.remove(4, 5)
    assert runs.remove(3, 5)
    assert list(runs) == [(10, 20)]
    assert len(runs) == 1


@given(st.lists(st.integers(0, 40), unique=True, max_size=12), st.integers(0, 41))
def test_leased_ranges_agree_with_a_set_of_positions(cuts: list[int], at: int) -> None:
    ordered = sorted(cuts)[: len(cuts) // 2 * 2]
    runs = [(ordered[n], ordered[n + 1]) for n in range(0, len(ordered), 2)]
    members = {position for first, end in runs for position in range(first, end)}
    found = of(*reversed(runs)).behind(at)
    assert (found != at) == (at in members)
    assert not members & {found} or found in {first for first, _ in runs}
