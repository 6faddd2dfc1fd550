"""Scopes of tokens as permissions: patterns, variables, tags, and where they are found."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harebell.auth.authority import RESOURCE, TOPIC, VHOST, Question, RemoteUser, Undecided
from harebell.auth.scopes import ScopeError, allows, fits, granted, scopes_of, tags_of


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*", "", True),
        ("*", "anything/at all", True),
        ("", "", True),
        ("", "a", False),
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "ac", True),
        ("a*a", "a", False),
        ("a*b*c", "aXbYc", True),
        ("a*b*b", "ab", False),
        ("*o*o*", "foo", True),
        ("%2F", "/", True),
        ("%2A", "*", True),
        ("%2A", "x", False),
        ("caf%C3%A9*", "café au lait", True),
        ("A", "a", False),
    ],
)
def test_a_star_stands_for_anything_and_the_rest_for_itself(
    pattern: str, text: str, expected: bool
) -> None:
    assert fits(pattern, text) is expected


def test_a_pattern_takes_time_that_grows_with_the_text_alone() -> None:
    began = time.thread_time()
    assert not fits("*a" * 2_000 + "b", "a" * 255)
    assert not fits("*".join(["ab"] * 100), "ab" * 100 + "x")
    assert time.thread_time() - began < 1.0


def test_a_routing_key_needs_a_pattern_of_its_own() -> None:
    topic = Question(TOPIC, "/", "topic", "news", "write", "a.b")
    assert not allows(granted(["write:*/*"], {}), topic)
    assert allows(granted(["write:*/*/a.*"], {}), topic)
    assert not allows(granted(["read:*/*/a.*"], {}), topic)


def test_any_permission_opens_the_vhost() -> None:
    grants = granted(["read:one/x", "write:t*/y"], {})
    assert [allows(grants, Question(VHOST, name)) for name in ("one", "two", "x")] == [
        True,
        True,
        False,
    ]


def test_variables_stand_for_claims_without_wildcards() -> None:
    grants = granted(["configure:{vhost}/{sub}-*", "configure:*/{none}"], {"sub": "a/*"})

    def may(name: str) -> bool:
        return allows(grants, Question(RESOURCE, "v", "queue", name, "configure"))

    assert may("a/*-1")
    assert not may("a/x-1")
    assert may("{none}")
    assert not may("")


@pytest.mark.parametrize(
    "scope",
    ["read:a", "read:a/b/c/d", "own:a/b", "read", "", ":", "READ:*/*", "read:", " read:*/*"],
)
def test_an_invalid_scope_grants_nothing(scope: str) -> None:
    assert granted([scope], {}) == ()


def found(claims: dict[str, Any], **options: Any) -> list[str]:
    given: dict[str, Any] = {
        "resource_server": "mq",
        "prefix": "mq.",
        "additional": (),
        "aliases": {},
        "limit": 10,
        **options,
    }
    return scopes_of(claims, **given)


@pytest.mark.parametrize("value", [None, 7, [7, None, {"a": 1}], {"other": ["read:*/*"]}, True])
def test_claims_of_other_types_have_no_scopes(value: Any) -> None:
    assert found({"scope": value, "roles": value}, additional=("roles", "a.b", "")) == []


def test_scopes_have_the_prefix_and_there_are_not_too_many() -> None:
    assert found({"scope": "mq.tag:a other.tag:b tag:c"}) == ["tag:a"]
    assert tags_of(["tag:b", "tag:a", "read:*/*"]) == ("a", "b")
    with pytest.raises(ScopeError, match="has 11 scopes, at most 10"):
        found({"scope": " ".join(f"mq.{number}" for number in range(11))})


class Recorded:
    """An authority that allows some names."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[Question] = []

    def allows(self, question: Question) -> bool:
        self.asked.append(question)
        return question.name in self.names

    def settled(self) -> None:
        self.names = ()


def test_all_authorities_of_a_user_have_to_allow() -> None:
    one, other = Recorded("a", "b"), Recorded("b", "c")
    user = RemoteUser("ada", ("management",), (one, other))
    assert [user.allows("/", "read", "queue", name) for name in "abc"] == [False, True, False]
    topics = user.topics("/", "b")
    assert topics.allow("write", "k")
    assert one.asked[-1] == Question(TOPIC, "/", "topic", "b", "write", "k")
    user.settled()
    assert not user.allows("/", "read", "queue", "b")


def test_a_decision_that_nobody_asks_for_is_a_refusal() -> None:
    refused = Undecided(lambda done: done())
    assert "could not be asked here" in refused.text
