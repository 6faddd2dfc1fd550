"""The time of day is whatever the shell last said."""

from __future__ import annotations

from harebell.base.clock import Clock


def test_a_clock_stands_still_until_it_is_set() -> None:
    clock = Clock(5)
    assert clock.ms == 5
    clock.ms = 1_700_000_000_000
    assert clock.ms == 1_700_000_000_000
    assert Clock().ms == 0
