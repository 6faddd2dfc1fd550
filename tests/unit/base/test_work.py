"""What is done in a turn is counted, and corrected by a clock where there is one."""

from __future__ import annotations

from harebell.base.clock import Clock
from harebell.base.timers import Timers
from harebell.base.work import Work


def test_a_clock_corrects_what_was_estimated() -> None:
    now = [0.0]
    work = Work(lambda: now[0])
    work.begin(1000)
    assert not work.charge(20)
    now[0] = 0.002
    assert work.charge(20)
    assert work.end() == 2000


def test_without_a_budget_nobody_has_to_stop() -> None:
    work = Work()
    assert not work.charge(10**9)
    done: list[int] = []

    def step() -> bool:
        done.append(1)
        return len(done) == 3

    work.later(step)
    assert len(done) == 3


def test_frames_count_by_themselves() -> None:
    work = Work()
    work.begin(100)
    frames = 0
    while not work.frame():
        frames += 1
    assert frames == 49
    assert work.end() == 100


def test_timers_that_fire_in_masses_fire_in_slices() -> None:
    work = Work()
    clock = Clock(1_700_000_000_000)
    timers = Timers(clock, work)
    fired: list[int] = []
    for number in range(500):
        timers.timer(lambda number=number: fired.append(number)).set(  # type: ignore[misc]
            clock.steady
        )
    work.begin(100)
    timers.run()
    assert work.end() >= 100
    assert len(fired) == 100
    while timers.due <= clock.steady:
        work.begin(100)
        timers.run()
        work.end()
    assert sorted(fired) == list(range(500))
