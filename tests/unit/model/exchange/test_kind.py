"""What all exchange kinds have in common."""

from __future__ import annotations

import pytest

from harebell.model.binding import Binding
from harebell.model.exchange import KINDS
from harebell.model.exchange.kind import Exchange
from tests.unit.model.things import message, queue

KEYS = {"x-consistent-hash": "1", "x-local-random": ""}
"""Binding keys for the kinds that do not take any."""
ARGUMENTS = {"x-delayed-message": {"x-delayed-type": "topic"}}
"""Arguments of the kinds that are none without."""


def made(kind: type[Exchange]) -> Exchange:
    return kind("e", arguments=ARGUMENTS.get(kind.KIND))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_binding_twice_is_binding_once(kind: type[Exchange]) -> None:
    exchange, destination, key = made(kind), queue(), KEYS.get(kind.KIND, "k")
    assert exchange.bind(Binding(exchange, destination, key, {}))
    assert not exchange.bind(Binding(exchange, destination, key, {}))
    assert exchange.bind(Binding(exchange, destination, key, {"extra": 1}))
    assert len(exchange.bindings) == 2


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_unbinding_what_is_not_bound_changes_nothing(kind: type[Exchange]) -> None:
    exchange = made(kind)
    assert exchange.unbind(Binding(exchange, queue(), "k", {})) is None


def test_kinds_are_found_by_their_names_and_own_ones_begin_with_x() -> None:
    assert {name: kind.KIND for name, kind in KINDS.items()} == {name: name for name in KINDS}
    standard = {name for name in KINDS if not name.startswith("x-")}
    assert standard == {"direct", "fanout", "topic", "headers"}


def test_only_the_nameless_exchange_is_the_default_one() -> None:
    assert Exchange("").default
    assert not Exchange("x").default


def test_an_alternate_that_is_no_name_is_none() -> None:
    assert Exchange("x", arguments={"alternate-exchange": "ae"}).alternate == "ae"
    assert Exchange("x", arguments={"alternate-exchange": 5}).alternate is None


def test_a_kind_has_to_say_how_it_matches() -> None:
    exchange = Exchange("x")
    binding = Binding(exchange, queue(), "", {})
    assert not exchange.needs_headers
    with pytest.raises(NotImplementedError):
        exchange.match(message(), {})
    with pytest.raises(NotImplementedError):
        exchange.bind(binding)
    with pytest.raises(NotImplementedError):
        exchange.removed(binding)
