"""Messages that wait before they are delivered again, by a clock of ours."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.queue.contract import Queue
from harebell.model.queue.factory import make_queue
from harebell.model.queue.features.retry_delays import Rules
from harebell.model.settings.policy import Policy
from harebell.store.log.memory import MemoryStore
from tests.unit.model.queue.features.timed_broker import TimedBroker
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
}
DELAYS = [100, 300]


@pytest.fixture
def here() -> TimedBroker:
    return TimedBroker()


def got(queue: Queue) -> tuple[bytes, int, bool]:
    found = queue.get()
    assert found is not None
    return found[0].body, found[1], bool(found[2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejected_message_comes_back_after_each_delay_and_then_dies(
    here: TimedBroker, kind: str
) -> None:
    queue = here.queue(**KINDS[kind], **{"retry-delays": DELAYS})
    here.publish(queue, b"m")
    for again, delay in ((False, 100), (True, 300)):
        body, position, redelivered = got(queue)
        assert (body, redelivered) == (b"m", again)
        queue.requeue(position)
        found = queue.get()
        assert found is not None
        position = found[1]
        failed = 1 if again else 0
        assert found[0].deliveries == (failed if kind != "quorum" else 2 * failed + 1)
        queue.reject(position)
        assert (queue.ready_count(), queue.unacked, queue.delayed_count()) == (0, 0, 1)
        here.pass_ms(delay - 1)
        assert queue.get() is None
        here.pass_ms(1)
        assert (queue.ready_count(), queue.delayed_count()) == (1, 0)
    queue.reject(got(queue)[1])
    assert (queue.ready_count(), queue.delayed_count(), here.dead.ready_count()) == (0, 0, 1)
    letter = here.dead.get()
    assert letter is not None
    (event,) = EDITOR.headers_of(letter[0])["x-death"]
    assert (event["reason"], event["count"]) == ("rejected", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_requeued_messages_go_to_a_waiting_consumer_before_the_others(
    here: TimedBroker, kind: str
) -> None:
    queue = here.queue(**KINDS[kind], **{"retry-delays": DELAYS})
    here.publish(queue, b"1")
    here.publish(queue, b"2")
    queue.reject(got(queue)[1])
    here.publish(queue, b"3")
    here.pass_ms(100)
    taker = Taker(queue)
    queue.add_consumer(taker)
    assert taker.bodies == [b"1", b"2", b"3"]
    queue.reject(taker.got[1][1])
    here.pass_ms(100)
    assert taker.got[3][0] == b"2"
    assert taker.got[3][2]


def test_other_messages_do_not_wait_for_the_one_that_does(here: TimedBroker) -> None:
    queue = here.queue(**{"retry-delays": [60_000]})
    here.publish(queue, b"1")
    here.publish(queue, b"2")
    queue.reject(got(queue)[1])
    assert got(queue)[0] == b"2"


def test_a_requeued_message_does_not_wait(here: TimedBroker) -> None:
    queue = here.queue(**{"retry-delays": DELAYS})
    here.publish(queue, b"m")
    queue.requeue(got(queue)[1])
    queue.requeue_returned(got(queue)[1])
    assert (queue.ready_count(), queue.delayed_count()) == (1, 0)


def test_a_delay_of_nothing_is_one_turn(here: TimedBroker) -> None:
    queue = here.queue(**{"retry-delays": [0]})
    here.publish(queue, b"m")
    queue.reject(got(queue)[1])
    assert queue.delayed_count() == 1
    here.pass_ms(0)
    assert queue.ready_count() == 1


def test_a_delivery_not_acknowledged_in_time_counts_as_rejected_where_it_is_tried_again(
    here: TimedBroker,
) -> None:
    queue = here.queue(**{"retry-delays": DELAYS})
    here.publish(queue, b"m")
    queue.time_out(got(queue)[1])
    assert (queue.ready_count(), queue.delayed_count()) == (0, 1)
    plain = here.vhost.declare_queue("plain")
    here.publish(plain, b"m")
    plain.time_out(got(plain)[1])
    assert (plain.ready_count(), plain.delayed_count()) == (1, 0)


def test_purging_drops_what_waits_and_deleting_too(here: TimedBroker) -> None:
    queue = here.queue(**{"retry-delays": DELAYS})
    here.publish(queue, b"1")
    here.publish(queue, b"2")
    queue.reject(got(queue)[1])
    assert queue.purge() == 2
    here.pass_ms(1_000)
    assert (queue.ready_count(), queue.delayed_count()) == (0, 0)
    here.publish(queue, b"3")
    queue.reject(got(queue)[1])
    here.vhost.delete_queue("q")
    here.pass_ms(1_000)
    assert here.dead.ready_count() == 0


def test_waiting_may_be_ended_at_once(here: TimedBroker) -> None:
    queue = here.queue(**{"retry-delays": [60_000]})
    for body in (b"1", b"2"):
        here.publish(queue, body)
    queue.reject(got(queue)[1])
    queue.reject(got(queue)[1])
    assert queue.retry_now() == 2
    assert [got(queue)[0], got(queue)[0]] == [b"1", b"2"]
    assert here.vhost.declare_queue("other").delayed_count() == 0


def test_a_policy_lets_messages_be_tried_again(here: TimedBroker) -> None:
    queue = here.vhost.declare_queue("q")
    here.vhost.policies.put(Policy("p", "", "queues", 0, {"retry": [50]}))
    here.publish(queue, b"m")
    queue.reject(got(queue)[1])
    assert queue.delayed_count() == 1
    here.vhost.policies.delete("p")
    here.pass_ms(50)
    queue.reject(got(queue)[1])
    assert (queue.ready_count(), queue.delayed_count()) == (0, 0)


@pytest.mark.parametrize("value", ["0,7", "0, 7 ", [0, 7], (0, 7)])
def test_delays_may_be_a_text(here: TimedBroker, value: Any) -> None:
    here.queue(**{"retry-delays": value})
    assert Rules({"x-retry-delays": value}, {}).delays == (0, 7)


@pytest.mark.parametrize("value", [0, 7, "7", [7]])
def test_a_delay_may_stand_alone(here: TimedBroker, value: Any) -> None:
    wanted = (0,) if value == 0 else (7,)
    here.queue(**{"retry-delays": value})
    here.vhost.policies.put(Policy("p", "by-policy", "queues", 0, {"retry": value}))
    assert Rules({"x-retry-delays": value}, {}).delays == wanted
    assert Rules({}, {"retry": value}).delays == wanted


@pytest.mark.parametrize(
    "value",
    [
        *([], [-1], ["1"], [1.5], [True], [1] * 65, [10**15]),
        *(-1, 1.5, True, None, "", "a", "1,", "1;2", "-1", "1.5", "1," * 64 + "1", "9" * 30, "٣"),
    ],
)
def test_delays_that_mean_nothing_are_refused(here: TimedBroker, value: Any) -> None:
    with pytest.raises(Refusal, match="invalid arg 'x-retry-delays' for queue 'q' in vhost '/'"):
        here.queue(**{"retry-delays": value})
    with pytest.raises(Refusal, match="is not a list of delays in milliseconds"):
        here.vhost.policies.put(Policy("p", "", "queues", 0, {"retry": value}))


def test_a_redeclaration_has_to_repeat_the_delays(here: TimedBroker) -> None:
    first = here.queue(**{"retry-delays": DELAYS})
    assert here.queue(**{"retry-delays": list(DELAYS)}) is first
    with pytest.raises(Refusal, match="inequivalent arg 'x-retry-delays'"):
        here.queue(**{"retry-delays": [1]})


# --- RabbitMQ 4.3's delayed retry ----------------------------------------------------------------


def quorum(here: TimedBroker, kind: str, **more: Any) -> Any:
    arguments = {"delayed-retry-type": kind, "delayed-retry-min": 100, "delayed-retry-max": 250}
    return here.queue(**{"x-queue-type": "quorum", **arguments, **more})


@pytest.mark.parametrize(
    ("kind", "failed", "returned"),
    [
        ("all", True, True),
        ("failed", True, False),
        ("returned", False, True),
        ("disabled", False, False),
    ],
)
def test_a_message_requeued_in_a_quorum_queue_waits_if_the_queue_says_so(
    here: TimedBroker, kind: str, failed: bool, returned: bool
) -> None:
    queue = quorum(here, kind)
    here.publish(queue, b"m")
    queue.requeue(got(queue)[1])
    assert bool(queue.delayed_count()) is failed
    here.pass_ms(100)
    queue.requeue_returned(got(queue)[1])
    assert bool(queue.delayed_count()) is returned


def test_the_wait_grows_with_the_failures_up_to_the_most_and_the_limit_ends_it(
    here: TimedBroker,
) -> None:
    queue = quorum(here, "failed", **{"delivery-limit": 3})
    here.publish(queue, b"m")
    for delay in (100, 200, 250):
        queue.requeue(got(queue)[1])
        here.pass_ms(delay - 1)
        assert queue.ready_count() == 0
        here.pass_ms(1)
        assert queue.ready_count() == 1
    queue.requeue(got(queue)[1])
    assert (queue.delayed_count(), here.dead.ready_count()) == (0, 1)


def test_without_a_minimum_nothing_waits(here: TimedBroker) -> None:
    queue = here.queue(**{"x-queue-type": "quorum", "delayed-retry-type": "all"})
    here.publish(queue, b"m")
    queue.requeue(got(queue)[1])
    assert (queue.ready_count(), queue.delayed_count()) == (1, 0)


def test_only_quorum_queues_know_the_arguments_of_rabbitmq(here: TimedBroker) -> None:
    with pytest.raises(Refusal, match="of queue type rabbit_classic_queue"):
        here.queue(**{"delayed-retry-min": 5})
    with pytest.raises(Refusal, match="invalid_delayed_retry_type"):
        quorum(here, "sometimes")


# --- ordering keys --------------------------------------------------------------------------------

KEYED: dict[str, dict[str, Any]] = {
    "classic": {"x-group-key": "routing_key", "retry-delays": DELAYS},
    "quorum": {"x-group-key": "routing_key", "retry-delays": DELAYS, "x-queue-type": "quorum"},
    "returned": {
        "x-group-key": "routing_key",
        "x-queue-type": "quorum",
        "delayed-retry-type": "all",
        "delayed-retry-min": 100,
    },
}
"""Queues whose messages wait when they come back; the last one's when they are given back."""


def keyed(queue: Queue, *names: str) -> None:
    """Publish messages named by their key and a number."""
    for name in names:
        queue.publish(Message("", name[0], Properties(b"\0\0"), name.encode()))


def came_back(queue: Queue, kind: str, position: int) -> None:
    (queue.requeue if kind == "returned" else queue.reject)(position)
    queue.drain()


def test_a_message_with_a_key_that_is_requeued_unused_is_not_redelivered(here: TimedBroker) -> None:
    queue = here.queue(**{"x-group-key": "routing_key"})
    keyed(queue, "a1")
    for redelivered in (False, True):
        _, position, before = got(queue)
        assert not before
        queue.requeue_uncounted(position, redelivered)
    assert got(queue)[2]


@pytest.mark.parametrize("kind", KEYED)
def test_a_waiting_message_holds_its_key_and_no_other(here: TimedBroker, kind: str) -> None:
    queue = here.queue(**KEYED[kind])
    taker = Taker(queue, credit=1)
    queue.add_consumer(taker)
    keyed(queue, "a1", "a2", "b1", "a3", "b2")
    for body in (b"a1", b"b1", b"b2"):
        assert taker.bodies[-1] == body
        taker.credit += 1
        if body == b"a1":
            came_back(queue, kind, taker.got[-1][1])
        else:
            queue.settle(taker.got[-1][1])
            queue.drain()
    assert taker.bodies == [b"a1", b"b1", b"b2"]
    assert queue.get() is None
    assert queue.delayed_count() == 1
    here.pass_ms(100)
    for body in (b"a1", b"a2", b"a3"):
        assert taker.bodies[-1] == body
        taker.credit += 1
        queue.settle(taker.got[-1][1])
        queue.drain()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_key_goes_on_when_what_waited_is_dead(here: TimedBroker, kind: str) -> None:
    queue = here.queue(**KEYED[kind])
    keyed(queue, "a1", "a2")
    for delay in (100, 300):
        queue.reject(got(queue)[1])
        assert queue.get() is None
        here.pass_ms(delay)
    queue.reject(got(queue)[1])
    assert here.dead.ready_count() == 1
    assert got(queue)[0] == b"a2"


def test_an_outstanding_message_beside_waiting_ones_is_settled_and_does_not_free_the_key(
    here: TimedBroker,
) -> None:
    queue = here.queue(**KEYED["classic"])
    first, second = Taker(queue, "1", credit=2), Taker(queue, "2")
    queue.add_consumer(first)
    keyed(queue, "a1", "a2")
    queue.add_consumer(second)
    keyed(queue, "a3", "b1")
    came_back(queue, "classic", first.got[0][1])
    queue.settle(first.got[1][1])
    first.credit = 100
    queue.drain()
    assert first.bodies + second.bodies == [b"a1", b"a2", b"b1"]
    here.pass_ms(100)
    assert (first.bodies + second.bodies)[-2:] in ([b"a1", b"a3"], [b"a3", b"b1"])
    assert sorted(first.bodies + second.bodies) == [b"a1", b"a1", b"a2", b"a3", b"b1"]


def test_a_consumer_that_goes_leaves_the_key_to_what_waits(here: TimedBroker) -> None:
    queue = here.queue(**KEYED["classic"])
    gone, stays = Taker(queue, "1", credit=2), Taker(queue, "2")
    queue.add_consumer(gone)
    keyed(queue, "a1", "a2", "a3")
    came_back(queue, "classic", gone.got[0][1])
    queue.remove_consumer(gone)
    queue.requeue(gone.got[1][1])
    queue.add_consumer(stays)
    queue.drain()
    assert stays.bodies == []
    here.pass_ms(100)
    assert stays.bodies == [b"a1", b"a2", b"a3"]


def test_a_purge_frees_the_key_of_what_waited(here: TimedBroker) -> None:
    queue = here.queue(**KEYED["classic"])
    keyed(queue, "a1", "a2")
    queue.reject(got(queue)[1])
    assert queue.purge() == 2
    keyed(queue, "a3")
    assert got(queue)[0] == b"a3"


def test_an_operator_who_ends_the_waiting_has_the_key_go_on_in_order(here: TimedBroker) -> None:
    queue = here.queue(**KEYED["classic"])
    keyed(queue, "a1", "a2", "b1")
    queue.reject(got(queue)[1])
    assert got(queue)[0] == b"b1"
    assert queue.retry_now() == 1
    body, position, _ = got(queue)
    assert body == b"a1"
    queue.settle(position)
    assert got(queue)[0] == b"a2"


# --- restarts -------------------------------------------------------------------------------------


class OneLogStore(MemoryStore):
    """A store whose queues all have this one log, as if it had been there before."""

    def __init__(self, log: PreparedLog) -> None:
        super().__init__(Gauge())
        self._log = log

    def open_log(self, identity: str, **options: Any) -> PreparedLog:  # type: ignore[override]
        return self._log


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_had_failed_before_a_restart_waits_once_more(
    here: TimedBroker, kind: str
) -> None:
    log = PreparedLog()
    for number in range(5):
        log.append(Message("", "q", Properties(b"\0\0"), b"%d" % number))
    log.settle(0)
    log.set_count(1, 1 << 16)
    log.set_count(3, 2 << 16 | 1)
    arguments = {**KINDS[kind], "x-retry-delays": DELAYS}
    if kind == "priority":
        arguments["x-max-priority"] = 1
    options = {"durable": True, "arguments": arguments}
    store = OneLogStore(log)
    if kind == "priority":
        # Only one of the levels has the messages.
        empty = PreparedLog()
        store.open_log = lambda identity, **options: (  # type: ignore[method-assign]
            log if identity.endswith("-0") else empty
        )
    queue: Any = make_queue(kind, "q", "/", store, "1" * 32, options, restored=True)
    here.vhost.add_queue(queue)
    assert (queue.ready_count(), queue.delayed_count()) == (2, 2)
    assert got(queue)[0] == b"2"
    here.pass_ms(100)
    assert [got(queue)[0], got(queue)[0]] == [b"1", b"4"]
    here.pass_ms(199)
    assert queue.get() is None
    here.pass_ms(1)
    body, position, again = got(queue)
    assert (body, again) == (b"3", True)
    assert queue.get() is None
    queue.reject(position)
    assert (queue.delayed_count(), queue.ready_count()) == (0, 0)


@pytest.mark.parametrize("kind", ["grouped", "quorum"])
def test_a_message_that_waits_again_after_a_restart_holds_its_key_again(
    here: TimedBroker, kind: str
) -> None:
    log = PreparedLog()
    for name in ("a1", "b1", "a2", "a3"):
        log.append(Message("", name[0], Properties(b"\0\0"), name.encode()))
    log.set_count(0, 1 << 16)
    arguments = {**KEYED["classic"], "x-retry-delays": DELAYS}
    options = {"durable": True, "arguments": arguments}
    queue: Any = make_queue(kind, "q", "/", OneLogStore(log), "1" * 32, options, restored=True)
    here.vhost.add_queue(queue)
    assert got(queue)[0] == b"b1"
    assert queue.get() is None
    here.pass_ms(100)
    for body in (b"a1", b"a2", b"a3"):
        found, position, _ = got(queue)
        assert found == body
        queue.settle(position)


class RetryAgainstLists(RuleBasedStateMachine):
    """Nothing is lost, nothing comes early, and every message dies after its last delay."""

    ARGUMENTS: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.here = TimedBroker()
        self.queue = self.here.queue(**self.ARGUMENTS, **{"retry-delays": DELAYS})
        self.ready: dict[int, int] = {}
        self.out: dict[int, tuple[int, int]] = {}
        self.waiting: dict[int, tuple[int, int]] = {}
        self.died = 0
        self.next = 0

    @rule()
    def publish(self) -> None:
        self.here.publish(self.queue, b"%d" % self.next)
        self.ready[self.next] = 0
        self.next += 1

    @rule()
    def get(self) -> None:
        found = self.queue.get()
        if found is None:
            assert not self.ready
            return
        number = int(found[0].body)
        self.out[found[1]] = (number, self.ready.pop(number))

    @rule(data=st.data(), how=st.sampled_from(["settle", "requeue", "reject"]))
    def done(self, data: st.DataObject, how: str) -> None:
        if not self.out:
            return
        position = data.draw(st.sampled_from(sorted(self.out)))
        number, count = self.out.pop(position)
        getattr(self.queue, how)(position)
        if how == "requeue":
            self.ready[number] = count + self.counts_requeues
        elif how == "reject" and count < len(DELAYS):
            self.waiting[number] = (count + 1, self.here.clock.steady + DELAYS[count])
        elif how == "reject":
            self.died += 1

    counts_requeues = 0

    @rule(ms=st.sampled_from([1, 50, 100, 300]))
    def wait(self, ms: int) -> None:
        self.here.pass_ms(ms)
        for number, (count, due) in list(self.waiting.items()):
            if due <= self.here.clock.steady:
                del self.waiting[number]
                self.ready[number] = count

    @invariant()
    def agrees(self) -> None:
        assert self.queue.ready_count() == len(self.ready)
        assert self.queue.delayed_count() == len(self.waiting)
        assert self.here.dead.ready_count() == self.died
        assert self.queue.unacked == len(self.out)


class PriorityAgainstLists(RetryAgainstLists):
    ARGUMENTS = {"x-max-priority": 2}


TestRetryAgainstLists = RetryAgainstLists.TestCase
TestRetryAgainstLists.settings = settings(max_examples=40, stateful_step_count=40)
TestPriorityAgainstLists = PriorityAgainstLists.TestCase
TestPriorityAgainstLists.settings = settings(max_examples=20, stateful_step_count=40)
