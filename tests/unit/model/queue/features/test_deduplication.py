"""Queues with `x-message-deduplication` hold each value of the header once."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.dedup_cache import HEADER
from harebell.model.queue.contract import ACCEPTED, PENDING, REJECTED
from harebell.model.queue.features import deduplication
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.unit.model.things import Taker

KINDS: list[dict[str, Any]] = [
    {},
    {"x-max-priority": 3},
    {"x-queue-type": "quorum"},
    {"x-group-key": "routing_key"},
]


def declared(broker: Broker, **arguments: Any) -> Any:
    vhost = broker.vhosts["/"]
    named = {"x-message-deduplication": True, **arguments}
    return vhost.declare_queue("q", arguments=named, durable=True)


def message(value: Any = None, body: bytes = b"m", priority: int | None = None) -> Message:
    headers = None if value is None else {HEADER: value}
    raw = encode_properties(BasicProperties(headers=headers, priority=priority))
    return Message("", "q", parse_properties(raw), body)


@pytest.fixture
def broker() -> Broker:
    gauge = Gauge()
    return Broker(MemoryStore(gauge), gauge, EDITOR.headers_of, EDITOR, Clock(1_700_000_000_000))


@pytest.mark.parametrize("arguments", KINDS)
def test_a_value_that_waits_already_is_not_taken_again(
    broker: Broker, arguments: dict[str, Any]
) -> None:
    queue = declared(broker, **arguments)
    for value in ("a", "b", "a", 1, 1, "1", None, None):
        queue.publish(message(value))
    assert queue.ready_count() == 6


@pytest.mark.parametrize("arguments", KINDS)
def test_a_value_that_is_out_is_still_there_and_one_that_is_settled_may_come_again(
    broker: Broker, arguments: dict[str, Any]
) -> None:
    queue = declared(broker, **arguments)
    queue.publish(message("a"))
    _, position, _ = queue.get()
    queue.publish(message("a"))
    assert queue.ready_count() == 0
    queue.requeue(position)
    assert queue.ready_count() == 1
    _, position, _ = queue.get()
    queue.settle(position)
    queue.publish(message("a"))
    assert queue.ready_count() == 1


def test_priorities_do_not_tell_repeats_apart(broker: Broker) -> None:
    queue = declared(broker, **{"x-max-priority": 3})
    queue.publish(message("a", priority=0))
    queue.publish(message("a", priority=3))
    assert queue.ready_count() == 1


def test_messages_delivered_at_once_without_acknowledgement_may_come_again(
    broker: Broker,
) -> None:
    queue = declared(broker)
    taker = Taker(queue, no_ack=True)
    queue.add_consumer(taker)
    queue.publish(message("a"))
    queue.publish(message("a"))
    assert len(taker.got) == 2
    queue.remove_consumer(taker)
    # At the position that the last one would have had.
    queue.publish(message())
    queue.publish(message("a"))
    queue.publish(message("a"))
    assert queue.ready_count() == 2


def test_after_a_purge_everything_may_come_again(broker: Broker) -> None:
    queue = declared(broker)
    queue.publish(message("a"))
    queue.purge()
    queue.publish(message("a"))
    assert queue.ready_count() == 1


def test_a_queue_without_the_argument_takes_everything(broker: Broker) -> None:
    queue = broker.vhosts["/"].declare_queue("q", arguments={"x-message-deduplication": False})
    queue.publish(message("a"))
    queue.publish(message("a"))
    assert queue.ready_count() == 2


def test_values_that_are_gone_are_forgotten(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplication, "_FORGET_FROM", 8)
    queue = declared(broker)
    remembered = deduplication.QueueDeduplication(EDITOR, queue.order, [])
    for number in range(100):
        assert not remembered.holds(message(number))
        remembered.keeps(message(number))
        queue.publish(message(number))
        _, position, _ = queue.get()
        queue.settle(position)
    assert len(remembered._values) <= 9
    for number in range(20):
        assert not remembered.holds(message(number))
        remembered.keeps(message(number))
        queue.publish(message(number))
    assert all(remembered.holds(message(number)) for number in range(20))


def test_a_repeat_of_a_row_that_may_still_be_rolled_back_is_refused(broker: Broker) -> None:
    queue = declared(broker)
    queue.begin_batch()
    queue.stage(message("a"))
    assert queue.publish(message("a")) & REJECTED
    queue.roll_back_batch()
    assert queue.ready_count() == 0
    assert not queue.publish(message("a")) & REJECTED
    assert queue.ready_count() == 1


def test_a_value_that_was_refused_is_taken_later_at_another_priority(broker: Broker) -> None:
    queue = declared(
        broker, **{"x-max-priority": 3, "x-max-length": 1, "x-overflow": "reject-publish"}
    )
    queue.publish(message(priority=1))
    assert queue.publish(message("a", priority=1)) & REJECTED
    _, position, _ = queue.get()
    queue.settle(position)
    assert not queue.publish(message("a", b"again", priority=2)) & REJECTED
    assert [queue.get()[0].body] == [b"again"]


def test_messages_delivered_without_acknowledgement_may_come_again_at_another_priority(
    broker: Broker,
) -> None:
    queue = declared(broker, **{"x-max-priority": 3})
    taker = Taker(queue, no_ack=True)
    queue.add_consumer(taker)
    queue.publish(message("a", priority=1))
    queue.remove_consumer(taker)
    queue.publish(message("a", b"again", priority=2))
    assert queue.get()[0].body == b"again"


@pytest.mark.parametrize("arguments", KINDS)
def test_no_order_holds_a_position_that_was_never_used(
    broker: Broker, arguments: dict[str, Any]
) -> None:
    queue = declared(broker, **arguments)
    position = queue.order.next_position(message("a"))
    assert not queue.order.holds(position)
    queue.publish(message("a"))
    assert queue.order.holds(position)


@pytest.mark.parametrize("arguments", KINDS)
def test_a_duplicate_is_confirmed_no_earlier_than_the_message_in_the_queue(
    broker: Broker, arguments: dict[str, Any]
) -> None:
    queue = declared(broker, **arguments)
    raw = encode_properties(BasicProperties(headers={HEADER: "a"}, delivery_mode=2))
    persistent = Message("", "q", parse_properties(raw), b"")
    assert queue.publish(persistent) == queue.publish(persistent) == PENDING
    transient = message("a")
    assert queue.publish(transient) == (PENDING if queue.quorum else ACCEPTED)


def test_a_dead_letter_at_least_once_waits_until_its_queue_would_not_drop_it(
    broker: Broker,
) -> None:
    vhost = broker.vhosts["/"]
    dead = declared(broker)
    arguments = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    source = vhost.declare_queue("source", durable=True, arguments=arguments)
    dead.publish(message("a", b"first"))
    source.publish(message("a", b"second"))
    source.reject(source.get()[1])
    source.tick()
    assert dead.ready_count() == 1
    dead.settle(dead.get()[1])
    source.tick()
    assert dead.get()[0].body == b"second"
