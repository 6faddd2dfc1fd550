"""Samples of counters: rates that decay, ranges, and a bounded length."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harebell.admin.sampling_plan import OF_OBJECTS, OF_TOTALS, Retention
from harebell.admin.statistics import Range, details
from harebell.management.statistics.history import History, Latest, Ring

START = 1_699_999_200_000
"""A full hour."""


def _history(*retentions: Retention) -> tuple[History, Latest]:
    latest = Latest()
    latest.add(START)
    return History(("publish", "ack"), (0, 0), START, retentions or OF_OBJECTS, latest), latest


def _pass(history: History, latest: Latest, second: int, values: tuple[int, int] | None) -> None:
    """A pass at a second after the start, which sees these values, or no change."""
    at = START + second * 1000
    if values is not None:
        history.add(at, values, latest.at)
    latest.add(at)


def test_a_rate_is_the_change_in_the_last_interval() -> None:
    history, latest = _history()
    _pass(history, latest, 5, (100, 0))
    assert (history.rate("publish"), history.rate("ack")) == (20.0, 0.0)
    _pass(history, latest, 10, (110, 50))
    assert (history.rate("publish"), history.rate("ack")) == (2.0, 10.0)


def test_a_trend_is_the_change_over_the_kept_time() -> None:
    history, latest = _history()
    assert history.trend("publish", 600) == 0.0
    for second in range(5, 1_005, 5):
        _pass(history, latest, second, (2 * second, 0))
    assert (history.trend("publish", 600), history.trend("ack", 600)) == (2.0, 0.0)
    for second in range(1_005, 1_305, 5):
        _pass(history, latest, second, None)
    assert history.trend("publish", 600) == 1.0


def test_a_trend_without_kept_samples_is_the_rate() -> None:
    latest = Latest()
    latest.add(START)
    history = History(("publish", "ack"), (0, 0), START, (), latest)
    _pass(history, latest, 5, (100, 0))
    assert history.trend("publish", 600) == 20.0


def test_a_rate_is_zero_after_an_interval_without_a_change() -> None:
    history, latest = _history()
    _pass(history, latest, 5, (100, 0))
    _pass(history, latest, 10, None)
    assert history.rate("publish") == 0.0


def test_the_first_change_after_a_pause_counts_for_its_own_interval_only() -> None:
    history, latest = _history()
    _pass(history, latest, 5, (100, 0))
    for second in range(10, 100, 5):
        _pass(history, latest, second, None)
    _pass(history, latest, 100, (150, 0))
    assert history.rate("publish") == 10.0


def test_samples_come_newest_first_and_repeat_the_value_of_a_pause() -> None:
    history, latest = _history()
    _pass(history, latest, 5, (100, 0))
    _pass(history, latest, 10, None)
    _pass(history, latest, 15, (130, 0))
    samples = history.samples("publish", Range(15, 5), 0)
    assert samples == [
        (START + 15_000, 130),
        (START + 10_000, 100),
        (START + 5_000, 100),
        (START, 0),
    ]
    shown = details(history, "publish", Range(15, 5), 130)
    assert shown["rate"] == 6.0
    assert shown["avg"] == 82.5
    assert round(shown["avg_rate"], 3) == 8.667
    assert shown["samples"][0] == {"sample": 130, "timestamp": START + 15_000}


def test_a_ring_keeps_no_more_than_its_retention() -> None:
    ring = Ring(Retention(60, 5), (0,))
    for second in range(0, 5_000, 5):
        ring.add(START + second * 1000, (second,))
    assert ring.value(0, START + 4_995_000) == 4_995
    assert ring.value(0, START + 4_935_000) == 4_935
    assert ring.stored() <= 60 // 5 + 1 + 32


def test_old_samples_of_the_broker_are_sparser() -> None:
    history, latest = _history(*OF_TOTALS)
    for second in range(5, 7_205, 5):
        _pass(history, latest, second, (second, 0))
    minute = history.samples("publish", Range(3_600, 60), 0)
    assert [value for _, value in minute[:3]] == [7_200, 7_140, 7_080]
    hour = history.samples("publish", Range(7_200, 600), 0)
    assert len(hour) == 13
    assert all(b < a for (_, a), (_, b) in pairwise(hour))


def test_a_range_ends_with_the_retention_and_where_the_passes_begin() -> None:
    history, latest = _history()
    _pass(history, latest, 5, (1, 0))
    assert history.samples("publish", Range(6_050, 5), 0) == [(START + 5_000, 1), (START, 0)]
    for second in range(10, 2_000, 5):
        _pass(history, latest, second, (second, 0))
    assert len(history.samples("publish", Range(6_050, 5), 0)) == 605 // 5 + 1


@given(st.lists(st.integers(0, 4_900), min_size=130, max_size=130), st.sampled_from((5, 10, 60)))
def test_a_steady_rate_is_shown_as_it_is_however_late_passes_come(
    late: list[int], increment: int
) -> None:
    history, latest = _history(*OF_TOTALS)
    for number, delay in enumerate(late, start=1):
        at = START + number * 5_000 + delay
        history.add(at, (95 * (at - START) // 1_000, 0), latest.at)
        latest.add(at)
    samples = history.samples("publish", Range(600, increment), 0)
    assert len(samples) > 600 // increment - 1
    for (end, more), (begin, fewer) in pairwise(samples):
        # A sample is a whole number.
        assert abs((more - fewer) * 1_000 / (end - begin) - 95) <= 2_000 / (end - begin)
    rate = history.rate("publish")
    assert 90 < rate < 100 or late[-1] < late[-2]


def test_a_step_without_a_pass_has_no_sample() -> None:
    history, latest = _history()
    for second in (5, 10, 27, 30, 35):
        _pass(history, latest, second, (second * 95, 0))
    samples = history.samples("publish", Range(60, 5), 0)
    assert [(at - START) // 1_000 for at, _ in samples] == [35, 30, 27, 10, 5, 0]
    assert {(a[1] - b[1]) * 1_000 // (a[0] - b[0]) for a, b in pairwise(samples)} == {95}


def test_steps_finer_than_what_is_kept_are_left_out() -> None:
    history, latest = _history(Retention(60, 5), Retention(600, 60))
    for second in range(5, 605, 5):
        _pass(history, latest, second, (second, 0))
    samples = history.samples("publish", Range(600, 5), 0)
    rates = {(a[1] - b[1]) * 1_000 // (a[0] - b[0]) for a, b in pairwise(samples)}
    assert rates == {1}


def test_a_clock_that_steps_back_leaves_samples_in_order() -> None:
    history, latest = _history()
    for second in (5, 10, 60, 20, 25, 30):
        _pass(history, latest, second, (second, 0))
    times = [at for at, _ in history.samples("publish", Range(60, 5), 0)]
    assert times == sorted(set(times), reverse=True)
    assert times[0] == START + 30_000
