"""Sets of pairs are found by what is there, and nothing of them stays when they are removed."""

from __future__ import annotations

from harebell.model.exchange.pairs import PairIndex

A, B, C = ("a", 1), ("b", 1), ("c",)


def test_all_or_any_of_a_set_have_to_be_there() -> None:
    index = PairIndex()
    index.add([A, B], True, 0)
    index.add([A, C], False, 1)
    index.add([], True, 2)
    index.add([], False, 3)
    assert index.match([A]) == [2, 1]
    assert sorted(index.match([A, B])) == [0, 1, 2]
    assert index.match([]) == [2]


def test_a_set_is_filed_where_there_are_fewest() -> None:
    index = PairIndex()
    for slot in range(100):
        index.add([A, ("own", slot)], True, slot)
    assert index.match([A]) == []
    assert index.cost <= 1
    assert index.match([A, ("own", 7)]) == [7]


def test_a_pair_that_was_added_twice_is_removed_twice() -> None:
    index = PairIndex()
    for every in (True, False):
        for _ in range(2):
            index.add([A, B], every, 5)
        index.remove([A, B], every, 5)
        assert index.match([A, B]) == [5]
        index.remove([A, B], every, 5)
        assert index.match([A, B]) == []
    assert len(index) == 0
