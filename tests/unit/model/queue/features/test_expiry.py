"""Messages that expire, at the head of any queue that has consumers compete, by a clock of ours."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.settings.policy import Policy
from tests.unit.model.queue.features.timed_broker import TimedBroker
from tests.unit.model.things import Taker, rest

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
}


@pytest.fixture
def here() -> TimedBroker:
    return TimedBroker()


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_expires_when_its_queue_says_so(here: TimedBroker, kind: str) -> None:
    queue = here.vhost.declare_queue(
        "q", arguments={**KINDS[kind], "x-message-ttl": 100}, durable=kind == "quorum"
    )
    here.publish(queue, b"1")
    here.pass_ms(60)
    here.publish(queue, b"2")
    here.pass_ms(39)
    assert queue.ready_count() == 2
    here.pass_ms(1)
    assert queue.ready_count() == 1
    here.pass_ms(60)
    assert queue.ready_count() == 0
    assert queue.get() is None


def test_the_shorter_of_two_times_holds(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=100)
    here.publish(queue, b"own", ttl=50)
    here.publish(queue, b"queue's", ttl=500)
    here.pass_ms(50)
    assert rest(here.dead) == [b"own"]
    here.pass_ms(50)
    assert rest(here.dead) == [b"queue's"]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_message_behind_the_head_expires_when_it_gets_there(here: TimedBroker, kind: str) -> None:
    queue = here.queue(**{"queue_type": kind} if kind == "quorum" else {})
    here.publish(queue, b"long", ttl=1_000)
    here.publish(queue, b"short", ttl=10)
    here.pass_ms(500)
    assert (queue.ready_count(), here.dead.ready_count()) == (2, 0)
    got = queue.get()
    assert got is not None
    assert got[0].body == b"long"
    assert (queue.ready_count(), rest(here.dead)) == (0, [b"short"])


def test_each_level_of_a_priority_queue_has_a_head(here: TimedBroker) -> None:
    queue = here.queue(max_priority=3)
    here.publish(queue, b"urgent", priority=3)
    here.publish(queue, b"later", ttl=30, priority=1)
    here.publish(queue, b"behind", ttl=10, priority=1)
    here.pass_ms(29)
    assert queue.ready_count() == 3
    here.pass_ms(1)
    assert rest(here.dead) == [b"later", b"behind"]
    assert rest(queue) == [b"urgent"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_for_no_time_is_delivered_at_once_or_expires(
    here: TimedBroker, kind: str
) -> None:
    queue = here.queue(message_ttl=0, **KINDS[kind])
    here.publish(queue, b"nobody is there")
    assert queue.ready_count() == 0
    assert rest(here.dead) == [b"nobody is there"]
    taker = Taker(queue, "c", credit=1)
    queue.add_consumer(taker)
    here.publish(queue, b"taken")
    here.publish(queue, b"no credit")
    assert taker.bodies == [b"taken"]
    assert rest(here.dead) == [b"no credit"]
    queue.requeue(taker.got[0][1])
    queue.drain()
    assert rest(here.dead) == [b"taken"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_keeps_its_time_when_it_comes_back(here: TimedBroker, kind: str) -> None:
    queue = here.queue(message_ttl=100, **KINDS[kind])
    here.publish(queue, b"m")
    got = queue.get()
    assert got is not None
    here.pass_ms(80)
    queue.requeue(got[1])
    queue.drain()
    assert queue.ready_count() == 1
    here.pass_ms(20)
    assert rest(here.dead) == [b"m"]


def test_an_unacknowledged_message_does_not_expire(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=100)
    here.publish(queue, b"m")
    got = queue.get()
    assert got is not None
    here.pass_ms(1_000)
    assert (queue.unacked, here.dead.ready_count()) == (1, 0)
    queue.settle(got[1])
    assert rest(here.dead) == []


def test_a_consumer_gets_nothing_that_has_expired(here: TimedBroker) -> None:
    queue = here.queue()
    here.publish(queue, b"short", ttl=10)
    here.publish(queue, b"long", ttl=1_000)
    # The timers are late: the loop was busy.
    here.clock.advance(500)
    taker = Taker(queue, "c")
    queue.add_consumer(taker)
    assert taker.bodies == [b"long"]
    assert rest(here.dead) == [b"short"]


def test_each_queue_lets_its_copy_expire_by_itself(here: TimedBroker) -> None:
    short, long, ever = (
        here.queue("short", message_ttl=10),
        here.queue("long", message_ttl=20),
        here.queue("ever"),
    )
    sent = Message("", "k", Properties(b"\0\0"), b"m")
    for queue in (short, long, ever):
        queue.publish(sent)
    here.pass_ms(10)
    assert [queue.ready_count() for queue in (short, long, ever)] == [0, 1, 1]
    here.pass_ms(10_000)
    assert [queue.ready_count() for queue in (short, long, ever)] == [0, 0, 1]


def test_a_dead_letter_says_that_it_expired_and_does_not_expire_again(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=10)
    here.publish(queue, b"m")
    here.pass_ms(10_000)
    got = here.dead.get()
    assert got is not None
    (event,) = EDITOR.headers_of(got[0])["x-death"]
    assert (event["reason"], event["queue"], event["count"]) == ("expired", "q", 1)
    assert got[0].due == 0


def test_queues_that_send_each_other_what_expires_do_not_go_round(here: TimedBroker) -> None:
    there = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b"}
    back = {**there, "x-dead-letter-routing-key": "a"}
    a = here.vhost.declare_queue("a", arguments=there)
    b = here.vhost.declare_queue("b", arguments=back)
    here.publish(a, b"m")
    assert (a.ready_count(), b.ready_count()) == (0, 0)


def test_a_policy_is_for_the_messages_that_come_after_it(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=1_000)
    here.publish(queue, b"before")
    policies = here.vhost.policies
    policies.put(Policy("p", "^q$", "queues", 0, {"message-ttl": 10}))
    here.publish(queue, b"with it")
    here.pass_ms(100)
    assert queue.ready_count() == 2
    here.pass_ms(900)
    assert rest(here.dead) == [b"before", b"with it"]
    policies.delete("p")
    here.publish(queue, b"after")
    here.pass_ms(999)
    assert queue.ready_count() == 1
    here.pass_ms(1)
    assert queue.ready_count() == 0


def test_a_great_many_messages_expire_in_turns(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=10)
    for number in range(12_000):
        here.publish(queue, b"%d" % number)
    here.clock.advance(10)
    here.broker.timers.run()
    assert 0 < queue.ready_count() < 12_000
    here.pass_ms(0)
    assert (queue.ready_count(), here.dead.ready_count()) == (0, 12_000)
    assert here.broker.timers.due > here.clock.steady


@pytest.mark.parametrize("kind", KINDS)
def test_dead_letters_of_what_expires_are_sent_while_the_budget_lasts(
    here: TimedBroker, kind: str
) -> None:
    queue = here.queue(message_ttl=10, **KINDS[kind])
    for number in range(500):
        here.publish(queue, b"%d" % number)
    here.clock.advance(10)
    work = here.broker.timers.work
    sent = [0]
    while queue.ready_count():
        work.begin(500)
        here.broker.timers.run()
        assert work.end() < 600
        sent.append(here.dead.ready_count())
    # Each costs much more than to let a message go.
    assert all(0 < later - before < 25 for before, later in pairwise(sent))
    assert rest(here.dead) == [b"%d" % number for number in range(500)]


def test_a_deleted_or_purged_queue_has_nothing_left_to_expire(here: TimedBroker) -> None:
    gone, purged = here.queue("gone", message_ttl=10), here.queue("purged", message_ttl=10)
    here.publish(gone, b"m")
    here.publish(purged, b"m")
    here.vhost.delete_queue("gone")
    assert purged.purge() == 1
    here.pass_ms(100)
    assert here.dead.ready_count() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_was_taken_and_comes_back_expires_at_its_time(
    here: TimedBroker, kind: str
) -> None:
    queue = here.vhost.declare_queue(
        "q", arguments={**KINDS[kind], "x-message-ttl": 100}, durable=kind == "quorum"
    )
    here.publish(queue, b"m")
    got = queue.get()
    assert got is not None
    here.pass_ms(100)
    queue.requeue(got[1])
    queue.drain()
    assert queue.ready_count() == 0


def test_a_message_that_a_consumer_returns_expires_at_its_time(here: TimedBroker) -> None:
    queue = here.queue(message_ttl=100)
    taker = Taker(queue, credit=1)
    queue.add_consumer(taker)
    here.publish(queue, b"first")
    queue.remove_consumer(taker)
    here.pass_ms(50)
    here.publish(queue, b"second")
    ((_, position, _),) = taker.got
    queue.requeue(position)
    queue.drain()
    here.pass_ms(50)
    assert (queue.ready_count(), rest(here.dead)) == (1, [b"first"])
    here.pass_ms(50)
    assert (queue.ready_count(), rest(here.dead)) == (0, [b"second"])


def test_messages_that_expire_behind_a_taken_one_leave_its_position_alone(
    here: TimedBroker,
) -> None:
    queue = here.queue()
    here.publish(queue, b"long", ttl=1_000)
    here.publish(queue, b"short", ttl=10)
    here.pass_ms(500)
    got = queue.get()
    assert got is not None
    queue.settle(got[1])
    assert (queue.ready_count(), queue.unacked, rest(here.dead)) == (0, 0, [b"short"])


class ExpiryAgainstList(RuleBasedStateMachine):
    """A queue against a list: `ready` is in order, each entry (number, due)."""

    ARGUMENTS: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.here = TimedBroker()
        self.queue = self.here.queue(**self.ARGUMENTS)
        self.ttl: int | None = self.ARGUMENTS.get("message_ttl")
        self.ready: list[tuple[int, float]] = []
        self.out: dict[int, tuple[int, float]] = {}
        self.dead: list[int] = []
        self.next = 0

    @rule(ttl=st.none() | st.integers(0, 30))
    def publish(self, ttl: int | None) -> None:
        self.here.publish(self.queue, b"%d" % self.next, ttl=ttl)
        limits = [each for each in (ttl, self.ttl) if each is not None]
        due = self.here.clock.steady + min(limits) if limits else float("inf")
        self.ready.append((self.next, due))
        self.next += 1
        self._expire()

    def _expire(self) -> None:
        while self.ready and self.ready[0][1] <= self.here.clock.steady:
            self.dead.append(self.ready.pop(0)[0])

    @rule(ms=st.integers(1, 20))
    def wait(self, ms: int) -> None:
        self.here.pass_ms(ms)
        self._expire()

    @rule()
    def get(self) -> None:
        found = self.queue.get()
        if found is None:
            assert not self.ready
        else:
            expected = self.ready.pop(0)
            assert int(found[0].body) == expected[0]
            self.out[found[1]] = expected
        self._expire()

    @rule(data=st.data(), back=st.booleans())
    def settle(self, data: st.DataObject, back: bool) -> None:
        if not self.out:
            return
        position = data.draw(st.sampled_from(sorted(self.out)))
        entry = self.out.pop(position)
        if back:
            self.queue.requeue(position)
            self.ready.append(entry)
            self.ready.sort()
        else:
            self.queue.settle(position)
        self.queue.drain()
        self._expire()

    @invariant()
    def agrees(self) -> None:
        assert self.queue.ready_count() == len(self.ready)
        assert self.here.dead.ready_count() == len(self.dead)


class ExpiryWithTtl(ExpiryAgainstList):
    ARGUMENTS = {"message_ttl": 15}


TestExpiryAgainstList = ExpiryAgainstList.TestCase
TestExpiryAgainstList.settings = settings(max_examples=40, stateful_step_count=40)
TestExpiryWithTtl = ExpiryWithTtl.TestCase
TestExpiryWithTtl.settings = settings(max_examples=40, stateful_step_count=40)
