"""The number in a property `expiration`."""

from __future__ import annotations

import pytest

from harebell.base.expiration import EXPIRATION_MAX_MS as MAX
from harebell.base.expiration import lifetime_ms, problem_with, ttl_in

LONG = "9" * 5000
"""More digits than `int` reads."""


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [("7", 7), ("007", 7), ("+7", 7), ("-0", 0), ("0" * 5000, 0), (str(MAX), MAX)],
)
def test_digits_up_to_ten_years_are_an_expiration(text: str, lifetime: int) -> None:
    assert problem_with(text) == ""
    assert lifetime_ms(text) == lifetime


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LONG, f"{{value_too_large,{LONG}}}"),
        ("-" + LONG, f"{{value_negative,-{LONG}}}"),
        ("-007", "{value_negative,-7}"),
        (" 7", "no_integer"),
        ("1_0", '{leftover_string,"_0"}'),
    ],
)
def test_a_text_that_is_no_expiration_gives_no_lifetime(text: str, problem: str) -> None:
    assert problem_with(text) == problem
    assert lifetime_ms(text) is None


@pytest.mark.parametrize(("text", "ttl"), [("0", 0), ("+7", 7), ("-0", 0), ("99", 99), (LONG, 99)])
def test_a_ttl_has_a_maximum(text: str, ttl: int) -> None:
    assert ttl_in(text, 99) == ttl


@pytest.mark.parametrize("text", ["", "+", "-1", " 7", "1_0", "7s", "٣", "²"])
def test_a_text_without_a_plain_number_is_no_ttl(text: str) -> None:
    assert ttl_in(text, 99) is None
