"""Whose turn it is among the consumers of a queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.model.queue.competing import CompetingQueue
from harebell.model.queue.turns import TakingTurns
from tests.unit.model.things import Taker, message, priority_queue, queue

Make = Callable[..., CompetingQueue]
KINDS = pytest.mark.parametrize("make", [queue, priority_queue])


@KINDS
def test_consumers_of_one_priority_take_turns(make: Make) -> None:
    shared = make()
    takers = [Taker(shared, str(number)) for number in range(3)]
    for taker in takers:
        shared.add_consumer(taker)
    for number in range(7):
        shared.publish(message(b"%d" % number))
    assert [taker.bodies for taker in takers] == [[b"0", b"3", b"6"], [b"1", b"4"], [b"2", b"5"]]


@KINDS
def test_higher_consumers_are_served_as_long_as_they_take(make: Make) -> None:
    shared = make()
    low, high = Taker(shared, "low"), Taker(shared, "high", credit=2, priority=1)
    shared.add_consumer(low)
    shared.add_consumer(high)
    for number in range(4):
        shared.publish(message(b"%d" % number))
    assert (high.bodies, low.bodies) == ([b"0", b"1"], [b"2", b"3"])


@KINDS
def test_who_goes_changes_nothing_for_those_whose_turn_it_is(make: Make) -> None:
    asked = make()
    assert isinstance(asked, TakingTurns)
    takers = [Taker(asked, tag) for tag in "abc"]
    for taker in takers:
        asked.add_consumer(taker)
    asked.publish(message(b"1"))
    asked.remove_consumer(takers[0])
    for body in (b"2", b"3", b"4"):
        asked.publish(message(body))
    assert [taker.bodies for taker in takers] == [[b"1"], [b"2", b"4"], [b"3"]]
