"""Lists of eras: what two histories have in common."""

from __future__ import annotations

import pytest

from harebell.base.eras import UNNAMED, continued, eras_before, is_eras, shared_until
from harebell.base.limits import ERAS_KEPT, ERAS_OF_OFFSET

A, B, C, D = (letter * 16 for letter in "abcd")


def names(text: str) -> list[str]:
    return [each.partition(":")[0] for each in text.split()]


@pytest.mark.parametrize(
    ("mine", "other", "shared"),
    [
        # The same history, and one that has gone on.
        (f"{A}:0", f"{A}:0", None),
        (f"{A}:0", f"{A}:0 {B}:500", 500),
        (f"{A}:0 {B}:500", f"{A}:0 {B}:500 {C}:900", 900),
        # A copy from the middle of an era, and one from its end.
        (f"{A}:0 {B}:500", f"{A}:0 {C}:500", 500),
        (f"{A}:0 {B}:500", f"{A}:0 {C}:450", 450),
        (f"{A}:0 {B}:500", f"{A}:0 {C}:700", 500),
        # Both have gone on for a while.
        (f"{A}:0 {B}:500 {C}:600", f"{A}:0 {D}:480 {'e' * 16}:490", 480),
        # An offset has the last eras only.
        (f"{B}:500 {C}:600", f"{A}:0 {B}:500 {D}:550", 550),
        # Nothing is known to be common.
        (f"{B}:500", f"{A}:0 {C}:500", 0),
        (f"{A}:0", "", 0),
    ],
)
def test_histories_share_what_was_before_the_first_of_them_left(
    mine: str, other: str, shared: int | None
) -> None:
    assert shared_until(mine, other) == (2**64 if shared is None else shared)


def test_the_first_era_of_what_has_numbers_already_follows_an_unnamed_one() -> None:
    assert names(continued("", B, 0, 0))[0] != UNNAMED
    assert continued("", B, 1, 1).endswith(":1")
    old = continued("", B, 700, 0)
    assert old.startswith(f"{UNNAMED}:0 ")
    assert old.endswith(":700")


def test_an_era_without_numbers_is_left_out_when_the_next_one_begins() -> None:
    assert names(continued(f"{A}:0 {B}:500", C, 500, 0))[:-1] == [A]
    # The log lost its end: the era of that end has nothing left.
    assert names(continued(f"{A}:0 {B}:500", C, 400, 0))[:-1] == [A]
    assert names(continued(f"{A}:0 {B}:500", C, 501, 0))[:-1] == [A, B]


def test_lists_of_eras_are_bounded_and_keep_the_last_ones() -> None:
    text = ""
    for number in range(ERAS_KEPT + 10):
        text = continued(text, f"{number:016x}", number, 0)
    assert len(text.split()) == ERAS_KEPT
    assert text.endswith(f":{ERAS_KEPT + 9}")
    remembered = eras_before(text, ERAS_KEPT)
    assert len(remembered.split()) == ERAS_OF_OFFSET
    assert remembered.endswith(f":{ERAS_KEPT - 1}")


def test_eras_before_a_number_do_not_change_when_another_one_begins_there() -> None:
    text = f"{A}:0 {B}:500"
    assert eras_before(text, 500) == f"{A}:0"
    assert eras_before(text, 501) == text
    assert eras_before(text, 0) == ""


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        (f"{A}:0", True),
        (f"{A}:0 {B}:12", True),
        (f"{A}:0 ", False),
        (f"{A}:-1", False),
        (f"{A}", False),
        ("xyz:0", False),
        (f"{A}:0\n", False),
        (7, False),
    ],
)
def test_only_a_list_of_eras_is_taken_for_one(text: object, fits: bool) -> None:
    assert is_eras(text) is fits
