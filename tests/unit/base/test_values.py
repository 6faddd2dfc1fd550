"""Values whose type on the wire Python alone does not say."""

from __future__ import annotations

from harebell.base.values import Long


def test_a_long_is_the_number_that_it_was_made_of() -> None:
    assert Long(5) == 5
    assert Long(5) + 1 == 6
