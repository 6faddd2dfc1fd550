"""Numbers of destinations are used again, and lead to nobody in between."""

from __future__ import annotations

from harebell.model.exchange.slots import Slots
from tests.unit.model.things import queue


def test_a_destination_keeps_its_number_until_it_is_used_no_more() -> None:
    slots = Slots()
    one, two = queue("one"), queue("two")
    assert [slots.use(one), slots.use(two), slots.use(one)] == [0, 1, 0]
    assert slots.leave(one) == 0
    assert slots.destinations_of([1, 0]) == [two, one]
    assert slots.leave(one) == 0
    assert slots.destinations_of([1, 0]) == [two]
    assert len(slots) == 1


def test_a_free_number_is_given_away_again() -> None:
    slots = Slots()
    one, two = queue("one"), queue("two")
    assert slots.use(one) == slots.leave(one) == 0
    assert slots.use(two) == 0
    assert slots.destinations_of([0]) == [two]
