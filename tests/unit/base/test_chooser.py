"""Choices are even, within bounds, and follow from the seed; hashes never change."""

from __future__ import annotations

from collections import Counter

from harebell.base.chooser import Chooser
from harebell.base.hashing import hashed, mixed


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


def test_hashes_are_those_of_every_other_day() -> None:
    # Messages of one key stay with one queue over versions of the broker, so these never change.
    assert hashed("orders.eu") == 0x812E8FDFD0914AD1
    assert mixed(0) == 0
    assert mixed(1) == 0x5692161D100B05E5
