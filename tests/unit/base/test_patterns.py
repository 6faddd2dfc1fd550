"""Patterns that are followed in all ways at once find what `re` finds, and end."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harebell.auth.permissions import Permissions
from harebell.auth.topics import TopicPermission
from harebell.base.patterns import (
    PatternRefused,
    PatternTooSlow,
    linear_search_for,
    search_for,
)
from harebell.model.settings.policy import Policy

ENDLESS = (
    "^(a+)+$",
    "^([a-z]+-?)+$",
    "(a|aa)*c",
    "^(?:a|a?)+$",
    "a?" * 100 + "a" * 255 + "$",
    "^.*a.*a.*a.*a.*a.*b$",
    "((a*)*)*c",
    "(?:a|aa){60}c",
    "(a|aa)" * 60 + "c",
)
"""For `re` a name of 255 octets has more ways through these than anybody can wait for."""

_ATOMS = st.sampled_from(
    ["a", "b", ".", "-", r"\w", r"\d", "[ab]", "[^a]", r"\.", "^", "$", r"\b", r"\B", r"\A", r"\Z",
     "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?>a+)", "(?i:A)", "a++"]
)  # fmt: skip
_TIMES = st.sampled_from(
    ["", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0}", "*?", "+?", "{1,2}?"]
)


def _longer(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.one_of(
        st.builds("({}){}".format, parts, _TIMES),
        st.builds("(?:{}|{}){}".format, parts, parts, _TIMES),
        st.builds(r"({})\1".format, parts),
    )
    return st.one_of(groups, st.builds("{}{}".format, parts, parts))


_PATTERNS = st.recursive(
    st.one_of(_ATOMS, st.builds("(?:{}){}".format, _ATOMS, _TIMES)), _longer, max_leaves=8
)


@given(_PATTERNS, st.lists(st.text("aab.-\n1A", max_size=9), min_size=3))
def test_a_pattern_is_found_where_re_finds_it(pattern: str, names: list[str]) -> None:
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error:
        with pytest.raises(re.error):
            search_for(pattern, re.ASCII)
        return
    search = search_for(pattern, re.ASCII)
    for name in names:
        assert search(name) == (compiled.search(name) is not None), name


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_name_that_nearly_has_a_pattern_is_told_apart(pattern: str) -> None:
    search = search_for(pattern)
    assert not search("a" * 254 + "!")


def test_flags_and_classes_mean_what_they_mean_to_re() -> None:
    assert search_for(r"(?i)^(a+b?)+$")("AAB")
    assert search_for(r"^(\w+-?)+$")("\xe9")
    assert not search_for(r"^(\w+-?)+$", re.ASCII)("\xe9")
    assert search_for(r"^([a-c]+|\d{2,3}){2,}$")("ab123c")
    assert not search_for(r"^(\d{2,3}x?){2}$")("1x2x")


def test_clients_cannot_choose_names_that_keep_the_broker_busy() -> None:
    name = "a" * 254 + "!"
    for pattern in ENDLESS:
        assert not Permissions(pattern, pattern, pattern).allow("write", name)
        assert not TopicPermission(pattern, pattern).allow("write", name)
        assert not Policy("p", pattern, "all", 0, {}).applies("classic", name)


# --- without backtracking -------------------------------------------------------------------------

_PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", "\\A", "\\Z", "x?", "(?:)"]),
    lambda inner: (
        st.builds("(?:{}|{})".format, inner, inner)
        | st.builds("({})*".format, inner)
        | st.builds("({})+?".format, inner)
        | st.builds("({}){{0,2}}".format, inner)
        | st.builds("{}{}".format, inner, inner)
    ),
    max_leaves=8,
)


@given(_PIECES, st.text("abx\n", max_size=8))
@example("a$", "a\n")
@example("$a", "\n")
@example("^$", "\n")
def test_the_search_without_backtracking_finds_what_re_finds(pattern: str, text: str) -> None:
    try:
        search = linear_search_for(pattern)
    except PatternRefused:
        re.compile(pattern)  # too large at most
        return
    assert search(text) == (re.search(pattern, text) is not None)
    assert search(text) == (re.search(pattern, text) is not None), "with what it remembers"


@pytest.mark.parametrize("pattern", ["(a)\\1", "(?=a)b", "(?<!a)b", "\\bword", "(?m)^a", "a{9999}"])
def test_what_needs_backtracking_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        linear_search_for(pattern)


def test_flags_in_a_pattern_hold() -> None:
    assert linear_search_for("(?i)ABC")("xabcx")
    assert linear_search_for("(?s)a.c")("a\nc")
    assert not linear_search_for("a.c")("a\nc")


def test_a_search_that_would_take_long_is_ended() -> None:
    search = linear_search_for("(a|b)*a(a|b){100}c")
    numbers = random.Random(1)
    with pytest.raises(PatternTooSlow):
        search("".join(numbers.choice("ab") for _ in range(16_000)))
