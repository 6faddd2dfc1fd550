"""What a queue knows of a consumer."""

from __future__ import annotations

import pytest

from harebell.model.consumer import Consumer
from tests.unit.model.things import message, queue


def test_a_consumer_keeps_what_it_was_started_with() -> None:
    of = queue()
    consumer = Consumer(
        of, "tag", no_ack=True, exclusive=True, priority=3, prefetch=7, arguments={"x-priority": 3}
    )
    assert (consumer.queue, consumer.tag) == (of, "tag")
    assert (consumer.no_ack, consumer.exclusive) == (True, True)
    assert (consumer.priority, consumer.prefetch) == (3, 7)
    assert consumer.arguments == {"x-priority": 3}
    assert consumer.unacked == 0


def test_a_front_has_to_fill_every_part() -> None:
    consumer = Consumer(queue(), "tag")
    with pytest.raises(NotImplementedError):
        consumer.ready()
    with pytest.raises(NotImplementedError):
        consumer.deliver(message(), 0, False)
    with pytest.raises(NotImplementedError):
        consumer.queue_deleted()
