"""What a stream's consumer does not want of its own connection."""

from __future__ import annotations

from harebell.model.limits import NO_LOCAL_RUNS
from harebell.model.queue.features.no_local import Skipped


def skipped(*positions: int) -> Skipped:
    made = Skipped()
    for position in positions:
        made.note(position)
    return made


def test_a_consumer_passes_over_what_it_does_not_want() -> None:
    found = skipped(2, 3, 4, 7)
    assert [found.behind(at) for at in (0, 1, 2, 5, 6, 7, 8)] == [0, 1, 5, 5, 6, 8, 8]


def test_messages_that_come_while_it_passes_over_others_count_too() -> None:
    found = skipped(2)
    assert found.behind(2) == 3
    found.note(3)
    assert found.behind(3) == 4


def test_a_consumer_that_jumps_leaves_nothing_behind() -> None:
    found = skipped(1, 2, 5, 6)
    assert found.behind(6) == 7
    assert found.behind(1) == 1


def test_there_is_a_limit_to_what_is_remembered() -> None:
    found = skipped(*range(0, 2 * NO_LOCAL_RUNS + 2, 2))
    assert found.behind(0) == 0
    assert found.behind(2) == 3
