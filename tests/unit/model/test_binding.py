"""When two bindings are the same one."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.model.binding import Binding, frozen
from harebell.model.exchange.direct import DirectExchange
from tests.unit.model.things import queue


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": "x"}, {"a": b"x"}, False),
        ([1, 2], (1, 2), True),
        ([1, 2], [2, 1], False),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}, True),
        (None, "", False),
    ],
)
def test_values_are_the_same_when_value_and_type_are(one: Any, other: Any, same: bool) -> None:
    assert (frozen(one) == frozen(other)) is same
    if same:
        assert hash(frozen(one)) == hash(frozen(other))


def test_ends_key_and_arguments_make_a_binding() -> None:
    exchange, destination = DirectExchange("e"), queue("q")
    binding = Binding(exchange, destination, "k", {})
    assert binding == Binding(exchange, destination, "k", {})
    for other in (
        Binding(exchange, queue("q"), "k", {}),
        Binding(exchange, destination, "K", {}),
        Binding(exchange, destination, "k", {"a": 1}),
    ):
        assert binding != other
    assert repr(binding) == "Binding('e' -> 'q', 'k')"
