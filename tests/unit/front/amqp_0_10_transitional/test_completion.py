"""Which commands are complete: marks, ranges, commits, and numbers that come around."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.front.amqp_0_10_transitional.completion import SERIALS, Completions, after, distance


def taken(count: int, **waits: int) -> Completions:
    """So many commands; `_3=7` says that command 3 waits for commit 7."""
    completions = Completions()
    for _ in range(count):
        number = completions.take()
        if f"_{number}" in waits:
            completions.wait(waits[f"_{number}"])
    return completions


def test_commands_are_numbered_from_one():
    completions = Completions()
    assert [completions.take() for _ in range(3)] == [1, 2, 3]


def test_nothing_is_complete_before_the_first_command():
    assert Completions().look(0) == (0, ())


def test_commands_that_wait_for_nothing_are_complete():
    assert taken(5).look(0) == (5, ())


def test_a_command_that_waits_leaves_a_gap():
    completions = taken(7, _3=9, _5=9)
    assert completions.look(8) == (2, ((4, 4), (6, 7)))
    assert completions.waiting
    assert completions.look(9) == (7, ())
    assert not completions.waiting


def test_the_number_after_the_mark_is_never_in_a_range():
    completions = taken(4, _1=5, _2=5)
    assert completions.look(4) == (0, ((3, 4),))


def test_a_command_waits_for_the_later_of_two_commits():
    completions = Completions()
    completions.take()
    completions.wait(5)
    completions.wait(3)
    assert completions.look(4) == (0, ())
    assert completions.newest() == 5


def test_a_held_command_is_open_until_it_is_done():
    completions = Completions()
    completions.take()
    number = completions.hold()
    completions.take()
    assert completions.look(100) == (0, ((2, 2),))
    completions.done(number)
    assert completions.look(0) == (2, ())


def test_a_held_command_may_wait_for_the_disk_afterwards():
    completions = Completions()
    completions.take()
    completions.hold()
    completions.wait(4)
    completions.release()
    assert completions.look(3) == (0, ())
    assert completions.look(4) == (1, ())


def test_a_held_command_without_a_commit_is_complete_when_released():
    completions = Completions()
    completions.take()
    completions.hold()
    completions.release()
    assert completions.look(0) == (1, ())


def test_only_another_mark_is_news():
    completions = taken(2, _2=3)
    assert completions.news(0)
    assert not completions.news(2)
    assert completions.news(3)


def test_numbers_come_around():
    completions = Completions()
    completions.last = SERIALS - 2
    assert [completions.take() for _ in range(3)] == [SERIALS - 1, 0, 1]
    completions.wait(3)
    completions.take()
    assert completions.look(2) == (0, ((2, 2),))


@given(st.integers(0, SERIALS - 1), st.integers(-(2**31) + 1, 2**31 - 1))
def test_a_distance_leads_back(serial: int, steps: int):
    assert distance(serial, after(serial, steps)) == steps


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 5))
def test_marks_and_ranges_name_exactly_what_is_complete(waits: list[int], done: int):
    completions = Completions()
    for ticket in waits:
        completions.take()
        completions.wait(ticket)
    mark, ranges = completions.look(done)
    said = set(range(1, mark + 1)) | {n for a, b in ranges for n in range(a, b + 1)}
    assert said == {n for n, ticket in enumerate(waits, start=1) if ticket <= done}
    assert all(first > mark + 1 for first, _ in ranges)
