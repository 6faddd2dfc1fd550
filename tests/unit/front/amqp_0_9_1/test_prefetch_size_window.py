"""A window of octets: what fits goes ahead, what does not waits, what never fits goes alone."""

from __future__ import annotations

import pytest

from harebell.base.message import Message, Properties
from harebell.front.amqp_0_9_1.prefetch_size_window import FITS, TOO_LONG, UNKNOWN, Window
from harebell.model.queue.contract import Queue
from tests.unit.model.things import Taker, queue


def put(where: Queue, octets: int) -> None:
    """A message of so many octets waits in a queue."""
    where.publish(Message("", "q", Properties(b"\0\0"), bytes(octets)))


def test_without_a_size_everything_fits() -> None:
    window = Window()
    window.used = 1_000_000
    assert window.admits(queue()) == FITS


@pytest.mark.parametrize(("octets", "answer"), [(10, FITS), (11, TOO_LONG)])
def test_the_next_message_has_to_fit_the_room_that_is_left(octets: int, answer: int) -> None:
    window = Window(50)
    window.used = 40
    where = queue()
    put(where, octets)
    assert window.admits(where) == answer


def test_a_message_longer_than_the_window_goes_out_alone() -> None:
    window = Window(50)
    where = queue()
    put(where, 60)
    assert window.admits(where) == FITS
    window.used = 1
    assert window.admits(where) == TOO_LONG


def test_a_full_window_takes_nothing_not_even_what_is_empty() -> None:
    window = Window(50)
    window.used = 50
    where = queue()
    put(where, 0)
    assert window.admits(where) == TOO_LONG


def test_a_message_that_is_not_there_yet_is_not_known() -> None:
    window = Window(50)
    window.used = 40
    assert window.admits(queue()) == UNKNOWN


@pytest.mark.parametrize("end", ["settle", "reject", "requeue", "requeue_returned", "time_out"])
def test_octets_count_until_the_delivery_has_its_end(end: str) -> None:
    window = Window(50)
    where = queue()
    put(where, 20)
    found = where.get()
    assert found is not None
    message, position, _ = found
    taker = Taker(where)
    taker.unacked = 1
    entry = window.entry(where, taker, position, 7, message)
    assert (window.used, entry.tag, entry.position) == (20, 7, position)
    assert where.delivered(position) is not None
    getattr(entry, end)()
    assert (window.used, taker.unacked, where.unacked) == (0, 0, 0)


def test_the_head_of_a_queue_stays_there() -> None:
    where = queue()
    assert where.head() is None
    put(where, 3)
    put(where, 4)
    for _ in range(2):
        head = where.head()
        assert head is not None
        assert len(head.body) == 3
    assert where.ready_count() == 2
