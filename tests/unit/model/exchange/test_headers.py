"""A headers exchange compares values, and their types only inside arrays and tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.binding import Binding
from harebell.model.exchange.headers import HeadersExchange
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
    exchange = HeadersExchange("h")
    exchange.bind(Binding(exchange, queue(), "", arguments))
    assert bool(exchange.match(message(), headers)) is expected


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
    assert exchange.unbind(binding) is binding
    assert list(exchange.match(message(), {"a": 1})) == []


names = st.sampled_from(["a", "b", "c", "x-d"])
values = st.sampled_from([None, 0, 1, "1", True, 1.0])
tables = st.dictionaries(names, values, max_size=4)
matches = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])


def fits(how: str, arguments: dict[str, Any], headers: dict[str, Any]) -> bool:
    """The rule, binding by binding."""
    compared = [
        name in headers
        and (
            wanted is None
            or (
                isinstance(headers[name], bool | str) == isinstance(wanted, bool | str)
                and headers[name] == wanted
                and isinstance(headers[name], bool) == isinstance(wanted, bool)
            )
        )
        for name, wanted in arguments.items()
        if how.endswith("-with-x") or not name.startswith("x-")
    ]
    return all(compared) if how.startswith("all") else any(compared)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(matches, tables), max_size=10), st.lists(tables, max_size=4), st.data())
def test_the_index_finds_what_asking_every_binding_finds(
    some: list[tuple[str, dict[str, Any]]], sent: list[dict[str, Any]], data: st.DataObject
) -> None:
    exchange = HeadersExchange("h")
    destinations = [queue(str(at)) for at in range(3)]
    bound: dict[Any, tuple[str, int, dict[str, Any]]] = {}
    for at, (how, arguments) in enumerate(some):
        binding = Binding(exchange, destinations[at % 3], "", {"x-match": how, **arguments})
        if exchange.bind(binding):
            bound[binding] = (how, at % 3, arguments)
    for identity in data.draw(st.lists(st.sampled_from(list(bound)), unique=True)) if bound else ():
        exchange.unbind(identity)
        del bound[identity]
    for headers in sent:
        wanted = {str(at) for how, at, asked in bound.values() if fits(how, asked, headers)}
        found = [each.name for each in exchange.match(message(), headers)]
        assert sorted(found) == sorted(wanted)
    for identity in list(bound):
        exchange.unbind(identity)
    assert len(exchange._index) == 0
    assert len(exchange._slots) == 0


def test_bindings_with_a_value_of_their_own_are_not_looked_at_for_others() -> None:
    exchange = HeadersExchange("h")
    common = {f"common-{at}": "same" for at in range(10)}
    for at in range(1_000):
        exchange.bind(Binding(exchange, queue(f"q{at}"), "", {**common, "own": at}))
    found = exchange.match(message(), {**common, "own": 77})
    assert [each.name for each in found] == ["q77"]
    assert exchange.examined <= 30


def test_each_binding_is_looked_at_once_at_most() -> None:
    exchange = HeadersExchange("h")
    for at in range(1_000):
        arguments = {f"h{place}": (at >> place) & 1 for place in range(10)}
        arguments["last"] = 1
        exchange.bind(Binding(exchange, queue(f"q{at}"), "", arguments))
    sent: dict[str, Any] = {f"h{place}": 1 for place in range(10)}
    assert list(exchange.match(message(), {**sent, "last": 2})) == []
    assert exchange.examined <= 1_000
