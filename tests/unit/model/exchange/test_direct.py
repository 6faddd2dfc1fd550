"""A direct exchange goes by equality of keys."""

from __future__ import annotations

from harebell.model.binding import Binding
from harebell.model.exchange.direct import DirectExchange
from tests.unit.model.things import message, queue


def test_only_bindings_with_exactly_the_key_match() -> None:
    exchange = DirectExchange("d")
    first, second, other = queue("first"), queue("second"), queue("other")
    for destination, key in ((first, "k"), (second, "k"), (other, "K")):
        exchange.bind(Binding(exchange, destination, key, {}))
    assert list(exchange.match(message(key="k"), {})) == [first, second]
    assert list(exchange.match(message(key="K"), {})) == [other]
    assert list(exchange.match(message(key="k.*"), {})) == []


def test_an_unbound_key_matches_no_more_and_others_still_do() -> None:
    exchange = DirectExchange("d")
    first, second = queue("first"), queue("second")
    bindings = [Binding(exchange, each, "k", {}) for each in (first, second)]
    for binding in bindings:
        exchange.bind(binding)
    exchange.unbind(bindings[0])
    assert list(exchange.match(message(key="k"), {})) == [second]
    exchange.unbind(bindings[1])
    assert list(exchange.match(message(key="k"), {})) == []
    assert exchange.keys == {}, "keys without bindings are forgotten"
