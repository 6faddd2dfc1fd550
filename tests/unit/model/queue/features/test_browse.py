"""Browsing, taking out of turn and giving back, against lists: in every kind that competes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.base.ports import Commit
from harebell.model.limits import BROWSED_PER_TURN
from harebell.model.queue.contract import PENDING
from harebell.model.queue.factory import keyed_queue, quorum_queue
from harebell.model.queue.features.alternate_exchange import ALTERNATE
from harebell.model.queue.queue import MessageQueue
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker, message, priority_queue, queue, rest, vhost

MAX = 2


def numbered(number: int, level: int) -> Message:
    return Message("", "", Properties(b"\0\0", 0, level), b"%d" % number)


class Shelf:
    """One level: what came back goes first, then what was never out."""

    def __init__(self) -> None:
        self.back: dict[int, bool] = {}
        self.fresh: list[int] = []

    def ready(self) -> dict[int, bool]:
        return self.back | dict.fromkeys(self.fresh, False)

    def first(self) -> int | None:
        if self.back:
            return min(self.back)
        return self.fresh[0] if self.fresh else None

    def take(self, number: int) -> bool:
        if number in self.back:
            return self.back.pop(number)
        self.fresh.remove(number)
        return False


class BrowsedAgainstLists(RuleBasedStateMachine):
    """Bodies are numbers in the order of publishing."""

    levels = 1

    def make(self) -> Any:
        return queue(gauge=self.gauge)

    def __init__(self) -> None:
        super().__init__()
        self.gauge = Gauge()
        self.queue = self.make()
        self.shelves = [Shelf() for _ in range(self.levels)]
        self.level_of: dict[int, int] = {}
        self.positions: dict[int, int] = {}
        self.out: dict[int, bool] = {}
        self.next = 0
        self.browsers: list[tuple[Taker, list[int], list[tuple[int, bool]]]] = []

    def _show(self) -> None:
        for taker, cursors, shown in self.browsers:
            while len(shown) < len(taker.got) + max(taker.credit, 0):
                found = self._next(cursors)
                if found is None:
                    break
                number, again = found
                cursors[self.level_of[number]] = number + 1
                shown.append((number, again))
            assert [(int(body), again) for body, _, again in taker.got] == shown
            for body, position, _ in taker.got:
                known = self.positions.setdefault(int(body), position)
                assert known == position

    def _next(self, cursors: list[int]) -> tuple[int, bool] | None:
        for level in reversed(range(self.levels)):
            waiting = self.shelves[level].ready()
            after = [number for number in waiting if number >= cursors[level]]
            if after:
                return min(after), waiting[min(after)]
        return None

    @rule(level=st.integers(0, MAX))
    def publish(self, level: int) -> None:
        number, self.next = self.next, self.next + 1
        level = min(level, self.levels - 1)
        self.level_of[number] = level
        self.shelves[level].fresh.append(number)
        self.queue.publish(numbered(number, level))
        self._show()

    @rule(credit=st.integers(0, 5))
    def browse(self, credit: int) -> None:
        if len(self.browsers) < 3:
            taker = Taker(self.queue, f"b{len(self.browsers)}", credit)
            self.browsers.append((taker, [0] * self.levels, []))
            self.queue.add_browser(taker)
            self._show()

    @precondition(lambda self: self.browsers)
    @rule(which=st.integers(0, 2), credit=st.integers(1, 5))
    def more_credit(self, which: int, credit: int) -> None:
        taker = self.browsers[which % len(self.browsers)][0]
        taker.credit += credit
        self.queue.drain()
        self._show()

    @precondition(lambda self: self.browsers)
    @rule(which=st.integers(0, 2))
    def leave(self, which: int) -> None:
        taker = self.browsers.pop(which % len(self.browsers))[0]
        self.queue.remove_consumer(taker)
        assert taker not in self.queue.browsers

    @rule()
    def get(self) -> None:
        found = self.queue.get()
        expected = None
        for shelf in reversed(self.shelves):
            if expected is None:
                expected = shelf.first()
        if expected is None:
            assert found is None
            return
        again = self.shelves[self.level_of[expected]].take(expected)
        assert (int(found[0].body), bool(found[2])) == (expected, again)
        self.positions[expected] = found[1]
        self.out[expected] = again

    @precondition(lambda self: self.positions)
    @rule(data=st.data())
    def acquire(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.positions)))
        shelf = self.shelves[self.level_of[number]]
        taker = Taker(self.queue)
        got = self.queue.acquire(self.positions[number], taker)
        assert got == (number in shelf.ready())
        if got:
            self.out[number] = shelf.take(number)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), how=st.sampled_from(["settle", "requeue", "release", "again"]))
    def done(self, data: st.DataObject, how: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.out)))
        again = self.out.pop(number)
        position = self.positions[number]
        if how == "settle":
            self.queue.settle(position)
            return
        if how == "requeue":
            self.queue.requeue(position)
        else:
            self.queue.requeue_uncounted(position, again or how == "again")
        self.shelves[self.level_of[number]].back[number] = again or how != "release"
        self.queue.drain()
        self._show()

    @rule()
    def purge(self) -> None:
        count = sum(len(shelf.ready()) for shelf in self.shelves)
        assert self.queue.purge() == count
        self.shelves = [Shelf() for _ in range(self.levels)]

    @invariant()
    def counts(self) -> None:
        assert self.queue.ready_count() == sum(len(shelf.ready()) for shelf in self.shelves)
        assert self.queue.unacked == len(self.out)

    def teardown(self) -> None:
        """Whatever is left can still be had, in order, and then the memory is free."""
        while self.shelves and any(shelf.ready() for shelf in self.shelves):
            self.get()
        for number in list(self.out):
            self.queue.settle(self.positions[number])
        assert self.queue.get() is None
        assert self.gauge.used == 0


class PriorityBrowsed(BrowsedAgainstLists):
    levels = MAX + 1

    def make(self) -> Any:
        return priority_queue(limit=MAX, gauge=self.gauge)


class GroupedWithoutKeys(BrowsedAgainstLists):
    def make(self) -> Any:
        return keyed_queue("q", "/", PreparedLog(), arguments={"x-group-key": "routing_key"})


TestClassic = BrowsedAgainstLists.TestCase
TestClassic.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPriority = PriorityBrowsed.TestCase
TestPriority.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGrouped = GroupedWithoutKeys.TestCase
TestGrouped.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def filled(of: Any, count: int) -> Any:
    for number in range(count):
        of.publish(message(b"%d" % number))
    return of


def test_a_browser_takes_its_turns_when_there_is_much_to_see() -> None:
    shown = filled(queue(), 3 * BROWSED_PER_TURN)

    class Patient(Taker):
        turns = 0

        def again(self) -> int:
            self.turns += 1
            return 0

    browser = Patient(shown)
    shown.add_browser(browser)
    while len(browser.got) < 3 * BROWSED_PER_TURN:
        before = browser.turns
        assert len(browser.got) <= (before + 1) * BROWSED_PER_TURN
        shown.drain()
    assert [int(body) for body in browser.bodies] == list(range(3 * BROWSED_PER_TURN))
    assert browser.turns >= 2


def test_a_consumer_and_a_browser_do_not_disturb_each_other() -> None:
    shared = queue()
    browser, consumer = Taker(shared, "b"), Taker(shared, "c", 1)
    shared.add_browser(browser)
    filled(shared, 3)
    shared.add_consumer(consumer)
    assert browser.bodies == [b"0", b"1", b"2"]
    assert consumer.bodies == [b"0"]
    assert not shared.acquire(browser.got[0][1], browser), "the consumer has it"
    assert shared.acquire(browser.got[1][1], browser)
    consumer.credit = 5
    shared.drain()
    assert consumer.bodies == [b"0", b"2"]


def test_a_browser_is_no_consumer_and_hears_of_the_end() -> None:
    host = vhost()
    made = host.declare_queue("q", auto_delete=True)
    browser = Taker(made)
    made.add_browser(browser)
    assert not made.consumers
    assert list(made.browsers) == [browser]
    host.remove_consumer(browser)
    assert made.deleted, "an auto-delete queue goes with its last browser, too"
    other = host.declare_queue("r")
    watcher = Taker(other)
    other.add_browser(watcher)
    host.drop_queue(other)
    assert watcher.told_of_the_end


def quorum(log: PreparedLog | None = None, **arguments: Any) -> MessageQueue:
    return quorum_queue("q", "/", log or PreparedLog(), Commit(), durable=True, arguments=arguments)


def test_messages_requeued_in_a_quorum_queue_can_be_seen_and_taken() -> None:
    counted = filled(quorum(), 3)
    taken = [counted.get(), counted.get()]
    for _, position, _ in reversed(taken):
        counted.requeue_uncounted(position, False)
    browser = Taker(counted)
    counted.add_browser(browser)
    assert [(body, again) for body, _, again in browser.got] == [
        (b"0", True),
        (b"1", True),
        (b"2", False),
    ]
    assert counted.acquire(browser.got[0][1], browser)
    assert not counted.acquire(browser.got[0][1], browser)
    assert counted.acquire(browser.got[2][1], browser)
    assert counted.ready_count() == 1
    message, position, _ = counted.get()
    assert message.body == b"1"
    assert message.deliveries == 0, "what is released has not failed"
    counted.settle(position)
    assert counted.get() is None


def test_a_key_that_is_held_cannot_be_taken_by_somebody_else() -> None:
    grouped = keyed_queue("q", "/", PreparedLog(), arguments={"x-group-key": "routing_key"})
    host = vhost()
    grouped.join(host.context)  # what a vhost does with its queues
    for number, key in enumerate("aab"):
        grouped.publish(message(b"%d" % number, key))
    one, other = Taker(grouped, "1"), Taker(grouped, "2")
    grouped.add_browser(one)
    positions = [position for _, position, _ in one.got]
    assert grouped.acquire(positions[0], one)
    assert not grouped.acquire(positions[1], other), "its key is held"
    assert grouped.acquire(positions[2], other), "another key"
    grouped.settle(positions[0])
    assert grouped.acquire(positions[1], other)


def test_rejected_and_remaining_messages_go_to_the_alternate_exchange() -> None:
    host = vhost()
    for name in ("rejected", "orphans"):
        host.declare_queue(name)
        host.declare_exchange(f"x.{name}", "fanout")
        host.bind(f"x.{name}", host.queues[name], "")
    first = host.declare_queue("q", arguments={ALTERNATE: "x.rejected"})
    filled(first, 2)
    found = first.get()
    assert found is not None
    first.reject(found[1])
    assert first.unacked == 0
    assert host.queues["rejected"].ready_count() == 1
    second = host.declare_queue("r", arguments={ALTERNATE: "x.orphans"})
    filled(second, 3)
    assert host.drop_queue(second) == 3
    assert [host.queues["orphans"].get()[0].body for _ in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-max-priority": 3},
        {"x-ordering-key": "key"},
        {"x-queue-type": "quorum"},
        {"x-queue-type": "quorum", "x-retry-delays": [60_000]},
    ],
)
def test_outstanding_messages_of_a_removed_queue_reach_the_alternate_exchange_too(
    arguments: dict[str, Any],
) -> None:
    host = vhost()
    orphans = host.declare_queue("orphans")
    of = host.declare_queue("q", durable=True, arguments={ALTERNATE: "amq.fanout", **arguments})
    host.bind("amq.fanout", orphans, "")
    filled(of, 6)
    taken = [of.get() for _ in range(4)]
    of.settle(taken[0][1])
    of.requeue(taken[2][1])
    host.drop_queue(of)
    for _, position, _ in taken[1:]:
        of.requeue(position)
    assert rest(orphans) == [b"1", b"2", b"3", b"4", b"5"]


class WaitingLetters:
    """Has every dead letter in a queue that waits for the disk."""

    def count(self, reason: str) -> None:
        """Nothing is asked about counts here."""

    def send(
        self, letter: Message, reason: str, taken: set[str] | None = None, remark: object = None
    ) -> int:
        return PENDING


def test_a_dead_letter_that_waits_for_the_disk_is_not_sent_on_besides() -> None:
    host = vhost()
    orphans = host.declare_queue("orphans")
    arguments = {
        ALTERNATE: "amq.fanout",
        "x-dead-letter-strategy": "at-least-once",
        "x-delivery-limit": 0,
        "x-overflow": "reject-publish",
    }
    commit = Commit()
    commit.ticket = commit.done + 1
    of = quorum_queue("q", "/", PreparedLog(), commit, durable=True, arguments=arguments)
    host.add_queue(filled(of, 2))
    of.dead_letters = WaitingLetters()
    host.bind("amq.fanout", orphans, "")
    of.requeue(of.get()[1])
    host.drop_queue(of)
    assert rest(orphans) == [b"1"]


def test_an_alternate_exchange_that_is_gone_or_leads_back_loses_the_message() -> None:
    host = vhost()
    host.declare_exchange("back", "fanout")
    circle = host.declare_queue("q", arguments={ALTERNATE: "back"})
    host.bind("back", circle, "")
    filled(circle, 2)
    for _ in range(2):
        found = circle.get()
        assert found is not None
        circle.reject(found[1])
        host.delete_exchange("back")
    assert circle.ready_count() == circle.unacked == 0
