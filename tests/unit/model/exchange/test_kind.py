"""What all exchange kinds have in common."""

from __future__ import annotations

import pytest

from harebell.model.binding import Binding
from harebell.model.exchange import KINDS
from harebell.model.exchange.kind import Exchange
from tests.unit.model.things import message, queue


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_binding_twice_is_binding_once(kind: type[Exchange]) -> None:
    exchange, destination = kind("e"), queue()
    assert exchange.bind(Binding(exchange, destination, "k", {}))
    assert not exchange.bind(Binding(exchange, destination, "k", {}))
    assert exchange.bind(Binding(exchange, destination, "k", {"extra": 1}))
    assert len(exchange.bindings) == 2


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_unbinding_what_is_not_bound_changes_nothing(kind: type[Exchange]) -> None:
    exchange = kind("e")
    assert exchange.unbind(Binding(exchange, queue(), "k", {}).identity) is None


def test_the_four_kinds_of_the_specification_are_there() -> None:
    assert {name: kind.KIND for name, kind in KINDS.items()} == {
        name: name for name in ("direct", "fanout", "topic", "headers")
    }


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
