"""The queue of last values: what replaces what, and what never comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.clock import Clock
from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.front.convert import EDITOR
from harebell.model.filter.condition import compile_selector
from harebell.model.queue.contract import ACCEPTED, REJECTED
from harebell.model.queue.order.last_value import LastValueOrder
from harebell.model.remark import Remark
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryLog, MemoryStore
from tests.unit.model.things import Taker, message, rest

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


def last_values(kind: str = "classic", **arguments: Any) -> Any:
    """A queue whose key is the routing key."""
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    host = VHost("/", MemoryStore(Gauge()), EDITOR, Clock())
    return host.declare_queue(
        "q",
        durable=kind == "quorum",
        arguments={"x-queue-type": kind, "x-last-value-key": "routing_key", **given},
    )


def publish(queue: Any, *texts: str) -> list[int]:
    """Publish messages whose key is their first letter."""
    return [queue.publish(message(text.encode(), text[:1])) for text in texts]


def headed(headers: dict[str, Any], body: bytes = b"") -> Message:
    """A message with headers, encoded as a publisher does."""
    return EDITOR.composed("", "k", body, {"headers": headers})


def browsed(queue: Any) -> list[bytes]:
    """The bodies of what is ready, in order."""
    taker = Taker(queue)
    queue.add_browser(taker)
    queue.remove_consumer(taker)
    return taker.bodies


@KINDS
def test_the_newest_of_a_key_stays_at_its_own_place(kind: str) -> None:
    queue = last_values(kind)
    publish(queue, "a1", "b1", "a2", "a3", "c1", "c2")
    assert queue.ready_count() == 3
    assert browsed(queue) == [b"b1", b"a3", b"c2"]
    assert rest(queue) == [b"b1", b"a3", b"c2"]
    assert queue.values.replaced == 3


def test_a_browser_sees_each_new_value_once() -> None:
    queue = last_values()
    publish(queue, "a1", "b1", "a2")
    taker = Taker(queue)
    queue.add_browser(taker)
    publish(queue, "b2", "a3", "d1", "b3")
    assert taker.bodies == [b"b1", b"a2", b"b2", b"a3", b"d1", b"b3"]
    assert browsed(queue) == [b"a3", b"d1", b"b3"]


@KINDS
@pytest.mark.parametrize("end", ["requeue", "reject", "settle"])
def test_a_delivered_value_that_was_replaced_is_never_ready_again(kind: str, end: str) -> None:
    queue = last_values(kind)
    publish(queue, "a1")
    taken = queue.get()
    publish(queue, "a2")
    assert rest(queue) == [b"a2"]
    getattr(queue, end)(taken[1])
    queue.drain()
    assert (queue.ready_count(), queue.unacked) == (0, 0)
    assert rest(queue) == []


@KINDS
def test_a_delivered_value_that_is_the_newest_comes_back(kind: str) -> None:
    queue = last_values(kind)
    publish(queue, "a1", "b1")
    queue.requeue(queue.get()[1])
    assert rest(queue) == [b"a1", b"b1"]
    publish(queue, "a2")
    assert rest(queue) == [b"a2"]


def test_a_requeued_value_is_replaced_like_any_other() -> None:
    queue = last_values()
    publish(queue, "a1", "b1")
    queue.requeue(queue.get()[1])
    publish(queue, "a2")
    assert rest(queue) == [b"b1", b"a2"]


def test_a_value_that_passes_a_consumer_without_acknowledgement_replaces_too() -> None:
    queue = last_values()
    publish(queue, "a1")
    taken = queue.get()
    taker = Taker(queue, no_ack=True)
    queue.add_consumer(taker)
    publish(queue, "a2")
    queue.requeue(taken[1])
    queue.drain()
    assert taker.bodies == [b"a2"]
    assert queue.values.replaced == 1


def test_values_go_straight_to_a_consumer_and_still_replace() -> None:
    queue = last_values()
    taker = Taker(queue, credit=2)
    queue.add_consumer(taker)
    publish(queue, "a1", "a2", "a3", "a4")
    assert taker.bodies == [b"a1", b"a2"]
    for _, position, _ in taker.got:
        queue.requeue(position)
    taker.credit = 5
    queue.drain()
    assert taker.bodies == [b"a1", b"a2", b"a4"]


def test_selective_consumers_get_the_newest_that_they_want() -> None:
    queue = last_values(last_value_key="symbol")
    for number, symbol in enumerate("abacab"):
        queue.publish(
            headed({"symbol": symbol, "odd": number % 2}, b"%s%d" % (symbol.encode(), number))
        )
    first, second = Taker(queue, "first", 1), Taker(queue, "second", 5)
    for taker, text in ((first, "odd = 0"), (second, "odd = 1")):
        taker.selector = compile_selector(text)
        queue.add_consumer(taker)
    assert (first.bodies, second.bodies) == ([b"a4"], [b"c3", b"b5"])
    queue.publish(headed({"symbol": "a", "odd": 0}, b"a6"))
    queue.publish(headed({"symbol": "c", "odd": 0}, b"c7"))
    for taker in (first, second):
        taker.credit = 5
        for _, position, _ in list(taker.got):
            queue.requeue(position)
    queue.drain()
    # What was replaced while it was out is gone; b5 is the newest of its key.
    assert (first.bodies[1:], second.bodies[2:]) == ([b"a6", b"c7"], [b"b5"])
    assert (queue.ready_count(), queue.unacked) == (0, 3)


def test_messages_without_a_key_replace_nothing() -> None:
    queue = last_values(last_value_key="symbol")
    for number in range(3):
        queue.publish(headed({"other": 1}, b"%d" % number))
    queue.publish(headed({"symbol": None}, b"3"))
    assert rest(queue) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        ("x", "x", True),
        ("x", b"x", True),
        (1, 1, True),
        (1, "1", False),
        (1, True, False),
        (1.5, 1.5, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        ("y" * 1000, "y" * 1000, True),
        ("y" * 1000 + "a", "y" * 1000 + "b", False),
        ({"a": 1}, {"a": 1}, True),
    ],
)
def test_keys_of_every_type_are_compared_by_value(first: Any, second: Any, one: bool) -> None:
    queue = last_values(last_value_key="symbol")
    queue.publish(headed({"symbol": first}, b"1"))
    queue.publish(headed({"symbol": second}, b"2"))
    assert rest(queue) == ([b"2"] if one else [b"1", b"2"])


def test_a_property_is_the_key_where_there_is_no_header_of_its_name() -> None:
    queue = last_values(last_value_key="type")
    for properties in ({"type": "t"}, {"headers": {"type": "t"}, "type": "u"}, {"type": "u"}):
        queue.publish(EDITOR.composed("", "k", b"", properties))
    assert queue.ready_count() == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"qpid.last_value_queue_key": "symbol"},
        {"last-value-key": "symbol"},
        {"qpid.last_value_queue": 1},
        {"qpid.last_value_queue_no_browse": True},
        {"last-value": True},
    ],
)
def test_the_arguments_of_other_brokers_mean_the_same(arguments: dict[str, Any]) -> None:
    queue: Any = VHost("/", MemoryStore(Gauge()), EDITOR).declare_queue("q", arguments=arguments)
    headers = {"symbol": "x", "qpid.LVQ_key": "x", "_AMQ_LVQ_NAME": "x"}
    for body in (b"1", b"2"):
        queue.publish(headed(headers, body))
    assert rest(queue) == [b"2"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-last-value-key": ""}, "empty_name"),
        ({"x-last-value-key": 1}, "unacceptable_type"),
        ({"x-last-value-key": "k", "x-max-priority": 2}, "x-max-priority asks for another order"),
        ({"qpid.last_value_queue_key": "k", "x-group-key": "g"}, "x-group-key asks for another"),
        ({"x-last-value-key": "k", "x-queue-type": "stream"}, "of queue type rabbit_stream_queue"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, Any], text: str) -> None:
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    with pytest.raises(Refusal, match=text):
        host.declare_queue("q", durable=True, arguments=arguments)


def test_leases_are_refused() -> None:
    with pytest.raises(Refusal, match="it keeps last values"):
        last_values().check_lease()


@pytest.mark.parametrize("limit", [{"max_length": 2}, {"max_length_bytes": 4}])
def test_a_full_queue_takes_what_replaces_another(limit: dict[str, int]) -> None:
    queue = last_values(overflow="reject-publish", **limit)
    assert publish(queue, "a1", "b1", "a2", "c1", "b2") == [ACCEPTED] * 3 + [REJECTED, ACCEPTED]
    assert rest(queue) == [b"a2", b"b2"]
    assert publish(queue, "c1", "d1") == [ACCEPTED] * 2


@pytest.mark.parametrize("limit", [{"max_length": 2}, {"max_length_bytes": 4}])
def test_a_limit_drops_the_oldest_value(limit: dict[str, int]) -> None:
    queue = last_values(**limit)
    publish(queue, "a1", "b1", "a2", "c1", "c2", "c3")
    assert rest(queue) == [b"a2", b"c3"]
    publish(queue, "b1", "a1")
    assert rest(queue) == [b"b1", b"a1"]


@KINDS
def test_replaced_values_are_not_dead_letters(kind: str) -> None:
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    dead = host.declare_queue("dead")
    arguments = {
        "x-queue-type": kind,
        "x-last-value-key": "routing_key",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    queue: Any = host.declare_queue("q", durable=True, arguments=arguments)
    publish(queue, "a1", "a2")
    taken = queue.get()
    publish(queue, "a3")
    queue.reject(taken[1])
    assert (queue.values.replaced, dead.ready_count()) == (2, 0)
    queue.reject(queue.get()[1])
    assert dead.ready_count() == 1


def test_the_expiry_of_a_new_head_is_watched() -> None:
    clock = Clock()
    host = VHost("/", MemoryStore(Gauge()), EDITOR, clock)
    queue: Any = host.declare_queue("q", arguments={"x-last-value-key": "routing_key"})
    for key, due in (("a", 0), ("b", 500), ("a", 0)):
        sent = message(key.encode(), key)
        sent.due = clock.steady + due if due else 0
        queue.publish(sent)
    clock.advance(1_000)
    host.context.timers.run()
    assert queue.ready_count() == 1


def test_a_purge_forgets_ready_values_only() -> None:
    queue = last_values()
    publish(queue, "a1", "b1")
    taken = queue.get()
    assert queue.purge() == 1
    publish(queue, "b2", "a2")
    queue.requeue(taken[1])
    assert rest(queue) == [b"b2", b"a2"]


def test_rows_of_a_batch_replace_when_it_is_committed() -> None:
    queue = last_values()
    publish(queue, "a1", "b1")
    queue.begin_batch()
    for text in ("a2", "a3", "c1"):
        queue.stage(message(text.encode(), text[0]))
    publish(queue, "b2", "a4")
    assert browsed(queue) == [b"a1", b"b1"]
    queue.commit_batch()
    assert rest(queue) == [b"c1", b"b2", b"a4"]
    assert queue.values.replaced == 4


def test_rows_of_a_batch_that_is_rolled_back_replace_nothing() -> None:
    queue = last_values(max_length_bytes=100)
    publish(queue, "a1", "b1")
    queue.begin_batch()
    for text in ("a2", "c1"):
        queue.stage(message(text.encode(), text[0]))
    publish(queue, "b2")
    queue.roll_back_batch()
    assert rest(queue) == [b"a1", b"b2"]
    assert queue.limits.byte_count == 0


class SlowCommit(Commit):
    """A group commit that is on disk when the test says so."""

    def write(self) -> None:
        self.done = self.ticket
        self.ticket += 1


@dataclass
class Alone:
    """An order without a queue, over a log whose records stay visible."""

    commit: SlowCommit = field(default_factory=SlowCommit)
    log: MemoryLog = field(default_factory=lambda: MemoryLog(Gauge()))

    def __post_init__(self) -> None:
        self.order: Any = self.opened()

    def opened(self) -> Any:
        order: Any = LastValueOrder(self.log, True, "routing_key", self.commit)
        order.use_editor(EDITOR)
        return order

    def keep(self, *texts: str) -> None:
        for text in texts:
            self.order.keep(message(text.encode(), text[0]))

    def logged(self) -> list[bytes]:
        """What a restart would find."""
        found = []
        position = self.log.next(0)
        while position < self.log.end():
            one = self.log.read(position)
            found.append(b"" if one is None else one.body)
            position = self.log.next(position + 1)
        return found

    def taken(self) -> list[bytes]:
        found = []
        while (one := self.order.take()) is not None:
            found.append(one.body)
        return found


def test_an_older_record_stays_until_the_newer_one_is_on_disk() -> None:
    alone = Alone()
    alone.keep("a1")
    alone.commit.write()
    alone.keep("a2", "b1", "a3")
    assert alone.logged() == [b"a1", b"a2", b"b1", b"a3"]
    assert alone.order.count == 2
    assert alone.order.read(0) is None
    alone.order.settle_replaced()
    assert len(alone.logged()) == 4
    alone.commit.write()
    alone.order.settle_replaced()
    assert alone.logged() == [b"b1", b"a3"]
    assert alone.taken() == [b"b1", b"a3"]


def test_a_restart_replaces_what_a_crash_has_left() -> None:
    alone = Alone()
    alone.keep("a1", "b1", "a2", "c1", "b2")
    again = alone.opened()
    assert again.count == 3
    assert alone.logged() == [b"a2", b"c1", b"b2"]
    alone.order = again
    alone.keep("c2")
    assert alone.taken() == [b"a2", b"b2", b"c2"]


def test_an_alternate_exchange_gets_no_replaced_message_of_a_deleted_queue() -> None:
    store = MemoryStore(Gauge())
    # A commit that is never written: records of replaced messages stay.
    store.commit.done = 0
    host = VHost("/", store, EDITOR)
    rest_queue: Any = host.declare_queue("rest")
    host.bind("amq.fanout", rest_queue, "")
    arguments = {"x-last-value-key": "routing_key", "x-alternate-exchange": "amq.fanout"}
    queue: Any = host.declare_queue("q", durable=True, arguments=arguments)
    publish(queue, "a1", "a2", "b1")
    host.delete_queue("q")
    assert rest(rest_queue) == [b"a2", b"b1"]


def test_what_was_replaced_goes_with_its_successor_when_that_is_consumed_first() -> None:
    alone = Alone()
    alone.keep("a1")
    alone.order.take()
    out = alone.order.position
    alone.keep("a2", "a3")
    alone.order.take()
    alone.order.settle(alone.order.position)
    assert alone.logged() == []
    alone.order.restore(out, True)
    assert alone.order.count == 0
    alone.commit.write()
    alone.order.settle_replaced()
    assert alone.order.count == 0


def test_what_comes_back_changed_is_the_newest_of_its_key_until_another_one_is() -> None:
    alone = Alone()
    alone.keep("a1", "b1", "a2")
    changed = message(b"a2 changed", "a")
    assert alone.order.take().body == b"b1"
    assert alone.order.take().body == b"a2"
    out = alone.order.position
    assert not alone.order.keep_anew(out, message(b"c", "c")), "it would have another key"
    assert alone.order.keep_anew(out, changed)
    alone.order.settle(out)
    assert alone.logged() == [b"b1", b"a2 changed"]
    assert alone.opened().count == 2
    alone.keep("a3")
    alone.commit.write()
    alone.order.settle_replaced()
    assert alone.logged() == [b"b1", b"a3"]
    alone.order.take()
    out = alone.order.position
    alone.keep("a4")
    assert not alone.order.keep_anew(out, changed), "it was replaced"


def test_keys_are_forgotten_with_their_messages() -> None:
    alone = Alone()
    for number in range(50):
        alone.order.keep(message(b"", f"key {number}"))
        alone.order.take()
        alone.order.settle(alone.order.position)
    alone.keep("a1", "b1")
    alone.order.discard(alone.log.first())
    assert alone.order.key_count() == 1
    alone.order.purge()
    assert (alone.order.key_count(), alone.logged()) == (0, [])


@dataclass
class Reference:
    """What a queue of last values is, in few words.

    Attributes:
        ready: numbers of ready messages.
        out: those of delivered ones.
        old: those of delivered ones that were replaced.
        newest: by key, the number of its newest message that has not left.
    """

    ready: set[int] = field(default_factory=set)
    out: dict[int, int] = field(default_factory=dict)
    old: set[int] = field(default_factory=set)
    newest: dict[str, int] = field(default_factory=dict)

    def publish(self, key: str, number: int) -> None:
        before = self.newest.get(key)
        if before in self.ready:
            self.ready.discard(before)
        elif before in self.out:
            self.old.add(before)
        self.ready.add(number)
        self.newest[key] = number

    def end(self, number: int, *, back: bool) -> None:
        del self.out[number]
        if back and number not in self.old:
            self.ready.add(number)
        self.old.discard(number)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish"] * 3 + ["get", "get", "settle", "requeue", "change", "reject", "purge"]
        ),
        st.integers(0, 9),
    ),
    max_size=120,
)


@given(ACTIONS, st.sampled_from(["classic", "quorum"]))
def test_whatever_happens_only_the_newest_of_a_key_is_ready(
    actions: list[tuple[str, int]], kind: str
) -> None:
    queue = last_values(kind, **({"delivery_limit": -1} if kind == "quorum" else {}))
    reference = Reference()
    number = 0
    # What comes back changed is stored behind the others.
    ordered = sorted if any(action == "change" for action, _ in actions) else list
    for action, which in actions:
        if action == "publish":
            key = "abcd"[which % 4]
            publish(queue, f"{key}{number}")
            reference.publish(key, number)
            number += 1
        elif action == "get":
            taken = queue.get()
            assert (taken is None) == (not reference.ready)
            if taken is not None:
                first = int(taken[0].body[1:])
                assert first in reference.ready
                assert ordered is sorted or first == min(reference.ready), "in order"
                reference.ready.discard(first)
                reference.out[first] = taken[1]
        elif action == "purge":
            assert queue.purge() == len(reference.ready)
            reference.ready.clear()
        elif reference.out:
            one = sorted(reference.out)[which % len(reference.out)]
            if action == "change":
                queue.requeue_changed(reference.out[one], Remark({"x-n": number}), failed=False)
            else:
                getattr(queue, action)(reference.out[one])
            reference.end(one, back=action in ("requeue", "change"))
        assert queue.ready_count() == len(reference.ready)
        assert queue.unacked == len(reference.out)
    assert ordered(int(body[1:]) for body in browsed(queue)) == sorted(reference.ready)
    for position in reference.out.values():
        queue.requeue(position)
    queue.drain()
    left = reference.ready | (set(reference.out) - reference.old)
    assert ordered(int(body[1:]) for body in rest(queue)) == sorted(left)
