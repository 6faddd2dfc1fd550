"""Unacknowledged deliveries, one by one and in runs, against a plain dict of them."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.counters import Counters
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.common.unacked import Unacked, UnackedDeliveries, UnackedRun
from harebell.model.queue.contract import Queue
from harebell.model.queue.factory import quorum_queue
from harebell.model.queue.stream import StreamQueue
from harebell.model.queue.tracking import Tracking
from harebell.model.settings.queue_settings import settings_of
from harebell.store.log.memory import MemoryDefinitions, MemoryStore
from tests.unit.model.things import Taker, message, priority_queue, queue

CONSUMERS = 2
"""Consumers of each queue."""
PRIORITIES = [Properties(b"", priority=number) for number in range(3)]


def queues() -> list[Queue]:
    """A queue of each type: their positions, and what settling does, are different."""
    store = MemoryStore(Gauge())
    tracking = Tracking("/", "s", MemoryDefinitions(), store.commit, {})
    log = store.open_log("", durable=True)
    stream = StreamQueue("s", "/", log, store.commit, tracking, 10**9, durable=True)
    log = store.open_log("", durable=True)
    quorum = quorum_queue("u", "/", log, store.commit, durable=True)
    quorum.configure(settings_of({}, {}))
    return [queue("q"), priority_queue("p", 3), quorum, stream]


@pytest.mark.parametrize("end", ["settle", "requeue"])
@pytest.mark.parametrize("consumed", [True, False], ids=["consumed", "got"])
def test_credit_and_message_go_where_they_belong(end: str, consumed: bool) -> None:
    where = queue()
    where.publish(message(b"x"))
    found = where.get()
    assert found is not None
    taker = Taker(where)
    taker.unacked = 1
    entry = Unacked(where, taker if consumed else None, found[1], 7)
    assert (entry.tag, entry.queue) == (7, where)
    getattr(entry, end)()
    assert taker.unacked == (0 if consumed else 1)
    assert where.unacked == 0
    assert where.ready_count() == (1 if end == "requeue" else 0)


class Side:
    """The same queues and consumers for the runs, and again for the dict."""

    def __init__(self) -> None:
        self.queues = queues()
        self.takers: list[Taker] = []
        for where in self.queues:
            for number in range(CONSUMERS):
                taker = Taker(where, f"c{number}", credit=0)
                taker.details = Counters()
                where.add_consumer(taker)
                self.takers.append(taker)

    def look(self) -> list[tuple[object, ...]]:
        """Everything that settling, requeueing and rejecting changes."""
        rows: list[tuple[object, ...]] = [
            (each.unacked, each.ready_count(), each.counters.ack) for each in self.queues
        ]
        return rows + [(each.unacked, each.details.ack, each.got) for each in self.takers]


class RunsAgainstDict(RuleBasedStateMachine):
    """Both get the same deliveries, and end the same ones in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.mine, self.plain = Side(), Side()
        self.runs = UnackedDeliveries()
        self.entries: dict[int, Unacked] = {}
        self.next = 1

    @rule(of=st.integers(0, 4 * CONSUMERS - 1), count=st.integers(1, 150), no_ack=st.booleans())
    def deliver(self, of: int, count: int, no_ack: bool) -> None:
        got = []
        for side in (self.mine, self.plain):
            taker = side.takers[of]
            where = taker.queue
            for number in range(count):
                where.publish(Message("", "", PRIORITIES[number // 20 % 3], b"x"))
            before = len(taker.got)
            taker.credit = count
            where.drain()
            taker.credit = 0
            got.append(taker.got[before:])
            taker.unacked += len(taker.got) - before
        assert got[0] == got[1]
        # Tags without an entry, as of deliveries that need no acknowledgement.
        self.next += 3 * no_ack
        for _, position, _ in got[0]:
            self.runs.deliver(self.mine.takers[of], position, self.next)
            taker = self.plain.takers[of]
            self.entries[self.next] = Unacked(taker.queue, taker, position, self.next)
            self.next += 1

    @rule(data=st.data(), end=st.sampled_from(["settle", "reject", "requeue", "requeue_returned"]))
    def end_one(self, data: st.DataObject, end: str) -> None:
        tag = data.draw(st.integers(0, self.next))
        mine, plain = self.runs.take(tag), self.entries.pop(tag, None)
        assert (mine is None) == (plain is None)
        if mine is not None and plain is not None:
            assert (mine.tag, mine.position) == (tag, plain.position)
            getattr(mine, end)()
            getattr(plain, end)()

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        """As a rollback does."""
        tag = data.draw(st.integers(0, self.next))
        entry = self.runs.take(tag)
        if entry is not None:
            assert self.runs.member(tag) is None
            self.runs.put(tag, entry)

    @rule(data=st.data())
    def settle_up_to(self, data: st.DataObject) -> None:
        last = data.draw(st.integers(0, self.next))
        number = self.runs.first()
        while number <= last and self.runs.count:
            member = self.runs.member(number)
            if member is None:
                number = self.runs.next_from(number)
                continue
            count = self.runs.take_run(number, last)
            assert count == 1 or isinstance(member, UnackedRun)
            member.settle_some(number, count)
            number += count
        for tag in [each for each in sorted(self.entries) if each <= last]:
            self.entries.pop(tag).settle()

    @rule(of=st.integers(0, 2))
    def purge(self, of: int) -> None:
        for side in (self.mine, self.plain):
            side.queues[of].purge()

    @invariant()
    def they_agree(self) -> None:
        assert self.mine.look() == self.plain.look()
        assert self.runs.numbers() == sorted(self.entries)
        for tag, entry in list(self.entries.items())[:3]:
            mine = self.runs.get(tag)
            assert mine is not None
            assert mine.consumer is not None
            assert entry.consumer is not None
            assert (mine.position, mine.consumer.tag) == (entry.position, entry.consumer.tag)


TestRunsAgainstDict = RunsAgainstDict.TestCase
TestRunsAgainstDict.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_deliveries_in_a_row_share_a_run_and_others_do_not() -> None:
    where = queue()
    first, second = Taker(where, "a"), Taker(where, "b")
    runs = UnackedDeliveries()
    for tag, (taker, position) in enumerate(
        [(first, 10), (first, 11), (second, 12), (second, 13), (second, 20)], 1
    ):
        runs.deliver(taker, position, tag)
    members = [runs.member(tag) for tag in range(1, 6)]
    assert members[0] is members[1]
    assert members[2] is members[3]
    assert len({id(each) for each in members}) == 3
    assert runs.take_run(1, 5) == 2
    assert runs.take_run(3, 3) == 1
