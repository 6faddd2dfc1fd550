"""The index finds every pattern that matches a name, and few others."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harebell.base.limits import PATTERN_LITERAL_CHARACTERS, PATTERN_LITERALS
from harebell.base.pattern_index import PatternIndex, clauses_of, fits
from harebell.base.patterns import PatternRefused, found_by

_ATOMS = st.sampled_from(
    ["a", "b", "ab", ".", "[ab]", "[^a]", "^", "$", r"\b", r"\A", r"\Z", "\n", "\0", "(?=a)",
     "(?!b)", "(?<=a)", "(?i:A)", "(?m:^)", "(?m:$)", "(?>ab)", "a++", "(?:)", "x" * 20]
)  # fmt: skip
_TIMES = st.sampled_from(["", "*", "+", "?", "{2}", "{0}", "{1,3}", "+?", "++"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: (
        st.builds("(?:{}|{}){}".format, inner, inner, _TIMES)
        | st.builds("({}){}".format, inner, _TIMES)
        | st.builds("{}{}".format, inner, inner)
    ),
    max_leaves=8,
)
_FLAGS = st.sampled_from(["", "", "(?i)", "(?m)", "(?s)"])


def index_of(patterns: list[str]) -> PatternIndex[str]:
    index: PatternIndex[str] = PatternIndex()
    for number, pattern in enumerate(patterns):
        index.add((number, pattern), clauses_of(pattern), pattern)
    return index


def found(index: PatternIndex[str], name: str) -> list[str]:
    return [pattern for _, pattern in index.found(name)]


@given(st.lists(st.builds("{}{}".format, _FLAGS, _PATTERNS)), st.text("abxA\n\0", max_size=30))
@example(["a$$", "^^a", "^$", "a$"], "a\n")
@example(["(?m)b$", "(?m)^b"], "a\nb\na")
@example(["x{2}y", "^x{3}"], "xxxy")
def test_every_pattern_that_matches_a_name_is_found_for_it(patterns: list[str], name: str) -> None:
    known = {}
    for pattern in dict.fromkeys(patterns):
        try:
            known[pattern] = (found_by(pattern), clauses_of(pattern))
        except PatternRefused:
            continue
    matching = [pattern for pattern, (search, _) in known.items() if search(name)]
    assert all(fits(known[pattern][1], name) for pattern in matching)
    index = index_of([*known])
    assert set(matching) <= set(found(index, name))
    for number, pattern in enumerate(known):
        index.remove((number, pattern))
        assert pattern not in found(index, name)
    assert not index._filed
    assert not index._heads
    assert not index._tails
    assert not index._inner


@pytest.mark.parametrize(
    "form",
    [
        "^orders-{}$",
        "^orders-{}-",
        "orders-{}-x",
        "^orders-.*-{}$",
        r"^orders\.(eu|us)-{}-x$",
        "^(?:a{}|b{})-x$",
        "^[a-z]+-{}-",
        "-{}-x$",
        r"\borders-(?=1){}-",
        "orders-with-a-long-name-{}-x",
    ],
)
def test_of_many_patterns_few_are_searched_for(form: str) -> None:
    patterns = [re.sub(r"\{\}", f"{number:05}", form) for number in range(1_000)]
    index = index_of(patterns)
    name = "orders-with-a-long-name-00077-x"
    assert len(found(index, name)) <= 2
    assert len(found(index, "billing")) == 0
    assert all(pattern in found(index, name) for pattern in patterns if re.search(pattern, name))


def test_patterns_that_need_no_text_are_searched_for_in_every_name_in_their_order() -> None:
    patterns = [".*", "^[ab]+$", "(?i)abc", "a?", "^(a|[bc])$"]
    assert found(index_of(patterns), "zzz") == patterns


def test_what_is_found_comes_in_the_order_of_ranks_and_once() -> None:
    index = index_of(["a", ".*", "b|a", "^a", "a$", "(x|a|b)-"])
    assert found(index, "a-b-a") == ["a", ".*", "b|a", "^a", "a$", "(x|a|b)-"]


def test_the_texts_of_a_pattern_are_few_and_short() -> None:
    clauses = clauses_of("^" + ".".join("ab" * number for number in range(60)))
    assert len(clauses) == PATTERN_LITERALS
    assert max(len(text) for clause in clauses for text in clause) <= PATTERN_LITERAL_CHARACTERS
    assert clauses_of("^(?:" + "|".join(f"{number}a" for number in range(99)) + ")") == ()
