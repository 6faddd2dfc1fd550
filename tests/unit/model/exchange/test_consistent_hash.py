"""A consistent hash exchange spreads values by weight and moves few when its bindings change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.binding import Binding
from harebell.model.exchange.consistent_hash import ConsistentHashExchange
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.unit.model.things import message, queue, vhost


def _bound(**weights: int) -> ConsistentHashExchange:
    exchange = ConsistentHashExchange("c")
    for name, weight in weights.items():
        exchange.bind(Binding(exchange, queue(name), str(weight), {}))
    return exchange


def _routes(exchange: ConsistentHashExchange, count: int = 4000) -> list[str]:
    keys = (message(key=f"key-{number}") for number in range(count))
    return [found.name for key in keys for found in exchange.match(key, {})]


def test_every_key_has_one_destination_whatever_the_order_of_binding() -> None:
    routes = _routes(_bound(a=1, b=2, c=3))
    assert len(routes) == 4000
    assert routes == _routes(_bound(c=3, a=1, b=2))


def test_destinations_get_shares_by_their_weights() -> None:
    counts = Counter(_routes(_bound(a=1, b=1, c=2, d=2), 6000))
    for name, share in (("a", 1000), ("b", 1000), ("c", 2000), ("d", 2000)):
        assert abs(counts[name] - share) < 150


def test_a_huge_weight_takes_nearly_everything() -> None:
    assert Counter(_routes(_bound(a=1, b=10**30)))["b"] > 3990


def test_a_new_destination_only_takes_and_a_lost_one_only_gives() -> None:
    before = _routes(_bound(a=1, b=1, c=1))
    after = _routes(_bound(a=1, b=1, c=1, d=1))
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert 850 < len(moved) < 1150
    assert {new for _, new in moved} == {"d"}


def test_a_second_binding_to_a_destination_changes_nothing_until_the_first_is_gone() -> None:
    exchange = _bound(a=1, b=1)
    before = _routes(exchange)
    first = next(iter(exchange.bindings.values()))
    exchange.bind(Binding(exchange, first.destination, "100", {}))
    assert _routes(exchange) == before
    exchange.unbind(first)
    assert Counter(_routes(exchange))["a"] > 3900


def test_nothing_bound_is_nowhere() -> None:
    assert _routes(_bound(), 1) == []


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("0", "The binding key must be greater than 0"),
        ("-3", "The binding key must be greater than 0"),
        ("", "The binding key must be an integer: <<>>"),
        ("1.5", 'The binding key must be an integer: <<"1.5">>'),
        (" 1", 'The binding key must be an integer: <<" 1">>'),
        ("1_0", 'The binding key must be an integer: <<"1_0">>'),
    ],
)
def test_a_binding_key_that_is_no_weight_is_refused(key: str, text: str) -> None:
    exchange = _bound()
    with pytest.raises(Refusal) as refused:
        exchange.bind(Binding(exchange, queue(), key, {}))
    assert (refused.value.kind, refused.value.text) == (ErrorKind.PRECONDITION_FAILED, text)
    assert exchange.bindings == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"hash-header": "h", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-property": "app_id"}, "Unsupported property: app_id"),
        (
            {"hash-header": 7},
            "invalid type 'signedint' for arg 'hash-header' in exchange 'c' in vhost '/'",
        ),
        (
            {"hash-property": True},
            "invalid type 'bool' for arg 'hash-property' in exchange 'c' in vhost '/'",
        ),
    ],
)
def test_a_message_that_cannot_be_hashed_is_refused(arguments: dict[str, Any], text: str) -> None:
    where = vhost()
    with pytest.raises(Refusal) as refused:
        where.declare_exchange("c", "x-consistent-hash", arguments=arguments)
    assert (refused.value.kind, refused.value.text) == (ErrorKind.PRECONDITION_FAILED, text)
    assert "c" not in where.exchanges


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ({"hash-header": "h"}, lambda value: {"headers": {"h": value}}),
        ({"hash-property": "message_id"}, lambda value: {"message_id": value}),
        ({"hash-property": "correlation_id"}, lambda value: {"correlation_id": value}),
        ({"hash-property": "timestamp"}, lambda value: {"timestamp": 10**17 + int(value)}),
    ],
)
def test_a_header_or_a_property_is_hashed_instead_of_the_key(
    arguments: dict[str, str], made: Any
) -> None:
    where = VHost("/", MemoryStore(Gauge()), EDITOR)
    exchange = where.declare_exchange("c", "x-consistent-hash", arguments=arguments)
    for name in "abc":
        where.bind("c", where.declare_queue(name), "1")

    def routed(key: str, properties: Properties) -> str:
        (found,) = where.router.route(exchange, Message("c", key, properties, b""))
        return found.name

    found = {}
    for value in range(100):
        properties = parse_properties(encode_properties(BasicProperties(**made(str(value)))))
        found[value] = {routed(f"key-{key}", properties) for key in range(5)}
    assert all(len(names) == 1 for names in found.values())
    assert set().union(*found.values()) == set("abc")
    assert len({routed(f"key-{key}", Properties(b"\0\0")) for key in range(20)}) == 1
