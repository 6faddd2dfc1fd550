"""The index of topic patterns against the rule of the specification, and its work against what is
bound: however patterns are chosen, each is looked at once at most.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.kernels.twins import twin, used


def twin_over_its_tree() -> ModuleType:
    """The twin, over the tree's twin."""
    name = "harebell.kernels.topic_tree"
    before = sys.modules[name]
    sys.modules[name] = twin("topic_tree")
    try:
        return twin("topic_matching")
    finally:
        sys.modules[name] = before


USED = used("topic_matching")
TWIN = twin_over_its_tree()
MODULES = [pytest.param(USED, id="used"), pytest.param(TWIN, id="twin")]
MANY_PATTERNS = 1_500

words = st.sampled_from(["a", "b", "", "*", "#", "c"])
patterns = st.lists(words, min_size=1, max_size=8).map(".".join)
keys = st.lists(st.sampled_from(["a", "b", "c", "", "d", "#"]), min_size=1, max_size=9).map(
    ".".join
)


def split(key: str) -> list[str]:
    return key.split(".") if key else []


def fits(pattern: list[str], key: list[str]) -> bool:
    """The rule as the specification states it (AMQP 0-9-1 3.1.3.3), place by place."""
    reached = {0}
    for word in pattern:
        if word == "#":
            reached = set(range(min(reached), len(key) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(key) and word in ("*", key[at])}
    return len(key) in reached


def choices(seed: int, alphabet: str, length: int) -> str:
    """Words that look chosen at random, the same ones each time."""
    found = []
    for _ in range(length):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append(alphabet[(seed >> 33) % len(alphabet)])
    return ".".join(found)


def hostile() -> dict[str, tuple[list[str], list[str]]]:
    """Patterns and keys that send matchers back and forth."""
    every = range(MANY_PATTERNS)
    return {
        "all kinds of words": (
            [choices(at, "#*ab", 40) for at in every],
            [choices(at, "ab", 60) for at in range(8)],
        ),
        "segment after segment": (
            ["#." + choices(at, "ab", 30).replace(".", ".#.") + ".#.z.#" for at in every],
            ["z." + choices(at, "ab", 120) for at in range(4)],
        ),
        "stars until the last word": (
            [choices(at, "a*", 39) + ".b" for at in every],
            [choices(1, "a", 40), choices(1, "a", 39) + ".b"],
        ),
        "one long segment": (
            ["#.a." + choices(at, "a*", 30) + ".b.#" for at in every],
            [choices(1, "a", 127), choices(1, "a", 90) + ".b"],
        ),
        "suffixes": (
            ["#.b." + choices(at, "a*", 30) for at in every],
            [choices(1, "a", 60), "b." + choices(1, "a", 30)],
        ),
        "different words": (
            [f"#.a{at}.#.b" for at in every] + [f"c.{at}.#" for at in every],
            ["x.a77.y.b", "c.99", "c.99.a", "a1.a2.b"],
        ),
    }


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=200, deadline=None)
@given(st.lists(patterns, max_size=8), st.lists(keys, min_size=1, max_size=5))
def test_the_index_finds_what_the_rule_finds(
    module: ModuleType, some: list[str], routed: list[str]
) -> None:
    index = module.TopicIndex()
    for slot, pattern in enumerate(some):
        index.add(pattern, slot)
    for key in routed:
        expected = [slot for slot, each in enumerate(some) if fits(split(each), split(key))]
        assert sorted(index.match(key)) == expected


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("kind", list(hostile()))
def test_divided_buckets_find_what_the_rule_finds(module: ModuleType, kind: str) -> None:
    some, routed = hostile()[kind]
    index = module.TopicIndex()
    for slot, pattern in enumerate(some):
        index.add(pattern, slot)
    for key in routed:
        words = split(key)
        expected = [slot for slot, each in enumerate(some) if fits(split(each), words)]
        assert sorted(index.match(key)) == expected
        # A node, a segment and a pattern for each, at most.
        assert index.cost <= 3 * len(some) + 8


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("kind", list(hostile()))
def test_a_removed_pattern_matches_no_more(module: ModuleType, kind: str) -> None:
    some, routed = hostile()[kind]
    index = module.TopicIndex()
    for slot, pattern in enumerate(some):
        index.add(pattern, slot)
    stay = list(range(0, len(some), 3))
    for slot, pattern in enumerate(some):
        if slot % 3:
            index.remove(pattern, slot)
    for key in routed:
        words = split(key)
        assert sorted(index.match(key)) == [s for s in stay if fits(split(some[s]), words)]
    for slot in stay:
        index.remove(some[slot], slot)
    assert len(index) == 0
    assert index.match(routed[0]) == []
    assert index.cost == 1


def test_both_implementations_look_at_equally_much() -> None:
    for some, routed in hostile().values():
        counted: list[list[Any]] = []
        for module in (USED, TWIN):
            index = module.TopicIndex()
            for slot, pattern in enumerate(some):
                index.add(pattern, slot)
            counted.append([(sorted(index.match(key)), index.cost) for key in routed])
        assert counted[0] == counted[1]


@pytest.mark.parametrize("module", MODULES)
def test_patterns_with_words_of_their_own_are_not_looked_at_for_others(module: ModuleType) -> None:
    for form in ("user.{}.*", "#.{}", "#.{}.#", "{}.#.b", "*.{}.*"):
        index = module.TopicIndex()
        for at in range(2_000):
            index.add(form.format(f"w{at}"), at)
        key = {"user.{}.*": "user.w7.x", "{}.#.b": "w7.a.b", "#.{}": "a.w7"}.get(form, "a.w7.b")
        assert index.match(key) == [7]
        assert index.cost <= 8


@pytest.mark.parametrize("module", MODULES)
def test_patterns_that_mean_the_same_are_kept_once(module: ModuleType) -> None:
    index = module.TopicIndex()
    index.add("#.*", 1)
    index.add("*.#", 1)
    index.add("#.*.#", 2)
    assert len(index) == 1
    index.remove("*.#", 1)
    assert sorted(index.match("a")) == [1, 2]
    index.remove("#.*", 1)
    assert index.match("a") == [2]


@pytest.mark.parametrize("module", MODULES)
def test_keys_may_be_longer_than_a_short_string(module: ModuleType) -> None:
    """As a key in the header CC may be."""
    index = module.TopicIndex()
    index.add("a.#.b.c.#.d", 0)
    index.add("#.b.*.c.#", 1)
    filler = ".".join(["x"] * 300)
    assert index.match(f"a.{filler}.b.c.{filler}.d") == [0]
    assert sorted(index.match(f"a.{filler}.b.b.c.{filler}.d")) == [0, 1]
    assert index.match(f"{filler}.b") == []


@pytest.mark.parametrize("module", MODULES)
def test_the_longest_patterns_are_divided_too(module: ModuleType) -> None:
    index = module.TopicIndex()
    same = "." * 200
    for at in range(400):
        index.add(f"{same}.{at}", at)
        index.add(f"#.x{same}.{at}", 1000 + at)
    assert index.match(f"{same}.399") == [399]
    assert index.match(f"y.x{same}.17") == [1017]


@pytest.mark.parametrize("module", MODULES)
def test_patterns_that_come_go_and_lead_elsewhere_are_found_as_they_are_now(
    module: ModuleType,
) -> None:
    index = module.TopicIndex()
    kept: dict[tuple[str, int], None] = {}
    seed = 7
    for _ in range(6_000):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        pair = choices((seed >> 20) % 1_500, "#*ab", 8), (seed >> 50) % 3
        if pair in kept:
            del kept[pair]
            index.remove(*pair)
        else:
            kept[pair] = None
            index.add(*pair)
    for at in range(20):
        key = choices(at, "ab", 9)
        expected = {slot for pattern, slot in kept if fits(split(pattern), split(key))}
        assert set(index.match(key)) == expected
