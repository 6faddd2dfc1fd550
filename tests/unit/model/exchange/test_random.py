"""Random exchanges: one of what is bound, evenly."""

from __future__ import annotations

from collections import Counter

import pytest

from harebell.base.chooser import Chooser
from harebell.base.clock import Clock
from harebell.model.binding import Binding
from harebell.model.editor import Editor
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.local_random import LocalRandomExchange
from harebell.model.exchange.random import RandomExchange
from harebell.model.queue_context import QueueContext
from harebell.model.router import Router
from tests.unit.model.things import headers_of, message, queue, vhost

KINDS = [RandomExchange, LocalRandomExchange]


def _entered(kind: type[Exchange], seed: bytes = b"seed") -> Exchange:
    exchange = kind("r")
    exchange.enter(QueueContext(Router(headers_of), Editor(headers_of), Clock(), [], Chooser(seed)))
    return exchange


def _picks(exchange: Exchange, count: int) -> list[str]:
    return [found.name for _ in range(count) for found in exchange.match(message(key="k"), {})]


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_goes_to_one_of_them_evenly(kind: type[Exchange]) -> None:
    exchange = _entered(kind)
    for name in "abcd":
        exchange.bind(Binding(exchange, queue(name), "", {}))
    counts = Counter(_picks(exchange, 4000))
    assert sum(counts.values()) == 4000
    assert set(counts) == set("abcd")
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_bound_is_nowhere_and_one_is_always_it(kind: type[Exchange]) -> None:
    exchange = _entered(kind)
    assert _picks(exchange, 1) == []
    binding = Binding(exchange, queue("a"), "", {})
    exchange.bind(binding)
    assert _picks(exchange, 3) == ["a"] * 3
    exchange.unbind(binding)
    assert _picks(exchange, 1) == []


def test_two_keys_are_two_chances() -> None:
    exchange = _entered(RandomExchange)
    twice = queue("twice")
    for key in ("a", "b"):
        exchange.bind(Binding(exchange, twice, key, {}))
    exchange.bind(Binding(exchange, queue("once"), "a", {}))
    counts = Counter(_picks(exchange, 3000))
    assert 1850 < counts["twice"] < 2150


def test_the_same_seed_makes_the_same_choices() -> None:
    rows = []
    for seed in (b"one", b"one", b"two"):
        exchange = _entered(RandomExchange, seed)
        for name in "abcd":
            exchange.bind(Binding(exchange, queue(name), "", {}))
        rows.append(_picks(exchange, 50))
    assert rows[0] == rows[1] != rows[2]


def test_a_route_is_chosen_anew_for_every_message() -> None:
    where = vhost()
    exchange = where.declare_exchange("r", "x-random")
    for name in ("a", "b"):
        where.bind("r", where.declare_queue(name), "k")
    found = {where.router.route(exchange, message(key="k"))[0].name for _ in range(50)}
    assert found == {"a", "b"}
