"""A single active consumer: one is served, the others wait until it goes or has to make way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.model.queue import factory
from harebell.model.queue.queue import MessageQueue
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, message, priority_queue, queue

SINGLE = {"x-single-active-consumer": True}
Make = Callable[..., MessageQueue]


def quorum_queue(**options: Any) -> MessageQueue:
    store = MemoryStore(Gauge())
    log = store.open_log("q", durable=True, keep_all=True)
    return factory.quorum_queue("q", "/", log, store.commit, durable=True, **options)


KINDS = pytest.mark.parametrize("make", [queue, priority_queue, quorum_queue])
NO_PREEMPTION = pytest.mark.parametrize("make", [queue, priority_queue])


class Acking(Taker):
    """A taker that counts what it holds, as the front's consumers do."""

    def deliver(self, message: Any, position: int, redelivered: bool) -> int:
        self.unacked += 1
        return super().deliver(message, position, redelivered)

    def ack_all(self) -> None:
        for _, position, _ in self.got[len(self.got) - self.unacked :]:
            self.released()
            self.queue.settle(position)
        self.queue.drain()


def publish(to: MessageQueue, *bodies: bytes) -> None:
    for body in bodies:
        to.publish(message(body))


@KINDS
def test_only_the_first_consumer_is_served(make: Make) -> None:
    single = make(arguments=SINGLE)
    first, second = Acking(single, "1"), Acking(single, "2")
    single.add_consumer(first)
    single.add_consumer(second)
    publish(single, b"a", b"b", b"c")
    assert (first.bodies, second.bodies) == ([b"a", b"b", b"c"], [])


@KINDS
def test_an_active_consumer_without_credit_has_no_substitute(make: Make) -> None:
    single = make(arguments=SINGLE)
    first, second = Acking(single, "1", credit=1), Acking(single, "2")
    single.add_consumer(first)
    single.add_consumer(second)
    publish(single, b"a", b"b")
    assert (first.bodies, second.bodies, single.ready_count()) == ([b"a"], [], 1)


@KINDS
def test_the_next_in_order_of_priority_follows_one_that_goes(make: Make) -> None:
    single = make(arguments=SINGLE)
    first = Acking(single, "1", priority=9)
    old, new, high = Acking(single, "2"), Acking(single, "3"), Acking(single, "4", priority=5)
    for consumer in (first, old, new, high):
        single.add_consumer(consumer)
    for leaving, body in ((first, b"a"), (high, b"b"), (old, b"c")):
        publish(single, body)
        assert leaving.bodies == [body]
        single.remove_consumer(leaving)
    publish(single, b"d")
    assert (new.bodies, old.bodies) == ([b"d"], [b"c"])


@KINDS
def test_one_that_waits_may_go_without_consequence(make: Make) -> None:
    single = make(arguments=SINGLE)
    first, second = Acking(single, "1"), Acking(single, "2")
    single.add_consumer(first)
    single.add_consumer(second)
    single.remove_consumer(second)
    publish(single, b"a")
    assert first.bodies == [b"a"]
    single.remove_consumer(first)
    publish(single, b"b")
    assert single.ready_count() == 1


@NO_PREEMPTION
def test_a_higher_newcomer_waits_in_a_classic_queue(make: Make) -> None:
    single = make(arguments=SINGLE)
    first, high = Acking(single, "1"), Acking(single, "2", priority=1)
    single.add_consumer(first)
    single.add_consumer(high)
    publish(single, b"a")
    assert (first.bodies, high.bodies) == ([b"a"], [])


def test_a_higher_newcomer_takes_over_in_a_quorum_queue_when_all_is_settled() -> None:
    single = quorum_queue(arguments=SINGLE)
    first, high = Acking(single, "1"), Acking(single, "2", priority=1)
    single.add_consumer(first)
    publish(single, b"a", b"b")
    single.add_consumer(high)
    publish(single, b"c")
    assert (first.bodies, high.bodies, single.ready_count()) == ([b"a", b"b"], [], 1)
    first.ack_all()
    assert (first.bodies, high.bodies) == ([b"a", b"b"], [b"c"])


def test_an_equal_newcomer_does_not_take_over_in_a_quorum_queue() -> None:
    single = quorum_queue(arguments=SINGLE)
    first, equal = Acking(single, "1", priority=1), Acking(single, "2", priority=1)
    single.add_consumer(first)
    single.add_consumer(equal)
    publish(single, b"a")
    first.ack_all()
    publish(single, b"b")
    assert (first.bodies, equal.bodies) == ([b"a", b"b"], [])


@NO_PREEMPTION
def test_the_flag_exclusive_is_refused(make: Make) -> None:
    single = make(arguments=SINGLE)
    with pytest.raises(Refusal) as refusal:
        single.check_consumer("t", {}, no_ack=False, exclusive=True, prefetch=0)
    assert refusal.value.kind == ErrorKind.ACCESS_REFUSED
    assert refusal.value.text == "queue 'q' in vhost '/' in exclusive use"
    assert not single.check_consumer("t", {}, no_ack=False, exclusive=False, prefetch=0)


def test_a_queue_that_says_no_serves_everybody() -> None:
    shared = queue(arguments={"x-single-active-consumer": False})
    first, second = Acking(shared, "1"), Acking(shared, "2")
    shared.add_consumer(first)
    shared.add_consumer(second)
    publish(shared, b"a", b"b")
    assert (first.bodies, second.bodies) == ([b"a"], [b"b"])
