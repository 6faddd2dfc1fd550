"""Redeclarations: what counts as the same, and the words for what does not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.equivalence import check_arguments, check_field, shown, type_name
from harebell.wire.v09.fields import Timestamp

THING = "queue 'q' in vhost '/'"
KEYS = ("x-max-length", "x-expires")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        (5, "signedint"),
        (-(2**31), "signedint"),
        (2**31, "long"),
        (Timestamp(2**63), "long"),
        ("x", "longstr"),
        (b"x", "longstr"),
        (1.5, "double"),
        ({}, "table"),
        ([], "array"),
        (None, "void"),
        (datetime(2020, 1, 1, tzinfo=UTC), "datetime"),
    ],
)
def test_types_have_the_names_that_users_know(value: Any, name: str) -> None:
    assert type_name(value) == name


def test_values_are_shown_as_users_wrote_them() -> None:
    assert [shown(value) for value in (True, False, b"caf\xc3\xa9", 7)] == [
        "true",
        "false",
        "café",
        "7",
    ]


def test_a_differing_field_is_named_with_both_values() -> None:
    with pytest.raises(Refusal) as refused:
        check_field("durable", THING, True, False)
    assert refused.value.kind is ErrorKind.PRECONDITION_FAILED
    assert refused.value.text == (
        f"inequivalent arg 'durable' for {THING}: received 'true' but current is 'false'"
    )
    check_field("durable", THING, True, True)


@pytest.mark.parametrize(
    ("received", "current"),
    [
        ({"x-max-length": 5}, {"x-max-length": 5}),
        ({"mine": 1}, {"mine": 2}),
        ({}, {"not-compared": 1}),
        ({"x-max-length": 2**31}, {"x-max-length": 2**31}),
    ],
)
def test_arguments_that_mean_the_same_pass(
    received: dict[str, Any], current: dict[str, Any]
) -> None:
    check_arguments(THING, received, current, KEYS)


@pytest.mark.parametrize(
    ("received", "current", "words"),
    [
        ({"x-expires": 5}, {"x-expires": 6}, "received '5' but current is '6'"),
        ({"x-expires": 1}, {"x-expires": True}, "received '1' but current is 'true'"),
        ({"x-expires": "5"}, {"x-expires": 5}, "received '5' but current is '5'"),
        (
            {"x-expires": 5},
            {},
            "received the value '5' of type 'signedint' but current is none",
        ),
        (
            {},
            {"x-expires": "a"},
            "received none but current is the value 'a' of type 'longstr'",
        ),
    ],
)
def test_arguments_that_differ_are_refused_with_the_known_words(
    received: dict[str, Any], current: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check_arguments(THING, received, current, KEYS)
    assert refused.value.text == f"inequivalent arg 'x-expires' for {THING}: {words}"
