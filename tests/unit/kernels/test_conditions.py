"""The conditions of both twins, over the same messages in every family."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.message import (
    FAMILY_010,
    FAMILY_010T,
    FAMILY_09,
    FAMILY_1_0,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
)
from harebell.front.convert import EDITOR, composed, converted
from harebell.kernels.sections import parse_properties as parse_sections
from harebell.model.filter.comparison import comparison
from harebell.model.filter.matching import like, pattern_octets
from harebell.model.filter.subject import Subject
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Timestamp, ULong
from tests.unit.kernels.twins import twin, used

FAMILIES = (FAMILY_09, FAMILY_1_0, FAMILY_010, FAMILY_010T, FAMILY_FILE, FAMILY_STREAM)
NAMES = ("a", "b", "x-long-name", "é", "x-amqp-type")
PROPERTIES = (
    *("type", "correlation_id", "message_id", "priority", "delivery_mode", "timestamp", "app_id"),
    *("subject", "group_id", "group_sequence", "absolute_expiry_time", "user_id"),
)
IDS = st.sampled_from(["a", "", "é", b"a", ULong(5), ULong(2**63), UUID(int=7), None])
MOMENTS = st.integers(-(2**40), 2**63 - 1).map(Timestamp) | st.none()
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=True)
    | st.sampled_from(["", "a", "ab", "é", "5", "true", "%"])
    | st.binary(max_size=3)
    | st.decimals(-5, 5, places=1)
    | st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
    | st.lists(st.integers(0, 3), max_size=2)
)


def _like(node: Any, pattern: str) -> Any:
    return ("like", node, like(pattern), *pattern_octets(pattern, "\\"))


def _compared(plain: bool) -> Any:
    return lambda op, a, b: (op, a, b, None if plain else comparison(op))


def trees(plain: bool) -> st.SearchStrategy[Any]:
    constants = (
        st.none() | st.booleans() | st.integers(-9, 9) | st.just(2**63) | st.text(max_size=2)
    )
    constants = constants | st.floats(-4, 4) | st.sampled_from(["a", "ab", "é", "5", "true"])
    leaves = (
        st.tuples(st.just("value"), constants)
        | st.tuples(st.just("header"), st.sampled_from(NAMES))
        | st.tuples(st.just("property"), st.sampled_from(PROPERTIES))
        | st.just(("get", lambda subject: subject.properties.get("app_id")))
    )

    def inner(node: Any) -> Any:
        several = st.lists(node, min_size=1, max_size=3)
        return (
            several.map(lambda nodes: ("and", *nodes))
            | several.map(lambda nodes: ("or", *nodes))
            | st.builds(
                _compared(plain), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), node, node
            )
            | st.tuples(st.sampled_from(["+", "-", "*", "/", "%"]), node, node)
            | st.tuples(st.sampled_from(["not", "neg", "null"]), node)
            | st.tuples(st.sampled_from(["else", "native"]), node, node)
            | several.map(lambda nodes: ("in", comparison("=") if not plain else None, *nodes))
            | st.tuples(node, node, node).map(
                lambda nodes: (
                    "between",
                    None if plain else (comparison(">="), comparison("<=")),
                    *nodes,
                )
            )
            | st.builds(_like, node, st.text("a%_é\\", max_size=4))
            | node.map(lambda each: ("match", each, lambda text: text == "a" or None))
        )

    return st.recursive(leaves, inner, max_leaves=8)


def _message(family: int, headers: dict[str, Any], properties: dict[str, Any]) -> Message:
    basic = composed("e", "k", b"", {"headers": headers, "app_id": "a", **properties})
    return basic if family == FAMILY_09 else converted(basic, family)


def told(module: Any, tree: Any, plain: bool, message: Message) -> int:
    looked = Subject(EDITOR)
    looked.is_now(message, 0, 0, "ready", redelivered=False)
    condition = module.Condition(tree, plain)
    first: int = condition.test(message, looked)
    assert condition.test(message, looked) == first
    return first


@pytest.mark.parametrize("plain", [True, False])
@settings(max_examples=400)
@given(data=st.data())
def test_both_twins_say_the_same_of_every_message(plain: bool, data: Any) -> None:
    tree = data.draw(trees(plain))
    family = data.draw(st.sampled_from(FAMILIES))
    headers = data.draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
    properties = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["", "a", "ab"]),
                "correlation_id": st.sampled_from(["a", "é"]),
                "priority": st.integers(0, 9),
                "delivery_mode": st.integers(1, 2),
                "timestamp": st.datetimes(
                    datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)
                ).map(lambda moment: moment.replace(microsecond=0)),
            },
        )
    )
    message = _message(family, headers, properties)
    assert told(used("conditions"), tree, plain, message) == told(
        twin("conditions"), tree, plain, message
    )


@pytest.mark.parametrize("plain", [True, False])
@settings(max_examples=200)
@given(data=st.data())
def test_both_twins_read_the_properties_of_1_0_as_they_are(plain: bool, data: Any) -> None:
    tree = data.draw(trees(plain))
    properties = data.draw(
        st.builds(
            c.Properties,
            message_id=IDS,
            correlation_id=IDS,
            user_id=st.sampled_from([b"a", b"", None]),
            subject=st.sampled_from(["a", "é", None]),
            absolute_expiry_time=MOMENTS,
            creation_time=MOMENTS,
            group_id=st.sampled_from(["a", None]),
            group_sequence=st.sampled_from([0, 5, 2**32 - 1, None]),
        )
    )
    header = data.draw(st.none() | st.builds(c.Header, priority=st.integers(0, 255) | st.none()))
    raw = encode_sections(header=header, properties=properties)
    message = Message("e", "k", parse_sections(raw), b"")
    assert told(used("conditions"), tree, plain, message) == told(
        twin("conditions"), tree, plain, message
    )


@given(st.text("ab%_\\é", max_size=6), st.text("ab%é\n", max_size=10))
def test_like_in_c_agrees_with_its_definition(pattern: str, text: str) -> None:
    message = composed("", "", b"", {"headers": {"a": text}})
    tree = _like(("header", "a"), pattern)
    expected = int(like(pattern)(text))
    for module in (used("conditions"), twin("conditions")):
        assert told(module, tree, True, message) == expected


def test_a_long_text_is_compared_by_the_function_that_bounds_it() -> None:
    message = composed("", "", b"", {"headers": {"a": "x" * 5000}})
    asked: list[int] = []
    tree = ("like", ("header", "a"), lambda text: asked.append(len(text)), b"%", b"\2")
    told(used("conditions"), tree, True, message)
    assert asked == [5000, 5000]


def test_decimals_and_times_are_numbers_for_selectors_only() -> None:
    headers = {"a": Decimal("2.5"), "b": datetime(2026, 1, 1, tzinfo=UTC)}
    message = composed("", "", b"", {"headers": headers})
    for module in (used("conditions"), twin("conditions")):
        for name, number in (("a", 2.5), ("b", 1_767_225_600_000)):
            tree = ("=", ("header", name), ("value", number), None)
            assert told(module, tree, True, message) == 1
            assert told(module, tree, False, message) == 0
