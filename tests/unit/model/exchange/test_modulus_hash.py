"""A modulus hash exchange sends equal keys to the same place."""

from __future__ import annotations

from collections import Counter

from harebell.model.binding import Binding
from harebell.model.exchange.modulus_hash import ModulusHashExchange
from tests.unit.model.things import message, queue


def _bound(names: str) -> ModulusHashExchange:
    exchange = ModulusHashExchange("m")
    for name in names:
        exchange.bind(Binding(exchange, queue(name), "", {}))
    return exchange


def _routes(exchange: ModulusHashExchange, count: int = 2000) -> list[str]:
    keys = (message(key=f"key-{number}") for number in range(count))
    return [found.name for key in keys for found in exchange.match(key, {})]


def test_every_key_has_one_destination_whatever_the_order_of_binding() -> None:
    exchange = _bound("abcd")
    assert exchange.by_key
    routes = _routes(exchange)
    assert len(routes) == 2000
    assert routes == _routes(_bound("dbca"))
    assert all(400 < count < 600 for count in Counter(routes).values())


def test_a_destination_bound_twice_counts_once() -> None:
    exchange = _bound("ab")
    before = _routes(exchange)
    exchange.bind(Binding(exchange, next(iter(exchange.bindings.values())).destination, "2", {}))
    assert _routes(exchange) == before


def test_unbinding_leaves_the_others_all_keys() -> None:
    exchange = _bound("ab")
    first, second = exchange.bindings.values()
    exchange.unbind(first)
    assert set(_routes(exchange)) == {"b"}
    exchange.unbind(second)
    assert _routes(exchange) == []
