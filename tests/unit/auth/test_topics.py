"""What patterns allow of the keys of a topic exchange."""

from __future__ import annotations

import pytest

from harebell.auth.limits import PERMISSION_CACHE_ENTRIES
from harebell.auth.permissions import READ, WRITE, PatternError
from harebell.auth.topics import TopicPermission


@pytest.mark.parametrize(
    ("pattern", "key", "allowed"),
    [
        ("^a", "a.b", True),
        ("^a", "b.a", False),
        ("", "a", False),
        ("", "", True),
        (r"^{username}\.", "ann.b+c.x", False),
        (r"^{username}\.", "a.n+n.x", True),
        (r"^{username}\.", "aXnnn.x", False),
        (r"^{vhost}\.{username}$", "v|w.a.n+n", True),
        (r"^{vhost}\.{username}$", "w.a.n+n", False),
        ("{client_id}", "{client_id}", True),
    ],
)
@pytest.mark.parametrize(("action", "other"), [(WRITE, READ), (READ, WRITE)])
def test_names_stand_for_themselves_in_a_pattern(
    action: str, other: str, pattern: str, key: str, allowed: bool
) -> None:
    topic = TopicPermission(**{action: pattern, other: "^$"}, username="a.n+n", vhost="v|w")
    for _ in range(2):
        assert topic.allow(action, key) is allowed
    assert topic.allow(other, "x" + key) is False


@pytest.mark.parametrize("action", [WRITE, READ])
def test_an_invalid_regular_expression_is_refused_as_it_was_written(action: str) -> None:
    patterns = {WRITE: "", READ: "", action: "({username}"}
    with pytest.raises(PatternError, match=rf"the {action} pattern '\(\{{username\}}' is not a"):
        TopicPermission(**patterns, username="ann", vhost="/")


def test_the_memory_of_answers_is_bounded() -> None:
    topic = TopicPermission("^1", "")
    for number in range(3 * PERMISSION_CACHE_ENTRIES):
        assert topic.allow(WRITE, str(number)) is str(number).startswith("1")
    assert len(topic._known) <= PERMISSION_CACHE_ENTRIES
