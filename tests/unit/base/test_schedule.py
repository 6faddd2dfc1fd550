"""A schedule gives out numbers in the order of their times, and takes little memory."""

from __future__ import annotations

import tracemalloc

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
