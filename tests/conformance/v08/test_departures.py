"""Rules of 0-8 that Harebell breaks on purpose, as every broker of its time did: what it does."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.v08.peer import Peer8


@pytest.mark.departs("0-8#068")
def test_an_auto_delete_queue_goes_at_once_with_its_last_consumer(older: Peer8, name: str) -> None:
    older.queue(name, auto_delete=True)
    older.expect_silence()
    older.consume(name, consumer_tag="t")
    older.ask(m.BasicCancel("t"))
    older.send(m.QueueDeclare(name, passive=True))
    older.expect_channel_close(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", (50, 10))


@pytest.mark.departs("0-8#085")
def test_messages_left_in_a_deleted_queue_are_gone(older: Peer8, name: str) -> None:
    older.queue(f"{name}-dead", exclusive=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    older.queue(name, exclusive=True, arguments=arguments)
    older.publish("", name, b"body")
    assert older.ask(m.QueueDelete(name)).message_count == 1
    assert older.count(f"{name}-dead") == 0


@pytest.mark.departs("0-8#092")
def test_a_queue_without_a_highest_priority_keeps_its_order(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    for priority in (0, 9, 4):
        older.publish("", name, b"%d" % priority, BasicProperties(priority=priority))
    assert [older.get(name).body for _ in range(3)] == [b"0", b"9", b"4"]
    older.queue(f"{name}-ranked", exclusive=True, arguments={"x-max-priority": 9})
    for priority in (0, 9, 4):
        older.publish("", f"{name}-ranked", b"%d" % priority, BasicProperties(priority=priority))
    assert [older.get(f"{name}-ranked").body for _ in range(3)] == [b"9", b"4", b"0"]


@pytest.mark.departs("0-8#109", "0-8#116")
def test_a_requeued_message_comes_back_to_the_only_consumer_as_often_as_it_likes(
    older: Peer8, name: str
) -> None:
    older.queue(name, exclusive=True)
    older.consume(name)
    older.publish("", name, b"body")
    for number in range(10):
        found = older.expect_delivery(b"body", redelivered=number > 0)
        older.send(m.BasicReject(found.method.delivery_tag, requeue=True))
    older.expect_delivery(b"body", redelivered=True)


@pytest.mark.departs("0-8#113")
def test_a_content_is_sent_to_its_end_whatever_the_client_says(older: Peer8, name: str) -> None:
    older.queue(name, exclusive=True)
    older.publish("", name, b"x" * 400_000)
    older.consume(name)
    older.send(m.BasicReject(1, requeue=False))
    found = older.expect_delivery(b"x" * 400_000)
    assert len(found.pieces) > 1
    assert all(size > 0 for size in found.pieces)
    assert older.count(name) == 0
