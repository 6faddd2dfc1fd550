"""A headers exchange compares values, and their types only inside arrays and tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.binding import Binding
from harebell.model.exchange.headers import HeadersExchange, fits
from tests.unit.model.things import message, queue


@pytest.mark.parametrize(
    ("arguments", "headers", "expected"),
    [
        ({}, {}, True),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
        ({"x-match": "any", "a": 1}, {}, False),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": None}, {"a": "anything"}, True),
        ({"a": None}, {"b": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1.5}, {"a": 1}, False),
        ({"a": 1.0}, {"a": True}, False),
        ({"a": 60}, {"a": datetime(1970, 1, 1, 0, 1, tzinfo=UTC)}, True),
        ({"a": datetime(1970, 1, 1, 0, 1, tzinfo=UTC)}, {"a": 61.0}, False),
        ({"a": "text"}, {"a": b"text"}, True),
        ({"a": b"\xff"}, {"a": "\xff"}, False),
        ({"a": [1]}, {"a": [1.0]}, False),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"x-a": 1}, {}, True),
        ({"x-match": "all-with-x", "x-a": 1}, {}, False),
        ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ],
)
def test_headers_fit_or_not(
    arguments: dict[str, Any], headers: dict[str, Any], expected: bool
) -> None:
    assert fits(arguments, headers) is expected


def test_the_key_does_not_count() -> None:
    exchange = HeadersExchange("h")
    destination = queue()
    exchange.bind(Binding(exchange, destination, "key", {"a": 1}))
    assert exchange.needs_headers
    assert not exchange.by_key
    assert list(exchange.match(message(key="other"), {"a": 1})) == [destination]
    assert list(exchange.match(message(key="key"), {})) == []


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("some", 'Invalid x-match field value <<"some">>; expected all, any'),
        (7, "Invalid x-match field type signedint (value 7); expected longstr"),
    ],
)
def test_an_unknown_way_to_match_is_refused_and_not_bound(how: Any, text: str) -> None:
    exchange = HeadersExchange("h")
    with pytest.raises(Refusal) as refused:
        exchange.bind(Binding(exchange, queue(), "", {"x-match": how}))
    assert refused.value.kind is ErrorKind.PRECONDITION_FAILED
    assert refused.value.text.startswith(text)
    assert exchange.bindings == {}


def test_unbinding_ends_matching() -> None:
    exchange = HeadersExchange("h")
    binding = Binding(exchange, queue(), "", {"a": 1})
    exchange.bind(binding)
    assert exchange.unbind(binding.identity) is binding
    assert list(exchange.match(message(), {"a": 1})) == []
