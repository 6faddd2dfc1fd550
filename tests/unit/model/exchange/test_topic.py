"""Topic matching against an independent matcher, and what is kept against what is bound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.impl import NATIVE, chosen
from harebell.model.binding import Binding
from harebell.model.exchange.topic import TopicExchange
from tests.unit.model.things import message, queue

words = st.sampled_from(["a", "b", "", "*", "#"])
patterns = st.lists(words, min_size=1, max_size=6).map(".".join)
QUEUE = queue("q")
ROOT = Path(__file__).parents[4]
keys = st.lists(st.sampled_from(["a", "b", "c", "", "*", "#"]), min_size=1, max_size=6).map(
    ".".join
)


def fits(pattern: list[str], key: list[str]) -> bool:
    """The rule as the specification states it, word by word (AMQP 0-9-1 3.1.3.3)."""
    if not pattern:
        return not key
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return any(fits(rest, key[at:]) for at in range(len(key) + 1))
    return bool(key) and first in ("*", key[0]) and fits(rest, key[1:])


def split(key: str) -> list[str]:
    """Zero or more words, with dots between them."""
    return key.split(".") if key else []


def bound(*bound_patterns: str) -> TopicExchange:
    exchange = TopicExchange("t")
    for pattern in bound_patterns:
        exchange.bind(Binding(exchange, queue(pattern), pattern, {}))
    return exchange


def reached(exchange: TopicExchange, key: str) -> list[str]:
    return sorted(each.name for each in exchange.match(message(key=key), {}))


@settings(max_examples=300, deadline=None)
@given(st.lists(patterns, unique=True, max_size=8), st.lists(keys, min_size=1, max_size=5))
def test_the_exchange_finds_what_the_rule_finds(some: list[str], routed: list[str]) -> None:
    exchange = bound(*some)
    for key in routed:
        expected = sorted(p for p in some if fits(split(p), split(key)))
        assert reached(exchange, key) == expected


@settings(max_examples=150, deadline=None)
@given(st.lists(patterns, unique=True, min_size=1, max_size=8), st.data())
def test_unbinding_takes_away_that_pattern_and_no_other(
    some: list[str], data: st.DataObject
) -> None:
    exchange = bound(*some)
    gone = data.draw(st.sets(st.sampled_from(some)))
    for binding in list(exchange.bindings.values()):
        if binding.routing_key in gone:
            assert exchange.unbind(binding) is binding
    key = data.draw(keys)
    stay = [p for p in some if p not in gone]
    expected = sorted(p for p in stay if fits(split(p), split(key)))
    assert reached(exchange, key) == expected


@given(st.lists(patterns, unique=True, max_size=8))
def test_nothing_of_the_index_stays_when_the_last_binding_went(some: list[str]) -> None:
    exchange = bound(*some)
    for identity in list(exchange.bindings):
        exchange.unbind(identity)
    assert len(exchange.index) == 0
    assert len(exchange.slots) == 0


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("#", "", True),
        ("#", "a.b.c", True),
        ("*", "", False),
        ("*.#", "", False),
        ("#.*", ".", True),
        ("", ".", False),
        ("*", "a.b", False),
        ("a.#", "a", True),
        ("a.#.b", "a.b", True),
        ("#.b", "a.a.b", True),
        ("*.*", "a.", True),
        ("a.*", "a", False),
        ("a", "A", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_the_corner_cases_are_as_everybody_knows_them(
    pattern: str, key: str, expected: bool
) -> None:
    assert reached(bound(pattern), key) == ([pattern] if expected else [])


def test_patterns_that_mean_the_same_each_match() -> None:
    assert reached(bound("#", "#.#", "#.#.#"), "a.b") == ["#", "#.#", "#.#.#"]
    assert reached(bound("#.*", "*.#", "#.*.#"), "a") == ["#.*", "#.*.#", "*.#"]


def test_a_queue_that_many_patterns_lead_to_is_found_once() -> None:
    exchange = TopicExchange("t")
    for pattern in ("#", "a.#", "*", "a"):
        exchange.bind(Binding(exchange, QUEUE, pattern, {}))
    assert list(exchange.match(message(key="a"), {})) == [QUEUE]
    # The first pattern found is enough.
    assert exchange.examined <= 5


def test_many_hashes_against_a_long_key_stay_cheap() -> None:
    exchange = bound(".".join(["#", "a"] * 20 + ["#"]))
    key = ".".join(["a"] * 19 + ["b"] * 100)
    # A matcher that tries every split would need about 10**20 steps here.
    assert reached(exchange, key) == []


def _kept_for(bindings: int) -> int:
    """The octets of memory that a new process has more with so many topic bindings."""
    script = (
        "import sys\n"
        "from tests.unit.model.things import vhost\n"
        "def kept():\n"
        "    with open('/proc/self/statm') as file:\n"
        "        return int(file.read().split()[1]) * 4096\n"
        "host = vhost()\n"
        "queue = host.declare_queue('q')\n"
        "before = kept()\n"
        "for number in range(int(sys.argv[1])):\n"
        "    host.bind('amq.topic', queue, f'bench.k{number}.*')\n"
        "print(kept() - before)\n"
    )
    command = [sys.executable, "-c", script, str(bindings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return int(done.stdout)


def test_a_topic_binding_with_a_word_of_its_own_takes_little_memory() -> None:
    # The tree of the twin is made of Python objects.
    most = 720 if chosen() == NATIVE else 2_000
    assert _kept_for(40_000) < 40_000 * most
