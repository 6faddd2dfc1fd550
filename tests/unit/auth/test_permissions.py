"""What patterns allow."""

from __future__ import annotations

import pytest

from harebell.auth import permissions
from harebell.auth.permissions import ACTIONS, PatternError, Permissions, everything


@pytest.mark.parametrize(
    ("pattern", "name", "allowed"),
    [
        (".*", "orders", True),
        ("order", "new-orders-7", True),
        ("^order", "new-orders", False),
        ("^(orders|events)$", "events", True),
        ("^(orders|events)$", "events2", False),
        ("", "orders", False),
        ("", "", True),
        ("^$", "orders", False),
        (r"^q\d+$", "q7", True),
        (r"^q\d+$", "q\u0667", False),
    ],
)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_pattern_is_searched_for_anywhere_and_an_empty_one_matches_no_name(
    action: str, pattern: str, name: str, allowed: bool
) -> None:
    held = Permissions(**{action: pattern})
    assert held.allow(action, name) is allowed
    assert held.allow(action, name) is allowed, "the second answer is remembered"
    for other in ACTIONS:
        if other != action:
            assert not held.allow(other, "x" + name)


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "[[:alphabet:]]"])
@pytest.mark.parametrize("action", ACTIONS)
def test_an_invalid_regular_expression_is_refused_by_name(action: str, pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        Permissions(**{action: pattern})
    assert str(caught.value).startswith(
        f"the {action} pattern '{pattern}' is not a regular expression: "
    )


def test_remembered_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "PERMISSION_CACHE_ENTRIES", 3)
    held = everything()
    for number in range(10):
        assert held.allow("read", str(number))
        assert len(held._known) <= 3


def test_permissions_are_equal_by_their_patterns_alone() -> None:
    one, other = everything(), everything()
    one.allow("read", "x")
    assert one == other
    assert one != Permissions(".*", ".*", "")
