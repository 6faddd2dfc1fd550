"""A histogram counts each value in the first bucket whose bound is at least as large."""

from __future__ import annotations

from harebell.base.histogram import Histogram


def test_a_value_at_a_bound_is_in_its_bucket_and_a_larger_one_in_the_next() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.1, 99.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 2]
    assert histogram.count == 6
    assert histogram.total == 106.1


def test_histograms_are_added_bucket_by_bucket() -> None:
    first, second = Histogram((0, 1)), Histogram((0, 1))
    for value in (0, 0, 1):
        first.observe(value)
    second.observe(7)
    first.add(second)
    assert first.counts == [2, 1, 1]
    assert first.total == 8
    assert second.counts == [0, 0, 1]
