"""The priority queue against a naive one: a list that is sorted by priority, then age."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.base.ports import Log
from harebell.model.queue.contract import ACCEPTED, PENDING
from harebell.model.queue.factory import priority_queue as make_priority_queue
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker, priority_queue

MAX = 5


def urgent(body: bytes, priority: int, delivery_mode: int = 0) -> Message:
    return Message("", "", Properties(b"\0\0", delivery_mode, priority), body)


class PriorityAgainstList(RuleBasedStateMachine):
    """Bodies are numbers in the order of publishing; what is ready is (-level, number)."""

    def __init__(self) -> None:
        super().__init__()
        self.gauge = Gauge()
        self.queue = priority_queue(limit=MAX, gauge=self.gauge)
        self.ready: list[tuple[int, int, bool]] = []
        self.out: dict[int, tuple[int, int]] = {}
        self.next = 0

    @rule(priority=st.integers(-1, 255), count=st.integers(1, 4))
    def publish(self, priority: int, count: int) -> None:
        for _ in range(count):
            self.queue.publish(urgent(b"%d" % self.next, priority))
            level = 0 if priority < 0 else min(priority, MAX)
            self.ready.append((-level, self.next, False))
            self.next += 1

    @rule(credit=st.integers(1, 4))
    def consume(self, credit: int) -> None:
        taker = Taker(self.queue, "once", credit)
        self.queue.add_consumer(taker)
        self.queue.remove_consumer(taker)
        for body, position, again in taker.got:
            self._took(int(body), position, again)

    @rule()
    def get(self) -> None:
        found = self.queue.get()
        if found is None:
            assert not self.ready
        else:
            self._took(int(found[0].body), found[1], bool(found[2]))

    def _took(self, number: int, position: int, again: bool) -> None:
        expected = min(self.ready)
        assert (number, again) == expected[1:]
        self.ready.remove(expected)
        self.out[position] = expected[:2]

    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        if self.out:
            position = data.draw(st.sampled_from(sorted(self.out)))
            del self.out[position]
            self.queue.settle(position)

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        if self.out:
            position = data.draw(st.sampled_from(sorted(self.out)))
            self.ready.append((*self.out.pop(position), True))
            self.queue.requeue(position)

    @rule()
    def purge(self) -> None:
        assert self.queue.purge() == len(self.ready)
        self.ready.clear()

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.ready_count() == len(self.ready)
        assert self.queue.unacked == len(self.out)
        assert (self.gauge.used == 0) == (not self.ready and not self.out)


TestPriorityAgainstList = PriorityAgainstList.TestCase
TestPriorityAgainstList.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_higher_message_overtakes_those_that_wait() -> None:
    queue = priority_queue(limit=9)
    for body, priority in ((b"none", -1), (b"five", 5), (b"nine", 9), (b"more", 200)):
        queue.publish(urgent(body, priority))
    taker = Taker(queue)
    queue.add_consumer(taker)
    assert taker.bodies == [b"nine", b"more", b"five", b"none"]


def test_levels_have_logs_only_when_they_have_messages() -> None:
    opened: list[int] = []

    def open_level(level: int) -> Log:
        opened.append(level)
        return PreparedLog()

    queue = make_priority_queue("q", "/", open_level, 255)
    assert opened == []
    queue.publish(urgent(b"", 7))
    queue.publish(urgent(b"", 7))
    assert opened == [7]


def test_messages_that_were_there_before_are_ready_by_their_level() -> None:
    logs = [PreparedLog() for _ in range(4)]
    for level, log in enumerate(logs):
        log.append(urgent(b"%d" % level, level))
    logs[2].settle(0)
    logs[3].handed_out = 1
    queue = make_priority_queue("q", "/", lambda level: logs[level], 3, restored=True, durable=True)
    assert queue.ready_count() == 3
    taken = []
    while (found := queue.get()) is not None:
        taken.append((found[0].body, bool(found[2])))
        queue.settle(found[1])
    assert taken == [(b"3", True), (b"1", False), (b"0", False)]
    assert all(log.live() == 0 for log in logs)


def test_a_damaged_message_lets_the_next_level_have_its_turn() -> None:
    logs = [PreparedLog(), PreparedLog()]
    queue = make_priority_queue("q", "/", lambda level: logs[level], 1)
    queue.publish(urgent(b"low", 0))
    queue.publish(urgent(b"high", 1))
    logs[1].damaged = {0}
    found = queue.get()
    assert found is not None
    assert found[0].body == b"low"
    assert (queue.ready_count(), queue.get()) == (0, None)


def test_all_levels_take_part_in_a_commit() -> None:
    logs = [PreparedLog(), PreparedLog()]
    queue = make_priority_queue("q", "/", lambda level: logs[level], 1, durable=True)
    assert queue.publish(urgent(b"", 0, delivery_mode=2)) == PENDING
    assert queue.publish(urgent(b"", 1)) == ACCEPTED
    assert queue.sync_soon() == PENDING
    assert [log.synced for log in logs] == [1, 1]
    assert priority_queue().sync_soon() == ACCEPTED
