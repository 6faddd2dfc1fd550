"""A ready order with an open batch: its rows are hidden, and settled alone when it is refused."""

from __future__ import annotations

from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.model.queue.order.fifo import FifoOrder
from harebell.store.log.memory import MemoryLog
from tests.unit.model.things import message


def _order(*bodies: bytes) -> FifoOrder:
    order = FifoOrder(MemoryLog(Gauge()), False)
    for body in bodies:
        order.keep(message(body))
    return order


def _stage(order: FifoOrder, body: bytes) -> None:
    row = message(body)
    order.staged_for(row).append(row)


def _taken(order: FifoOrder) -> list[bytes]:
    found: list[bytes] = []
    got: Message | None
    while (got := order.take()) is not None:
        found.append(got.body)
    return found


def test_the_end_stays_where_the_batch_begins_until_it_is_committed() -> None:
    order = _order(b"0")
    order.begin_batch()
    _stage(order, b"1")
    order.keep(message(b"2"))
    assert (order.end(), order.count, order.hidden) == (1, 1, 2)
    assert _taken(order) == [b"0"]
    assert order.commit_batch() == 2
    assert (order.end(), order.count, order.hidden) == (3, 2, 0)
    assert _taken(order) == [b"1", b"2"]


def test_only_positions_of_rows_are_rows() -> None:
    order = _order(b"0")
    assert not order.has_row(0)
    order.begin_batch()
    for body in (b"1", b"2"):
        _stage(order, body)
    order.keep(message(b"3"))
    _stage(order, b"4")
    assert [order.has_row(position) for position in range(6)] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    order.commit_batch()
    assert not order.has_row(1)


def test_a_roll_back_settles_rows_and_leaves_what_came_between_them() -> None:
    order = _order(b"0")
    order.begin_batch()
    _stage(order, b"1")
    order.keep(message(b"2"))
    _stage(order, b"3")
    assert order.roll_back_batch() == 1
    assert order.log.live() == 2
    assert _taken(order) == [b"0", b"2"]
