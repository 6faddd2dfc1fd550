"""The queue with ordering keys: who gets what of which key, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.model.queue.contract import PENDING
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.queue.keyed import KINDS, Keyed
from tests.unit.model.things import NO_PROPERTIES, Taker, message


class Place(Keyed):
    """The queue, with two consumers."""

    def __init__(self, credit: tuple[int, ...] = (100, 100), **arguments: Any) -> None:
        super().__init__(credit, **arguments)

    def finish(self, taker: Taker, text: str, how: str = "settle") -> None:
        """Settle or give back the last delivery of a message."""
        position = [at for body, at, _ in taker.got if body == text.encode()][-1]
        taker.credit += 1
        getattr(self.queue, how)(position)
        self.queue.drain()

    def bodies(self) -> list[list[bytes]]:
        return [taker.bodies for taker in self.takers]


@KINDS
def test_one_consumer_gets_a_key_and_others_get_other_keys(kind: str) -> None:
    place = Place(queue_type=kind).consume()
    place.publish("a1", "b1", "a2", "b2", "a3")
    assert place.bodies() == [[b"a1", b"a2", b"a3"], [b"b1", b"b2"]]


def test_a_key_waits_for_its_holder_and_others_pass() -> None:
    place = Place((1, 100)).consume()
    place.publish("a1", "a2", "a3", "b1", "c1")
    assert place.bodies() == [[b"a1"], [b"b1", b"c1"]]
    assert (place.queue.ready_count(), place.queue.unacked) == (2, 3)
    place.finish(place.takers[0], "a1")
    assert sum(len(bodies) for bodies in place.bodies()) > 3
    assert place.bodies()[0][:1] == [b"a1"]


def test_a_backlog_is_dealt_by_key_when_consumers_come() -> None:
    place = Place((2, 2))
    place.publish("a1", "a2", "a3", "b1", "b2", "c1")
    place.consume()
    assert place.bodies() == [[b"a1", b"a2"], [b"b1", b"b2"]]
    assert place.queue.ready_count() == 2


@KINDS
def test_keys_go_to_others_when_a_consumer_goes_and_its_deliveries_come_back(kind: str) -> None:
    place = Place((100, 100), queue_type=kind).consume()
    first, second = place.takers
    place.publish("a1", "a2", "b1", "a3")
    assert first.bodies == [b"a1", b"a2", b"a3"]
    place.queue.remove_consumer(first)
    place.publish("a4")
    assert second.bodies == [b"b1"]
    for _, position, _ in first.got:
        place.queue.requeue(position)
    place.queue.drain()
    assert second.bodies == [b"b1", b"a1", b"a2", b"a3", b"a4"]
    assert [again for _, _, again in second.got] == [False, True, True, True, False]


@KINDS
def test_a_requeued_message_goes_before_what_follows_it(kind: str) -> None:
    place = Place((3,), queue_type=kind).consume()
    (taker,) = place.takers
    place.publish("a1", "a2", "a3", "a4")
    place.finish(taker, "a2", "requeue")
    assert taker.bodies == [b"a1", b"a2", b"a3"]
    place.finish(taker, "a3", "requeue")
    place.publish("b1")
    assert taker.bodies[3:] == [b"b1"]
    place.finish(taker, "a1")
    assert taker.bodies[4:] == [b"a2", b"a3"]


def test_a_refused_message_lets_its_key_go_on() -> None:
    place = Place((1,)).consume()
    place.publish("a1", "a2")
    place.finish(place.takers[0], "a1", "reject")
    assert place.takers[0].bodies == [b"a1", b"a2"]


def test_messages_without_a_key_go_to_anybody() -> None:
    place = Place(group_key="customer").consume()
    for text in ("1", "2", "3", "4"):
        place.queue.publish(message(text.encode()))
    assert sum(len(bodies) for bodies in place.bodies()) == 4
    place.queue.requeue(place.takers[0].got[0][1])
    place.queue.drain()
    assert sum(len(bodies) for bodies in place.bodies()) == 5


def test_a_get_holds_its_key_until_it_is_settled() -> None:
    place = Place()
    place.publish("a1", "a2", "b1")
    found = place.queue.get()
    assert found[0].body == b"a1"
    assert place.queue.get()[0].body == b"b1"
    assert place.queue.get() is None
    assert place.queue.ready_count() == 1
    place.queue.settle(found[1])
    assert place.queue.get()[0].body == b"a2"


def test_the_number_of_messages_passed_over_is_limited() -> None:
    place = Place((1, 100))
    place.queue.order.waiting_max = 5
    place.consume()
    place.publish(*[f"a{number}" for number in range(9)], "b1")
    assert place.bodies() == [[b"a0"], []]
    place.finish(place.takers[0], "a0")
    assert any(b"b1" in bodies for bodies in place.bodies())


@pytest.mark.parametrize("limit", [{"max_length": 2}, {"max_length_bytes": 4}])
def test_a_limit_drops_the_oldest_whatever_its_key(limit: dict[str, int]) -> None:
    place = Place((1,), **limit).consume()
    place.publish("a1", "a2", "b1", "a3", "b2")
    assert place.queue.ready_count() == 2
    place.finish(place.takers[0], "a1")
    assert place.takers[0].bodies == [b"a1", b"a3"]


def test_messages_expire_while_they_wait_for_their_key() -> None:
    place = Place((1,), message_ttl=1_000).consume()
    place.publish("a1", "a2")
    place.clock.advance(2_000)
    place.queue.drain()
    assert place.queue.ready_count() == 0
    place.finish(place.takers[0], "a1")
    assert place.takers[0].bodies == [b"a1"]


@KINDS
def test_a_purge_drops_what_waits_and_leaves_what_is_out(kind: str) -> None:
    place = Place((1,), queue_type=kind).consume()
    place.publish("a1", "a2", "b1")
    assert place.queue.purge() == 2
    place.publish("a3")
    place.finish(place.takers[0], "a1")
    assert place.takers[0].bodies == [b"a1", b"a3"]


def test_consumers_that_do_not_acknowledge_are_refused() -> None:
    queue = Place().queue
    options: dict[str, Any] = {"exclusive": False, "prefetch": 0}
    with pytest.raises(Refusal, match="automatic acknowledgement is not possible for queue 'q'"):
        queue.check_consumer("c", {}, no_ack=True, **options)
    assert queue.check_consumer("c", {}, no_ack=False, **options) is False


def test_a_single_active_consumer_gets_everything_in_order() -> None:
    place = Place(single_active_consumer=True).consume()
    place.publish("a1", "b1", "a2")
    assert place.bodies() == [[b"a1", b"b1", b"a2"], []]


def test_a_persistent_message_in_a_durable_queue_waits_for_the_disk() -> None:
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    queue = host.declare_queue("q", durable=True, arguments={"x-group-key": "k"})
    lasting = type(NO_PROPERTIES)(b"\x10\0\2", delivery_mode=2)
    assert queue.publish(Message("", "q", lasting, b"")) == PENDING


def test_a_quorum_queue_counts_and_gives_up_and_its_key_goes_on() -> None:
    place = Place((1,), queue_type="quorum", delivery_limit=1).consume()
    (taker,) = place.takers
    place.publish("a1", "a2")
    place.finish(taker, "a1", "requeue")
    place.finish(taker, "a1", "requeue")
    assert taker.bodies == [b"a1", b"a1", b"a2"]
    found = place.host.queue("q").ready_count()
    assert (found, place.queue.unacked) == (0, 1)


def test_a_quorum_queue_without_keys_takes_consumers_that_do_not_acknowledge() -> None:
    queue = VHost("/", MemoryStore(Gauge()), EDITOR).declare_queue(
        "q", durable=True, arguments={"x-queue-type": "quorum"}
    )
    assert not queue.check_consumer("c", {}, no_ack=True, exclusive=True, prefetch=0)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["publish", "settle", "requeue", "reject"]), st.integers(0, 9)),
    max_size=80,
)


@given(ACTIONS, st.integers(1, 3), st.integers(1, 4), st.sampled_from(["classic", "quorum"]))
def test_whatever_happens_every_key_keeps_its_order(
    actions: list[tuple[str, int]], consumers: int, credit: int, kind: str
) -> None:
    given = {"queue_type": kind, **({"delivery_limit": -1} if kind == "quorum" else {})}
    place = Place((credit,) * consumers, **given).consume()
    out: dict[int, tuple[Taker, str, int]] = {}
    seen = [0] * consumers
    numbers: dict[str, int] = {}
    done: dict[str, set[int]] = {}

    def look() -> None:
        for which, taker in enumerate(place.takers):
            for body, position, _ in taker.got[seen[which] :]:
                key, number = chr(body[0]), int(body[1:])
                holders = {id(t) for t, k, _ in out.values() if k == key}
                assert holders <= {id(taker)}, "one consumer at a time"
                before = set(range(number)) - done.setdefault(key, set())
                assert before <= {n for _, k, n in out.values() if k == key}, "in order"
                out[position] = (taker, key, number)
            seen[which] = len(taker.got)
        assert place.queue.unacked == len(out)

    def finish(how: str, which: int) -> None:
        position = sorted(out)[which % len(out)]
        taker, key, number = out.pop(position)
        taker.credit += 1
        if how != "requeue":
            done.setdefault(key, set()).add(number)
        getattr(place.queue, how)(position)
        place.queue.drain()

    for action, which in actions:
        if action == "publish":
            key = "abc"[which % 3]
            place.publish(f"{key}{numbers.get(key, 0)}")
            numbers[key] = numbers.get(key, 0) + 1
        elif out:
            finish(action, which)
        look()
    while out:
        finish("settle", 0)
        look()
    assert place.queue.ready_count() == 0
    assert {key: len(gone) for key, gone in done.items()} == numbers
