"""What queues promise to prepared transactions: room, and deliveries that stay out."""

from __future__ import annotations

import pytest

from harebell.model.queue.contract import REJECTED, Queue
from tests.unit.model.things import message, vhost

KINDS = [{}, {"x-max-priority": 3}, {"x-queue-type": "quorum"}, {"x-group-key": "k"}]


def _queue(arguments: dict[str, object]) -> Queue:
    return vhost().declare_queue("q", durable=True, arguments=arguments)


@pytest.mark.parametrize("arguments", KINDS)
def test_a_promised_message_is_taken_by_a_full_queue(arguments: dict[str, object]) -> None:
    queue = _queue({**arguments, "x-max-length": 2, "x-overflow": "reject-publish"})
    count = 0
    while not queue.publish(message(b"1")) & REJECTED:
        count += 1
    assert not queue.admit(message(b"2")) & REJECTED
    assert queue.ready_count() == count + 1
    assert queue.publish(message(b"3")) & REJECTED


def test_where_the_oldest_go_a_promised_message_pushes_one_out() -> None:
    queue = _queue({"x-max-length": 2})
    for body in (b"1", b"2"):
        queue.publish(message(body))
    queue.admit(message(b"3"))
    assert queue.ready_count() == 2


def test_octets_of_promised_messages_are_counted() -> None:
    queue = _queue({"x-max-length-bytes": 10, "x-overflow": "reject-publish"})
    queue.admit(message(b"0123456789"))
    assert queue.publish(message(b"1")) & REJECTED
    got = queue.get()
    assert got is not None
    assert not queue.publish(message(b"1")) & REJECTED


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "stream"}])
def test_a_queue_without_a_limit_just_takes_it(arguments: dict[str, object]) -> None:
    queue = _queue(arguments)
    queue.admit(message(b"1"))
    assert queue.counters.publish == 1


def test_positions_without_a_message_are_not_withheld() -> None:
    assert not _queue({}).withhold(7)
    assert not _queue({"x-queue-type": "stream"}).withhold(7)
