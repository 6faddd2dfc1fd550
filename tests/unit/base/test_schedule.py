"""A schedule gives out numbers in the order of their times, and takes little memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harebell.base.schedule import Schedule
from harebell.base.timers import NEVER


def test_a_number_comes_when_its_time_has_come() -> None:
    schedule = Schedule()
    assert (schedule.due, schedule.pop(10**15), len(schedule)) == (NEVER, -1, 0)
    schedule.add(5_000, 7)
    assert (schedule.due, schedule.pop(4_999), schedule.pop(5_000)) == (5_000, -1, 7)
    assert (schedule.due, len(schedule)) == (NEVER, 0)


def test_tasks_due_at_the_same_time_come_in_the_order_of_their_numbers() -> None:
    schedule = Schedule()
    for number in (3, 1, 2):
        schedule.add(1_000, number)
    assert [schedule.pop(1_000) for _ in range(4)] == [1, 2, 3, -1]


@given(st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=80))
def test_a_schedule_agrees_with_a_sorted_list(steps: list[tuple[int, bool]]) -> None:
    schedule = Schedule()
    expected: list[tuple[int, int]] = []
    for number, (due, take) in enumerate(steps):
        schedule.add(due, number)
        expected.append((due, number))
        expected.sort()
        if take:
            now = steps[-1][0]
            found = schedule.pop(now)
            if expected[0][0] <= now:
                assert found == expected.pop(0)[1]
            else:
                assert found == -1
        assert schedule.due == (expected[0][0] if expected else NEVER)
        assert sorted(schedule) == sorted(number for _, number in expected)
        assert len(schedule) == len(expected)
    schedule.clear()
    assert (list(schedule), schedule.due, len(schedule)) == ([], NEVER, 0)


def _said(steps: Any) -> Any:
    """What a search in slices says at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@given(
    st.lists(st.integers(0, 5_000), max_size=40),
    st.lists(st.integers(0, 45), max_size=20),
    st.integers(1, 50),
)
def test_numbers_are_found_and_removed_out_of_their_order(
    dues: list[int], gone: list[int], count: int
) -> None:
    schedule = Schedule()
    expected = {}
    for number, due in enumerate(dues):
        schedule.add(due, number)
        expected[number] = due
    # A part of the first bucket is a heap then.
    now = min(dues, default=0)
    taken = schedule.pop(now)
    expected.pop(taken, None)
    for number in gone:
        due = _said(schedule.find(number))
        assert due == expected.get(number, NEVER)
        assert schedule.remove(due, number) == (number in expected)
        expected.pop(number, None)
        assert len(schedule) == len(expected)
        assert schedule.due == min(expected.values(), default=NEVER)
    ordered = sorted((due, number) for number, due in expected.items())
    assert _said(schedule.soonest(count)) == ordered[:count]
    assert [schedule.pop(10_000) for _ in ordered] == [number for _, number in ordered]


def test_a_search_looks_at_some_thousand_numbers_in_a_step() -> None:
    schedule = Schedule()
    for number in range(20_000):
        schedule.add(number % 3, number)
    steps = sum(1 for _ in schedule.find(19_999))
    assert steps == 4
    assert sum(1 for _ in schedule.soonest(10)) == 6


def test_a_million_numbers_take_some_ten_megabytes() -> None:
    schedule = Schedule()
    tracemalloc.start()
    try:
        for number in range(200_000):
            schedule.add(number * 5, number)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 200_000 * 20
