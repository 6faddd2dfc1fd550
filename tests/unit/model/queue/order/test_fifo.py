"""The ready order over a log that was there before: holes, deliveries of the past, damage."""

from __future__ import annotations

import pytest

from harebell.model.queue.order.fifo import FifoOrder
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import message


def log_of(count: int, settled: tuple[int, ...] = (), handed_out: int = 0) -> PreparedLog:
    log = PreparedLog()
    for number in range(count):
        log.append(message(b"%d" % number))
    for position in settled:
        log.settle(position)
    log.handed_out = handed_out
    return log


def all_of(order: FifoOrder) -> list[tuple[bytes, bool]]:
    taken = []
    while (found := order.take()) is not None:
        taken.append((found.body, bool(order.redelivered)))
    return taken


def test_unsettled_messages_are_ready_in_order() -> None:
    order = FifoOrder(log_of(6, settled=(0, 2, 3)), True)
    assert order.count == 3
    order.keep(message(b"new"))
    assert [body for body, _ in all_of(order)] == [b"1", b"4", b"5", b"new"]


def test_only_what_was_handed_out_before_counts_as_redelivered() -> None:
    order = FifoOrder(log_of(4, settled=(1,), handed_out=3), True)
    assert all_of(order) == [(b"0", True), (b"2", True), (b"3", False)]


def test_a_message_that_comes_back_goes_out_at_its_old_place() -> None:
    order = FifoOrder(log_of(4), True)
    order.take()
    first = order.position
    order.take()
    order.restore(order.position, True)
    order.restore(first, True)
    assert all_of(order) == [(b"0", True), (b"1", True), (b"2", False), (b"3", False)]


def test_a_damaged_message_is_passed_over_counted_and_left_where_it_is() -> None:
    log = log_of(4)
    log.damaged = {0, 2}
    order = FifoOrder(log, True)
    assert all_of(order) == [(b"1", False), (b"3", False)]
    assert (order.count, order.damaged) == (0, 2)
    assert log.live() == 4


def test_nothing_is_skipped_after_damage_at_the_end() -> None:
    log = log_of(2)
    log.damaged = {1}
    order = FifoOrder(log, True)
    assert all_of(order) == [(b"0", False)]
    order.keep(message(b"after"))
    assert all_of(order) == [(b"after", False)]


def test_a_log_that_counts_more_than_it_has_does_no_harm() -> None:
    class Boasting(PreparedLog):
        def live(self) -> int:
            return 5

    log = Boasting()
    log.append(message(b"only"))
    order = FifoOrder(log, True)
    assert all_of(order) == [(b"only", False)]
    assert (order.count, order.damaged) == (0, 0)
    order.keep(message(b"next"))
    assert all_of(order) == [(b"next", False)]


@pytest.mark.parametrize(("marks", "expected"), [(True, 2), (False, 0)])
def test_the_log_learns_what_was_handed_out_if_it_outlives_the_process(
    marks: bool, expected: int
) -> None:
    log = log_of(1)
    order = FifoOrder(log, marks)
    order.take()
    assert order.deliver_direct(message(b"at once")) == 1
    assert log.marked == expected


def test_purging_settles_what_is_ready_and_no_more() -> None:
    log = log_of(5, settled=(3,))
    order = FifoOrder(log, True)
    order.take()
    kept = order.position
    order.take()
    order.restore(order.position, True)
    assert order.purge() == 3
    assert (order.count, log.live(), log.first()) == (0, 1, kept)
    order.keep(message(b"after"))
    assert all_of(order) == [(b"after", False)]


def test_deleting_lets_everything_go() -> None:
    log = log_of(3)
    order = FifoOrder(log, True)
    order.take()
    order.restore(order.position, True)
    order.delete()
    assert (order.count, log.live()) == (0, 0)
    assert order.take() is None
