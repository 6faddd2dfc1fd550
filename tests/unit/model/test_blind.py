"""Messages whose blind keys the queues are not shown."""

from __future__ import annotations

from harebell.base.message import Properties
from harebell.model.blind import Blind, revealed
from tests.unit.model.things import message

SEEN, WHOLE = Properties(b"seen"), Properties(b"whole", 2)


def test_queues_see_the_message_without_and_who_asks_gets_it_whole() -> None:
    blind = Blind("e", "k", SEEN, WHOLE, b"body")
    assert (blind.exchange, blind.routing_key, blind.raw, blind.body) == (
        "e",
        "k",
        b"seen",
        b"body",
    )
    found = revealed(blind)
    assert (found.exchange, found.routing_key, found.raw, found.body) == (
        "e",
        "k",
        b"whole",
        b"body",
    )
    assert found.delivery_mode == 2


def test_any_other_message_is_copied_as_it_is() -> None:
    given = message(b"body")
    found = revealed(given)
    assert found is not given
    assert (found.raw, found.body) == (given.raw, b"body")
