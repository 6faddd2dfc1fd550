"""A fanout exchange asks nothing."""

from __future__ import annotations

from harebell.model.binding import Binding
from harebell.model.exchange.fanout import FanoutExchange
from tests.unit.model.things import message, queue


def test_every_destination_gets_every_message() -> None:
    exchange = FanoutExchange("f")
    first, second = queue("first"), queue("second")
    binding = Binding(exchange, first, "ignored", {})
    exchange.bind(binding)
    exchange.bind(Binding(exchange, second, "", {}))
    assert list(exchange.match(message(key="whatever"), {})) == [first, second]
    exchange.unbind(binding)
    assert list(exchange.match(message(key="ignored"), {})) == [second]
