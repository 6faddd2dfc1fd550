"""The classic queue against a naive one: two plain lists and the rules in the shortest form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.model.queue.contract import ACCEPTED, PENDING
from tests.unit.model.things import Taker, message, queue


class ClassicAgainstLists(RuleBasedStateMachine):
    """Published bodies are numbers, so the right order is always the order of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.gauge = Gauge()
        self.queue = queue(gauge=self.gauge)
        self.ready: list[tuple[int, bool]] = []
        self.out: dict[int, tuple[int, Any]] = {}
        self.takers: list[Taker] = []
        self.seen: dict[str, int] = {}
        self.next = 0

    def _serve(self) -> None:
        """What must have been delivered: in order, to takers with credit."""
        fresh: list[tuple[int, int, bool, Taker]] = []
        for taker in self.takers:
            for body, position, redelivered in taker.got[self.seen[taker.tag] :]:
                fresh.append((int(body), position, redelivered, taker))
            self.seen[taker.tag] = len(taker.got)
        expected = sorted(self.ready)[: len(fresh)]
        assert sorted((number, again) for number, _, again, _ in fresh) == expected
        self.ready = sorted(self.ready)[len(fresh) :]
        for number, position, _, taker in fresh:
            if taker.no_ack:
                assert position == -1
            else:
                self.out[position] = (number, taker)
        if any(taker.credit for taker in self.takers):
            assert not self.ready, "a taker with credit and a ready message must meet"

    @rule(count=st.integers(1, 5))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.ready.append((self.next, False))
            assert self.queue.publish(message(b"%d" % self.next)) == 0
            self.next += 1
            self._serve()

    @rule(credit=st.integers(0, 4), no_ack=st.booleans(), priority=st.integers(0, 2))
    def consume(self, credit: int, no_ack: bool, priority: int) -> None:
        tag = f"c{len(self.seen)}"
        taker = Taker(self.queue, tag, credit, no_ack=no_ack, priority=priority)
        self.takers.append(taker)
        self.seen[tag] = 0
        self.queue.add_consumer(taker)
        self._serve()

    @rule(data=st.data(), credit=st.integers(1, 4))
    def give_credit(self, data: st.DataObject, credit: int) -> None:
        if self.takers:
            data.draw(st.sampled_from(self.takers)).credit += credit
            self.queue.drain()
            self._serve()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.takers:
            taker = self.takers.pop(data.draw(st.integers(0, len(self.takers) - 1)))
            self.queue.remove_consumer(taker)

    @rule()
    def get(self) -> None:
        found = self.queue.get()
        if not self.ready:
            assert found is None
            return
        number, again = min(self.ready)
        self.ready.remove((number, again))
        assert found is not None
        body, position, redelivered = found
        assert (int(body.body), bool(redelivered)) == (number, again)
        self.out[position] = (number, None)

    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        if self.out:
            position = data.draw(st.sampled_from(sorted(self.out)))
            del self.out[position]
            self.queue.settle(position)

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        if self.out:
            for position in data.draw(st.sets(st.sampled_from(sorted(self.out)), min_size=1)):
                number, _ = self.out.pop(position)
                self.ready.append((number, True))
                self.queue.requeue(position)
            self.queue.drain()
            self._serve()

    @rule()
    def purge(self) -> None:
        assert self.queue.purge() == len(self.ready)
        self.ready.clear()

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.ready_count() == len(self.ready)
        assert self.queue.unacked == len(self.out)
        alive = len(self.ready) + len(self.out)
        assert (self.gauge.used == 0) == (alive == 0)
        assert {each.tag for each in self.queue.consumers} == {each.tag for each in self.takers}


TestClassicAgainstLists = ClassicAgainstLists.TestCase
TestClassicAgainstLists.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_requeued_messages_return_to_their_places() -> None:
    waiting = queue()
    for number in range(6):
        waiting.publish(message(b"%d" % number))
    positions = [waiting.get()[1] for _ in range(4)]  # type: ignore[index]
    for position in (positions[2], positions[0]):
        waiting.requeue(position)
    order = []
    while (found := waiting.get()) is not None:
        order.append((found[0].body, bool(found[2])))
    assert order == [(b"0", True), (b"2", True), (b"4", False), (b"5", False)]


class Asked(Taker):
    """Counts how often consumers were asked whether they are ready."""

    asked = 0

    def ready(self) -> bool:
        Asked.asked += 1
        return super().ready()


def test_a_consumer_with_new_credit_is_served_without_a_look_at_the_others_each_time() -> None:
    shared = queue()
    takers = [Asked(shared, str(number), credit=0, prefetch=50) for number in range(100)]
    for taker in takers:
        shared.add_consumer(taker)
    for number in range(60):
        shared.publish(message(b"%d" % number))
    takers[7].credit, takers[3].credit = 50, 2
    Asked.asked = 0
    shared.serve(takers[7])
    assert takers[7].bodies == [b"%d" % number for number in range(50)]
    # Whoever else has credit gets what is left.
    assert takers[3].bodies == [b"50", b"51"]
    assert Asked.asked < 500
    takers[7].credit = 1
    shared.drain()
    assert takers[7].bodies[50:] == [b"52"]


@pytest.mark.parametrize("case", ["no prefetch", "lower priority", "removed"])
def test_consumers_keep_their_turns_where_a_prefetch_does_not_limit_one(case: str) -> None:
    shared = queue()
    one = Taker(shared, "one", credit=0, prefetch=0 if case == "no prefetch" else 9)
    other = Taker(shared, "other", credit=0, priority=1 if case == "lower priority" else 0)
    for taker in (one, other):
        shared.add_consumer(taker)
    for number in range(4):
        shared.publish(message(b"%d" % number))
    one.credit = other.credit = 2
    if case == "removed":
        shared.remove_consumer(one)
    shared.serve(one)
    assert (one.bodies, other.bodies) == {
        "no prefetch": ([b"0", b"2"], [b"1", b"3"]),
        "lower priority": ([b"2", b"3"], [b"0", b"1"]),
        "removed": ([], [b"0", b"1"]),
    }[case]


def test_a_consumer_without_credit_is_passed_over() -> None:
    shared = queue()
    blocked, free = Taker(shared, "blocked", credit=0), Taker(shared, "free")
    shared.add_consumer(blocked)
    shared.add_consumer(free)
    for _ in range(3):
        shared.publish(message(b"x"))
    assert (len(blocked.got), len(free.got)) == (0, 3)


def test_lower_priorities_get_what_higher_ones_cannot_take() -> None:
    shared = queue()
    low, high, also_high = (
        Taker(shared, "low", priority=-1),
        Taker(shared, "high", credit=2, priority=5),
        Taker(shared, "also high", credit=1, priority=5),
    )
    for taker in (low, high, also_high):
        shared.add_consumer(taker)
    for number in range(5):
        shared.publish(message(b"%d" % number))
    assert high.bodies == [b"0", b"2"]
    assert also_high.bodies == [b"1"]
    assert low.bodies == [b"3", b"4"]
    shared.remove_consumer(low)
    high.credit = 1
    shared.publish(message(b"5"))
    assert high.bodies[-1] == b"5"


def test_purging_leaves_what_is_out_and_frees_the_rest() -> None:
    gauge = Gauge()
    waiting = queue(gauge=gauge)
    for _ in range(4):
        waiting.publish(message(b"body"))
    out = waiting.get()
    back = waiting.get()
    assert out is not None
    assert back is not None
    waiting.requeue(back[1])
    assert waiting.purge() == 3
    assert gauge.used == out[0].footprint()
    waiting.settle(out[1])
    assert gauge.used == 0
    waiting.publish(message(b"after"))
    assert waiting.get()[0].body == b"after"  # type: ignore[index]


def test_deleting_tells_consumers_and_frees_everything() -> None:
    gauge = Gauge()
    doomed = queue(gauge=gauge)
    taker = Taker(doomed, credit=1)
    doomed.add_consumer(taker)
    for _ in range(3):
        doomed.publish(message(b"x"))
    assert doomed.delete() == 2
    assert taker.told_of_the_end
    assert (gauge.used, doomed.ready_count(), doomed.unacked) == (0, 0, 0)
    assert doomed.itself == ()
    # Late acks and rejections of what was out find the queue gone and do no harm.
    doomed.settle(0)
    doomed.requeue(0)
    assert (doomed.ready_count(), doomed.unacked) == (0, 0)


def test_messages_to_a_consumer_that_needs_no_ack_never_reach_the_log() -> None:
    gauge = Gauge()
    fast = queue(gauge=gauge)
    taker = Taker(fast, no_ack=True)
    fast.add_consumer(taker)
    fast.publish(message(b"x"))
    assert taker.got == [(b"x", -1, False)]
    assert gauge.used == 0
    assert fast.counters.publish == 1


def test_removing_somebody_elses_consumer_changes_nothing() -> None:
    one = queue()
    stays = Taker(one, "stays")
    one.add_consumer(stays)
    one.remove_consumer(Taker(one, "stranger"))
    assert list(one.consumers) == [stays]


def persistent(body: bytes) -> Message:
    return Message("", "", Properties(b"\0\0", delivery_mode=2), body)


def test_only_a_persistent_message_in_a_durable_queue_has_to_reach_the_disk():
    assert queue(durable=True).publish(persistent(b"a")) == PENDING
    assert queue(durable=True).publish(message(b"a")) == ACCEPTED
    assert queue().publish(persistent(b"a")) == ACCEPTED


def test_a_message_that_is_handed_over_for_good_waits_for_no_disk():
    of = queue(durable=True)
    of.add_consumer(Taker(of, no_ack=True))
    assert of.publish(persistent(b"a")) == ACCEPTED


def test_a_message_that_is_handed_over_to_be_acknowledged_has_to_reach_the_disk():
    of = queue(durable=True)
    of.add_consumer(Taker(of))
    assert of.publish(persistent(b"a")) == PENDING


def test_only_what_a_durable_queue_has_settled_can_be_waited_for():
    assert queue(durable=True).sync_soon() == PENDING
    assert queue().sync_soon() == ACCEPTED
