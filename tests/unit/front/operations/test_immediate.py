"""Immediate: a queue counts only when its message would be delivered at once."""

from __future__ import annotations

from harebell.front.operations.returns import takers
from tests.unit.model.things import Taker, message, queue

A = message(b"a")


def test_a_queue_without_a_consumer_takes_nothing_at_once() -> None:
    assert takers((queue(),), A) == ()


def test_a_queue_whose_consumer_is_ready_takes_a_message_at_once() -> None:
    where = queue()
    where.add_consumer(Taker(where))
    other = queue("other")
    assert takers((other, where), A) == (where,)


def test_a_consumer_without_credit_takes_nothing_at_once() -> None:
    where = queue()
    where.add_consumer(Taker(where, credit=0))
    assert takers((where,), A) == ()


def test_one_ready_consumer_is_enough() -> None:
    where = queue()
    where.add_consumer(Taker(where, "a", credit=0))
    where.add_consumer(Taker(where, "b"))
    assert takers((where,), A) == (where,)


def test_waiting_messages_go_first() -> None:
    where = queue()
    where.publish(message(b"x"))
    where.consumers.add(Taker(where))
    assert takers((where,), A) == ()


def test_a_consumer_that_wants_nothing_of_the_publisher_does_not_count() -> None:
    where = queue()
    where.add_consumer(Taker(where, excluded=7))
    own = message(b"own")
    own.origin = 7
    assert takers((where,), own) == ()
    assert takers((where,), A) == (where,)
