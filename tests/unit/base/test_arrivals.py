"""Published messages are counted by size in the buckets of RabbitMQ."""

from __future__ import annotations

import pytest

from harebell.base.arrivals import MESSAGE_BYTES, Arrivals
from harebell.base.histogram import Histogram


@pytest.mark.parametrize("past", [0, 1])
@pytest.mark.parametrize("bound", [0, *MESSAGE_BYTES])
def test_a_size_is_in_the_bucket_that_a_histogram_has_for_it(bound: int, past: int) -> None:
    arrivals, plain = Arrivals(), Histogram(MESSAGE_BYTES)
    arrivals.count(bound + past, 1, False)
    plain.observe(bound + past)
    found = arrivals.sizes()
    assert found.counts == plain.counts
    assert found.total == plain.total
    assert found.bounds == MESSAGE_BYTES


def test_copies_and_wanted_confirms_are_counted() -> None:
    arrivals = Arrivals()
    arrivals.count(1, 3, True)
    arrivals.count(1, 0, False)
    assert (arrivals.routed, arrivals.wanting_confirm, arrivals.byte_count) == (3, 1, 2)
