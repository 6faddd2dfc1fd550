"""Work in slices yields often, and ends with its result."""

from __future__ import annotations

import pytest

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.slices import Slices, at_once, emptied, gathered, in_pieces, stepped
from harebell.base.work import Work


def test_gathered_items_are_a_list_with_a_pause_after_each() -> None:
    slices = gathered(iter("abc"))
    for _ in range(3):
        next(slices)
    with pytest.raises(StopIteration) as end:
        next(slices)
    assert end.value.value == ["a", "b", "c"]


def test_at_once_there_is_no_pause() -> None:
    assert at_once(gathered(number * 2 for number in range(4))) == [0, 2, 4, 6]
    assert at_once(gathered([])) == []


def test_a_step_goes_on_until_the_turn_is_over_and_hands_over_the_result() -> None:
    work = Work()
    results: list[int] = []

    def slices() -> Slices[int]:
        for _ in range(25):
            yield
        return 7

    step = stepped(slices(), work, 10, results.append)
    turns = 0
    while True:
        work.begin(100)
        done = step()
        work.end()
        turns += 1
        if done:
            break
        assert results == []
    assert (turns, results) == (3, [7])


def test_a_list_goes_in_pieces_and_is_emptied_in_pieces() -> None:
    items = list(range(100))
    pieces = list(in_pieces(items))
    assert [each for piece in pieces for each in piece] == items
    assert max(map(len, pieces)) == TRANSACTION_SLICE
    assert sum(1 for _ in emptied(items)) == len(pieces)
    assert items == []
