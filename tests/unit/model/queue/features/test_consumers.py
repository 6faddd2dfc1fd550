"""The consumers of a queue: who is there, and whose turn it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.work import Work
from harebell.model.queue.features.consumers import Consumers, dismiss
from harebell.model.queue.queue import MessageQueue
from tests.unit.model.things import Taker, message, priority_queue, queue

Make = Callable[..., MessageQueue]
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
def test_a_consumer_that_goes_changes_no_turn_of_the_others(make: Make) -> None:
    asked = make()
    takers = [Taker(asked, tag) for tag in "abc"]
    for taker in takers:
        asked.add_consumer(taker)
    asked.publish(message(b"1"))
    asked.remove_consumer(takers[0])
    for body in (b"2", b"3", b"4"):
        asked.publish(message(body))
    assert [taker.bodies for taker in takers] == [[b"1"], [b"2", b"4"], [b"3"]]


def _taker(tag: str, **options: Any) -> Taker:
    return Taker(None, tag, **options)


def _tags(consumers: Consumers) -> str:
    return "".join(each.tag for each in consumers)


def test_consumers_stand_by_priority_and_then_by_turn() -> None:
    consumers = Consumers()
    for tag, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5)):
        consumers.add(_taker(tag, priority=priority))
    assert _tags(consumers) == "beacd"
    picked = consumers.pick()
    assert picked is not None
    assert picked.tag == "b"
    assert _tags(consumers) == "ebacd"
    assert len(consumers) == consumers.count == 5


def test_a_consumer_that_is_not_ready_keeps_its_place_and_the_next_is_picked() -> None:
    consumers = Consumers()
    a, b, c = (_taker(tag) for tag in "abc")
    for each in (a, b, c):
        consumers.add(each)
    a.credit = 0
    assert [consumers.pick(), consumers.pick(), consumers.pick()] == [b, c, b]
    a.credit = 1
    assert [consumers.pick(), consumers.pick()] == [c, a]


def test_a_consumer_goes_once() -> None:
    consumers = Consumers()
    one, other = _taker("a"), _taker("b")
    consumers.add(one)
    assert not consumers.remove(other)
    assert consumers.remove(one)
    assert not consumers.remove(one)
    assert (consumers.count, consumers.first(), consumers.pick()) == (0, None, None)


def test_many_come_and_go_without_a_look_at_the_others() -> None:
    class Counting(Taker):
        looks = 0

        def ready(self) -> bool:
            Counting.looks += 1
            return super().ready()

    consumers = Consumers()
    there = [Counting(None, str(number)) for number in range(2_000)]
    for each in there:
        consumers.add(each)
    for each in there[::2]:
        assert consumers.remove(each)
    assert consumers.pick() is there[1]
    assert Counting.looks == 1


def test_the_single_active_consumer_is_followed_by_the_next() -> None:
    consumers = Consumers(single=True)
    a, b, c = _taker("a"), _taker("b"), _taker("c", priority=1)
    for each in (a, b, c):
        consumers.add(each)
    assert consumers.pick() is a
    consumers.remove(a)
    assert consumers.pick() is c
    consumers.remove(c)
    assert consumers.pick() is b


def test_the_least_busy_of_the_highest_rank_is_picked_until_it_was_served() -> None:
    consumers = Consumers()
    a, b, low = _taker("a"), _taker("b"), _taker("c", priority=-1)
    for each in (a, b, low):
        consumers.add(each)
    a.unacked = 2
    assert [consumers.pick_least_busy(), consumers.pick_least_busy()] == [b, b]
    b.unacked = 2
    assert consumers.pick_least_busy() is a
    consumers.served(a)
    assert consumers.pick_least_busy() is b


def test_consumers_of_a_deleted_queue_are_told_in_slices() -> None:
    left = [_taker(str(number)) for number in range(1_000)]
    work = Work()
    waiting: list[Any] = []
    work.later = waiting.append
    work.begin(500)
    dismiss(list(left), work)
    told = sum(each.told_of_the_end for each in left)
    assert 0 < told < 500
    assert len(waiting) == 1
    while True:
        work.begin(500)
        if waiting[0]():
            break
    assert all(each.told_of_the_end for each in left)
