"""Numbers that wrap around, and sets of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire.v010.ranges import RangeSet, near, wrapped


@pytest.mark.parametrize(
    ("number", "known", "meant"),
    [
        (0, 0, 0),
        (5, 3, 5),
        (2**32 - 1, 0, -1),
        (1, 2**32 - 1, 2**32 + 1),
        (2**32 - 1, 2**32 + 1, 2**32 - 1),
        (7, 5 * 2**32, 5 * 2**32 + 7),
    ],
)
def test_a_wrapped_number_means_the_nearest(number: int, known: int, meant: int) -> None:
    assert near(number, known) == meant


@given(st.integers(0, 2**70), st.integers(-(2**31), 2**31 - 1))
def test_wrapping_loses_nothing_near_a_known_number(known: int, away: int) -> None:
    number = known + away
    assert near(wrapped(number), known) == number


ranges = st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda r: (r[0], r[0] + r[1]))


@given(st.lists(ranges, max_size=12), st.integers(0, 10))
def test_a_set_of_ranges_behaves_like_a_set_of_numbers(
    added: list[tuple[int, int]], floor: int
) -> None:
    ours, model = RangeSet(floor), set(range(floor))
    for first, last in added:
        new = set(range(first, last + 1)) - model
        model |= new
        parts = ours.add(first, last)
        assert sorted(n for low, high in parts for n in range(low, high + 1)) == sorted(new)
        assert all(number in ours for number in model)
        assert not any(number in ours for number in set(range(60)) - model)
        assert ours.floor not in ours
        assert [r for r in ours.ranges if r[0] <= ours.floor] == []
        assert all(a[1] + 1 < b[0] for a, b in zip(ours.ranges, ours.ranges[1:], strict=False))
