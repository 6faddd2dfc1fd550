"""The gauge tells exactly when memory crosses its marks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.base.gauge import Gauge
from harebell.base.limits import MEMORY_LOW_SHARE


def test_a_gauge_without_a_limit_is_never_over() -> None:
    gauge = Gauge()
    gauge.add(10**15)
    assert not gauge.exceeded()
    assert not gauge.crossed()
    assert not gauge.over


def test_the_watermark_itself_is_not_over_it() -> None:
    gauge = Gauge(1000)
    gauge.add(1000)
    assert not gauge.exceeded()
    assert not gauge.crossed()
    gauge.add(1)
    assert gauge.exceeded()


def test_a_crossing_is_told_once() -> None:
    gauge = Gauge(1000)
    gauge.add(1001)
    assert gauge.crossed()
    assert gauge.over
    assert not gauge.crossed()


def test_it_stays_over_until_the_low_mark() -> None:
    gauge = Gauge(1000)
    gauge.add(1001)
    gauge.crossed()
    gauge.take(1001 - gauge.low)
    assert not gauge.crossed()
    assert gauge.exceeded(), "at the low mark publishers are still held"
    gauge.take(1)
    assert gauge.crossed()
    assert not gauge.over
    assert not gauge.exceeded()


def test_the_low_mark_is_the_configured_share() -> None:
    assert Gauge(1000).low == int(1000 * MEMORY_LOW_SHARE)


@given(st.lists(st.integers(0, 500), max_size=60))
def test_what_went_in_and_out_is_what_is_used(amounts: list[int]) -> None:
    gauge = Gauge(1000)
    for amount in amounts:
        gauge.add(amount)
    for amount in amounts[::2]:
        gauge.take(amount)
    assert gauge.used == sum(amounts[1::2])
