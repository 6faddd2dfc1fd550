"""How far a count has got."""

from __future__ import annotations

from harebell.model.queue.counting import Counting


def test_what_is_behind_the_cursor_or_came_later_is_counted() -> None:
    counting = Counting(2, {0: 10})
    counting.cursors[0] = 4
    assert [counting.has(0, at) for at in (0, 3, 4, 9, 10, 11)] == [
        *(True, True, False, False, True, True)
    ]
    # A log that was made since has only what came since.
    assert counting.has(1, 0)


def test_everything_in_a_log_that_is_finished_is_counted() -> None:
    counting = Counting(1, {0: 10})
    counting.finish(0)
    assert counting.has(0, 5)
