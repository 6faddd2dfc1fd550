"""What every kind of queue with positions in a log can say about them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.model.things import message, priority_queue, queue

MAKERS = {"classic": queue, "priority": priority_queue}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=list(MAKERS))
def test_counts_of_messages_are_kept_by_position_until_they_are_settled(maker: Any) -> None:
    kept = maker()
    for body in (b"1", b"2"):
        kept.publish(message(body))
    first, second = kept.get()[1], kept.get()[1]
    assert (kept.order.delivery_count(first), kept.order.counted_positions()) == (0, [])
    kept.order.set_delivery_count(second, 7)
    assert (kept.order.delivery_count(first), kept.order.delivery_count(second)) == (0, 7)
    assert kept.order.counted_positions() == [second]
    kept.settle(second)
    assert kept.order.counted_positions() == []


@pytest.mark.parametrize("maker", MAKERS.values(), ids=list(MAKERS))
def test_only_messages_from_before_a_restart_are_held(maker: Any) -> None:
    kept = maker()
    kept.publish(message(b"1"))
    found = kept.get()
    kept.requeue(found[1])
    assert not kept.order.hold(found[1])
    assert kept.ready_count() == 1
