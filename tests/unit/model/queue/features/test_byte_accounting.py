"""How far a count has got."""

from __future__ import annotations

from typing import Any

from harebell.base.gauge import Gauge
from harebell.model.queue.features.byte_accounting import BEHIND, ByteAccount
from harebell.model.queue.order.priority import PriorityOrder
from harebell.store.log.memory import MemoryLog
from tests.unit.model.things import message

ONE = 1 << 8
"""One position further in the log of a level."""


def account(count: int) -> Any:
    """An account of a queue with priorities, with messages of the lowest one."""
    order = PriorityOrder(lambda _: MemoryLog(Gauge()), 1, False, restored=False, arguments={})
    for _ in range(count):
        order.keep(message(b"1"))
    return ByteAccount(order)


def test_messages_behind_the_cursor_or_later_are_counted() -> None:
    counting = account(10)
    counting.cursors[0] = 4
    assert [counting.has(at * ONE) for at in (0, 3, 4, 9, 10, 11)] == [
        *(True, True, False, False, True, True)
    ]
    # A log that was made since has only what came since.
    assert counting.has(1)


def test_everything_in_a_log_that_is_finished_is_counted() -> None:
    counting = account(10)
    counting.cursors[0] = BEHIND
    assert counting.has(5 * ONE)
