"""Work in slices yields often, and ends with its result."""

from __future__ import annotations

import pytest

from harebell.base.slices import at_once, gathered


def test_what_is_gathered_is_a_list_with_a_pause_after_each() -> None:
    slices = gathered(iter("abc"))
    for _ in range(3):
        next(slices)
    with pytest.raises(StopIteration) as end:
        next(slices)
    assert end.value.value == ["a", "b", "c"]


def test_at_once_there_is_no_pause() -> None:
    assert at_once(gathered(number * 2 for number in range(4))) == [0, 2, 4, 6]
    assert at_once(gathered([])) == []
