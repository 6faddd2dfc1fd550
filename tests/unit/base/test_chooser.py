"""Choices are even, within bounds, and follow from the seed."""

from __future__ import annotations

from collections import Counter

from harebell.base.chooser import Chooser


def test_choices_stay_below_the_end_and_are_even() -> None:
    chooser = Chooser(b"seed")
    counts = Counter(chooser.below(5) for _ in range(10_000))
    assert set(counts) == set(range(5))
    assert all(1850 < count < 2150 for count in counts.values())


def test_one_is_the_only_choice_below_one() -> None:
    chooser = Chooser(b"seed")
    assert {chooser.below(1) for _ in range(100)} == {0}


def test_a_long_seed_is_as_good_as_a_short_one() -> None:
    assert 0 <= Chooser(b"x" * 100).below(7) < 7
