"""Patterns that are followed in all ways at once find what `re` finds, and end."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harebell.auth.permissions import PatternError, Permissions
from harebell.auth.topics import TopicPermission
from harebell.base import patterns
from harebell.base.limits import (
    PATTERN_BYTES,
    PATTERN_CACHE_ENTRIES,
    PATTERN_TESTS,
    PATTERN_TESTS_TOGETHER,
)
from harebell.base.patterns import (
    PatternRefused,
    PatternTooCostly,
    PatternTooSlow,
    SearchBudget,
    found_by,
    linear_search_for,
    search_for,
)
from harebell.base.pcre import CLASSES
from harebell.model.settings.policy import Policy, PolicyIndex

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
    "(.*a){50}c",
    "(.*a){2,50}c",
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
        with pytest.raises(PatternRefused):
            search_for(pattern, re.ASCII)
        return
    try:
        search = search_for(pattern, re.ASCII)
    except PatternTooCostly:
        assert re.search(r"\\\d|\(\?>|\+\+", pattern), "only what takes backtracking"
        return
    for name in names:
        assert search(name) == (compiled.search(name) is not None), name


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_name_that_nearly_has_a_pattern_is_told_apart(pattern: str) -> None:
    search = search_for(pattern)
    assert not search("a" * 254 + "!")


COSTLY = (
    "a" * (PATTERN_BYTES + 1),
    "\u00e9" * (PATTERN_BYTES // 2 + 1),
    "(" * 101 + "a*" + ")" * 101,
    "(" * 2_000 + ")" * 2_000,
    "(a*)*" + "".join(f"[{chr(0x100 + each)}-\uffff]" for each in range(800)),
    "[\x00-\U0010ffff]",
    "(x?)" * 1_000,
    ".*" * 2_000 + "y",
    "(x{0,1000}){0,1000}y",
    "((((x{0,9}){0,9}){0,9}){0,9}){0,9}y",
    r"(x*)(x*)\1\2y",
    "(?:x+x+)+y{5001}",
    "(?!" + "x?" * 900 + "y)z*",
    "(?:x++|y)*z",
)
"""Each took seconds to compile or to search for, or was left to `re`, which might never end."""


@pytest.mark.parametrize("pattern", COSTLY, ids=range(len(COSTLY)))
def test_an_expensive_pattern_is_refused_and_matches_nothing_where_it_is_stored(
    pattern: str,
) -> None:
    with pytest.raises(PatternTooCostly):
        search_for(pattern)
    assert not found_by(pattern)("x" * 255)
    with pytest.raises(PatternError):
        Permissions(pattern, "", "")
    stored = Permissions(pattern, ".*", pattern, stored=True)
    assert (stored.allow("configure", "x"), stored.allow("write", "x")) == (False, True)
    assert not TopicPermission(pattern, pattern, stored=True).allow("read", "x")
    assert not Policy("p", pattern, "all", 0, {}).applies("classic", "x", SearchBudget())


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions of all tests of a character or a position from now on."""
    found: list[int] = []
    holds = patterns._Test.holds

    def counted(test: patterns._Test, text: str, at: int = 0) -> bool:
        found.append(at)
        return holds(test, text, at)

    monkeypatch.setattr(patterns._Test, "holds", counted)
    return found


def test_what_the_characters_of_a_name_lead_to_is_found_out_once(
    held: list[int],
) -> None:
    search = search_for("^" + "(m*)*" * 50 + "z$")
    assert search("m" * 239 + "z")
    assert not search("m" * 240)
    assert len(held) < 20


def test_a_search_of_a_name_has_a_number_of_tests(held: list[int]) -> None:
    search = search_for("(.*a){50}b")
    assert not search("a" * 255)
    assert len(held) <= PATTERN_TESTS


def test_searches_for_many_patterns_in_one_name_have_a_number_of_tests_together(
    held: list[int],
) -> None:
    name = "a" * 200
    costly = [
        Policy(f"p{n:03}", f"(a|aa)+(b|bb)+[cd]{{{n}}}[xy]$", "all", 9, {}) for n in range(200)
    ]
    quick = Policy("z", "^a+$", "all", 0, {"max-length": 1})
    for _ in range(2):
        assert PolicyIndex([quick, *costly]).first("classic", name) is quick
    assert len(held) <= PATTERN_TESTS_TOGETHER + PATTERN_TESTS


def test_the_patterns_of_any_number_of_policies_are_compiled_once() -> None:
    policies = [Policy(f"p{n}", f"^once-{n}$", "all", 0, {}) for n in range(PATTERN_CACHE_ENTRIES)]
    policies += [Policy(f"q{n}", f"^more-{n}$", "all", 0, {}) for n in range(10)]
    index, compiled = PolicyIndex(policies), []
    for _ in range(2):
        for policy in policies:
            assert index.first("classic", policy.pattern.strip("^$")) is policy
        compiled.append(search_for.cache_info().misses)
    assert compiled[0] == compiled[1]


def test_the_policies_that_go_before_others_are_compared_first() -> None:
    name = "ab" * 100
    costly = [
        Policy(f"p{n:03}", f"(.*[ab].*[bc]){{40}}[c-e]{{{n + 1}}}$", "all", 1, {})
        for n in range(20)
    ]
    for priority, found in ((2, True), (0, False)):
        simulated = Policy("z", "^(a+b?)+$", "all", priority, {"max-length": 1})
        assert (PolicyIndex([*costly, simulated]).first("classic", name) is simulated) is found


@pytest.mark.parametrize("pattern", ["x{99999999999}", "(?<=a*)b", "(", "a{2}{3}*("])
def test_an_invalid_pattern_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(PatternRefused, match=r"^is invalid: "):
        search_for(pattern)


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
        assert not Policy("p", pattern, "all", 0, {}).applies("classic", name, SearchBudget())


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
def test_patterns_that_need_backtracking_are_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        linear_search_for(pattern)


def test_flags_in_a_pattern_hold() -> None:
    assert linear_search_for("(?i)ABC")("xabcx")
    assert linear_search_for("(?s)a.c")("a\nc")
    assert not linear_search_for("a.c")("a\nc")


def test_a_search_without_backtracking_has_a_number_of_tests(held: list[int]) -> None:
    search = linear_search_for("(?i)(a|b)*a(a|b){120}c", PATTERN_TESTS)
    numbers = random.Random(1)
    name = "".join(numbers.choice("ab") for _ in range(2_000))
    with pytest.raises(PatternTooSlow):
        search(name)
    assert len(held) <= PATTERN_TESTS
    held.clear()
    # A position is looked at where it can hold: the text may have thousands of lines.
    assert not linear_search_for("(^|x)y$")("a\n" * 5_000)
    assert len(held) < 100


def test_a_search_that_would_take_long_is_ended() -> None:
    search = linear_search_for("(a|b)*a(a|b){100}c")
    numbers = random.Random(1)
    with pytest.raises(PatternTooSlow):
        search("".join(numbers.choice("ab") for _ in range(16_000)))


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        ("^[[:digit:]]+$", "12", "d]"),
        ("^[[:^digit:]]+$", "d]\\ü\U0001f600", "a1"),
        ("^[^[:^digit:]]+$", "12", "1a"),
        ("^[[:^punct:]]+$", "a1 ", "a]"),
        ("^[^[:space:]]$", "a", " "),
        (r"^a\hb$", "a b", "ahb"),
        (r"^a\Hb$", "ahb", "a b"),
        (r"^[\hx]$", "\t", "h"),
        (r"^a\vb$", "a\nb", "avb"),
        (r"^a\Rb$", "a\r\nb", "aRb"),
        (r"^a\z", "a", "a\n"),
        (r"^a\Z", "a\n", "ab"),
        ("^(?<x>ab)+$", "abab", "aba"),
        ("^[]a]$", "]", "b"),
        ("^[^]a]$", "b", "]"),
        ("^[[]$", "[", "]"),
        ("^[a&&b]$", "&", "c"),
        (r"^\\[[:alpha:]]$", "\\a", "\\1"),
    ],
)
def test_a_pattern_of_pcre_means_what_it_means_there(pattern: str, found: str, missed: str) -> None:
    for search in (search_for(pattern), linear_search_for(pattern)):
        assert search(found)
        assert not search(missed)


@pytest.mark.parametrize("name", [*CLASSES])
def test_a_class_and_its_opposite_share_no_character(name: str) -> None:
    inside, outside = search_for(f"[[:{name}:]]"), search_for(f"[^[:{name}:]]")
    for number in range(256):
        assert inside(chr(number)) != outside(chr(number))


@pytest.mark.parametrize(
    "pattern",
    [
        "[[:nothing:]]",
        "[[:^nothing:]]",
        "[a[:^digit:]]",
        "[:digit:]+",
        "[[.a.]]",
        r"\K",
        r"\p{L}",
        "(?R)",
    ],
)
def test_syntax_unknown_to_python_and_here_is_refused(pattern: str) -> None:
    for search in (search_for, linear_search_for):
        with pytest.raises(PatternRefused):
            search(pattern)


@pytest.mark.parametrize("pattern", ["^(a|b)+-(c|d)+-", r"\A(a|b)+-(c|d)+-"])
def test_a_pattern_of_the_start_of_a_name_is_given_up_after_it(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests: list[int] = []
    holds = patterns._Test.holds

    def counted(self: patterns._Test, text: str, at: int = 0) -> bool:
        tests.append(at)
        return holds(self, text, at)

    monkeypatch.setattr(patterns._Test, "holds", counted)
    assert not search_for(pattern)("ab" + "x" * 250)
    assert max(tests) <= 2
    assert search_for(pattern)("ab-d-")
    assert search_for(f"(?m){pattern}")("x\nab-d-") == (pattern[0] == "^")
