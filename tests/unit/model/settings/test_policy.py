"""What a policy may say, to whom it applies, and how two of them merge."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import Refusal
from harebell.base.patterns import SearchBudget
from harebell.model.settings.policy import (
    Policy,
    PolicyIndex,
    check_policy,
    merged,
    unknown_settings,
)


def policy(definition: dict[str, Any] | None = None, **fields: Any) -> Policy:
    given = {"name": "p", "pattern": ".*", "apply_to": "all", "priority": 0} | fields
    return Policy(**given, definition={"expires": 5} if definition is None else definition)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (policy({"expires": 0}), "0 is not a valid queue expiry"),
        (policy({"message-ttl": -1}), "-1 is not a valid message TTL"),
        (policy({"max-length": True}), "true is not a valid maximum length"),
        (
            policy({"dead-letter-routing-key": "k" * 256}),
            f'<<"{"k" * 256}">> is not a valid dead letter routing key of at most 255 bytes',
        ),
        (policy({"overflow": "x"}), '<<"x">> is not a valid overflow value'),
        (
            policy({"max-length": 2**63}),
            "max-length is 9223372036854775808, which is too large: give a number below 2^63",
        ),
        (policy(priority=2**63), "9223372036854775808 priority must be a number"),
        (policy({"queue-version": 3}), "3 is not a valid queue-version value"),
        (policy({"queue-master-locator": "here"}), '<<"here">> is not a valid master locator'),
        (
            policy({"queue-leader-locator": 1}),
            "1 is not a valid queue leader locator value",
        ),
        (policy({"initial-cluster-size": -1}), "-1 is not a valid cluster size"),
        (policy({"target-group-size": 0}), "0 is not a valid target count value"),
        (
            policy({"stream-max-segment-size-bytes": 3_000_000_001}),
            "3000000001 is not a valid segment size",
        ),
        (policy({"stream-filter-size-bytes": 15}), "15 is not a valid filter size"),
        (policy({"max-age": "0D"}), '<<"0D">> is not a valid max age'),
        (policy({"max-length": 1, "ha-mode": "all"}), "ha-mode: there are no mirrored queues"),
        (policy({"no": 1}), '[{<<"no">>,1}] are not recognised policy settings'),
        (policy({}), "no policy provided"),
        (policy(priority="1"), '<<"1">> priority must be a number'),
        (policy(apply_to="things"), "apply-to 'things' unrecognised; should be one of: "),
        (policy(pattern="("), "pattern should be regular expression but is invalid: "),
    ],
)
def test_a_policy_that_means_nothing_is_refused_with_what_is_wrong(
    wrong: Policy, text: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        check_policy(wrong)
    assert str(refusal.value).startswith(text)


def test_the_mirrors_that_definitions_of_old_ask_for_are_taken() -> None:
    old = {"ha-mode": "exactly", "ha-params": 2, "ha-sync-mode": "automatic"}
    for each in (old, {"ha-mode": "nodes", "ha-params": ["rabbit@a", "rabbit@b"]}):
        check_policy(policy(each), strict=False)
        assert unknown_settings(policy(each), operator=False) == list(each)


def test_an_operator_policy_has_limits_only() -> None:
    check_policy(policy({"max-length": 1}), operator=True)
    check_policy(policy({"dead-letter-exchange": "x"}))
    with pytest.raises(Refusal, match="are not recognised policy settings"):
        check_policy(policy({"dead-letter-exchange": "x"}), operator=True)


def test_the_policy_of_the_highest_priority_applies_alone() -> None:
    low, high = policy(name="a"), policy({"max-length": 1}, name="b", priority=1)
    other = policy(name="c", pattern="^z", priority=9)
    assert PolicyIndex([low, high, other]).first("classic", "queue") is high
    assert PolicyIndex([low, high, other]).first("classic", "zoo") is other


def test_of_many_policies_those_are_tried_whose_text_a_name_has() -> None:
    many = [policy(name=f"p{number}", pattern=f"^q-{number}-") for number in range(1_000)]
    index = PolicyIndex([*many, policy(name="rest", priority=-1)])
    assert index.first("classic", "q-77-x") is many[77]
    assert index.units <= 4


def test_a_policy_is_tried_in_place_of_the_one_of_its_name() -> None:
    low, high = policy(name="low"), policy(name="high", priority=2)
    index = PolicyIndex([low, high])
    for instead, expected in (
        (policy(name="high", priority=-1), low),
        (middle := policy(name="high", priority=1), middle),
        (policy(name="high", priority=2, pattern="^z"), low),
        (other := policy(name="high", priority=2, pattern="^q"), other),
        (top := policy(name="new", priority=3), top),
        (policy(name="new", priority=1), high),
    ):
        assert index.first("classic", "queue", instead) is expected
    assert index.first("classic", "queue") is high


def test_a_pattern_matches_anywhere_in_a_name() -> None:
    assert policy(pattern="b").applies("classic", "abc", SearchBudget())
    assert not policy(pattern="^b").applies("classic", "abc", SearchBudget())


@pytest.mark.parametrize(
    ("apply_to", "kinds"),
    [
        ("all", {"exchange", "classic", "quorum"}),
        ("exchanges", {"exchange"}),
        ("queues", {"classic", "quorum"}),
        ("classic_queues", {"classic"}),
        ("quorum_queues", {"quorum"}),
        ("streams", set()),
    ],
)
def test_a_policy_is_for_the_kinds_it_names_that_know_its_keys(
    apply_to: str, kinds: set[str]
) -> None:
    made = policy(apply_to=apply_to)
    every = ("exchange", "classic", "quorum", "stream")
    assert {kind for kind in every if made.applies(kind, "n", SearchBudget())} == kinds


def test_an_operator_policy_limits_what_a_policy_says() -> None:
    ours = policy({"max-length": 5, "delivery-limit": -1, "overflow": "drop-head", "expires": 3})
    theirs = policy(
        {"max-length": 9, "delivery-limit": 4, "overflow": "reject-publish", "message-ttl": 7}
    )
    assert merged(ours, theirs) == {
        "max-length": 5,
        "delivery-limit": 4,
        "overflow": "reject-publish",
        "expires": 3,
        "message-ttl": 7,
    }
    assert merged(None, None) == {}
