"""Timers call in order when their time has come, once, and cost nothing while it has not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.clock import Clock
from harebell.base.limits import TIMER_AGAIN_MS
from harebell.base.timers import NEVER, Timers


def test_a_timer_calls_once_when_its_time_has_come() -> None:
    clock = Clock(1_000)
    timers = Timers(clock)
    called: list[str] = []
    timers.timer(lambda: called.append("late")).set(1_020)
    timers.timer(lambda: called.append("early")).set(1_010)
    timers.run()
    assert (called, timers.due) == ([], 1_010)
    clock.advance(10)
    timers.run()
    assert (called, timers.due) == (["early"], 1_020)
    clock.advance(100)
    timers.run()
    timers.run()
    assert (called, timers.due) == (["early", "late"], NEVER)


def test_a_timer_that_was_moved_or_stopped_does_not_call_at_its_old_time() -> None:
    clock = Clock()
    timers = Timers(clock)
    called: list[str] = []
    moved = timers.timer(lambda: called.append("moved"))
    stopped = timers.timer(lambda: called.append("stopped"))
    moved.set(10)
    moved.set(30)
    stopped.set(10)
    stopped.stop()
    clock.advance(20)
    timers.run()
    assert called == []
    clock.advance(20)
    timers.run()
    assert called == ["moved"]


def test_a_time_that_is_later_does_not_move_a_timer_that_wants_the_earlier_one() -> None:
    clock = Clock()
    timers = Timers(clock)
    timer = timers.timer(lambda: None)
    timer.set_earlier(20)
    timer.set_earlier(30)
    assert timer.due == 20
    timer.set_earlier(10)
    assert timer.due == timers.due == 10


def test_a_timer_that_sets_itself_again_does_not_keep_a_run_going() -> None:
    clock = Clock(5)
    timers = Timers(clock)
    calls = []

    def again() -> None:
        calls.append(clock.steady)
        timer.set(clock.steady)

    timer = timers.timer(again)
    timer.set(5)
    timers.run()
    assert calls == [5]
    timers.run()
    assert calls == [5, 5]


def test_an_earlier_next_timer_is_announced() -> None:
    timers = Timers(Clock())
    told: list[int] = []
    timers.wake = told.append
    timer = timers.timer(lambda: None)
    timer.set(50)
    timers.timer(lambda: None).set(70)
    timer.set(20)
    assert told == [50, 20]


def test_timers_that_move_all_the_time_take_no_more_memory() -> None:
    timers = Timers(Clock())
    timer = timers.timer(lambda: None)
    for due in range(100_000, 0, -1):
        timer.set(due)
    assert len(timers._heap) < 1_000
    assert timers.due == 1


def test_the_time_of_day_may_jump_without_waking_anybody() -> None:
    clock = Clock(1_000)
    timers = Timers(clock)
    called: list[int] = []
    timers.timer(lambda: called.append(1)).set(2_000)
    clock.ms += 86_400_000
    timers.run()
    assert called == []
    clock.advance(1_000)
    timers.run()
    assert called == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 100)), max_size=60))
def test_timers_call_as_a_list_that_is_sorted_would(changes: list[tuple[int, int]]) -> None:
    clock = Clock()
    timers = Timers(clock)
    called: list[int] = []
    ten = [timers.timer(lambda number=number: called.append(number)) for number in range(10)]  # type: ignore[misc]
    dues: dict[int, int] = {}
    for number, due in changes:
        ten[number].set(due)
        dues[number] = due
    for _ in range(101):
        before = len(called)
        timers.run()
        ripe = {number for number, due in dues.items() if due == clock.steady}
        assert set(called[before:]) == ripe
        clock.advance(1)
    assert sorted(called) == sorted(dues)


def test_a_timer_that_spends_the_budget_every_time_does_not_keep_the_others_waiting() -> None:
    timers = Timers(Clock())
    called: list[str] = []

    def busy() -> None:
        called.append("busy")
        timers.work.charge(100)
        first.set_earlier(timers.clock.steady)

    first, other = timers.timer(busy), timers.timer(lambda: called.append("other"))
    first.set(5)
    other.set(5)
    timers.clock.advance(5)
    for _ in range(2):
        timers.work.begin(50)
        timers.run()
        timers.work.end()
    assert called == ["busy", "other", "busy"]


def test_a_timer_that_raises_is_called_again_and_stops_no_other() -> None:
    clock = Clock(0)
    timers, told = Timers(clock), []
    timers.failures.report = lambda name, text: told.append((name, text))
    called: list[str] = []

    def broken() -> None:
        called.append("broken")
        raise ValueError("of one message")

    for call in (broken, lambda: called.append("other")):
        timers.timer(call).set(10)
    clock.advance(10)
    timers.run()
    assert called == ["broken", "other"]
    clock.advance(TIMER_AGAIN_MS)
    timers.run()
    assert called == ["broken", "other", "broken"]
    [(name, text)] = told
    assert name.endswith("broken")
    assert "ValueError: of one message (test_timers.py:" in text
    assert timers.failures.counts == {name: 2}


def test_without_a_reporter_a_timer_raises_and_the_rest_is_called_next() -> None:
    clock = Clock(0)
    timers, called = Timers(clock), []

    def broken() -> None:
        raise ValueError

    for call in (broken, lambda: called.append("other")):
        timers.timer(call).set(10)
    clock.advance(10)
    with pytest.raises(ValueError):
        timers.run()
    timers.run()
    assert called == ["other"]
