"""SASLprep: the examples of RFC 4013, and what scramp makes of the same texts."""

from __future__ import annotations

from stringprep import in_table_a1

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scramp import ScramException
from scramp.utils import saslprep

from harebell.auth.saslprep import prepared


@pytest.mark.parametrize(
    ("written", "hashed"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("", ""),
    ],
)
def test_equivalent_spellings_are_one_password(written: str, hashed: str) -> None:
    assert prepared(written) == hashed.encode()


@pytest.mark.parametrize("forbidden", ["\u0007", "\u06271", "\u0627a\u0627", "\ue000", "\ufffd"])
def test_a_password_that_the_profile_forbids_is_itself(forbidden: str) -> None:
    assert prepared(forbidden) == forbidden.encode()


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_a_password_in_ascii_is_itself(password: str) -> None:
    # So these tables are not loaded for it (`harebell.auth.verifiers`).
    assert prepared(password) == password.encode()


OF_UNICODE_3_2 = st.characters(max_codepoint=0x7FF).filter(lambda c: not in_table_a1(c))


@given(st.text(OF_UNICODE_3_2, max_size=20))
@example("\u00adp\u2168\u3000x")
@example("\u05d01\u05d0")
def test_scramp_prepares_a_password_in_the_same_way(password: str) -> None:
    try:
        expected = saslprep(password)
    except ScramException:
        expected = password
    assert prepared(password) == expected.encode()
