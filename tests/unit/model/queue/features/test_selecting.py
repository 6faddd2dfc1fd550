"""Selective consumers against a model: on every kind of queue whose messages go to one consumer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.front.convert import EDITOR, composed
from harebell.model.filter.condition import compile_selector
from harebell.model.filter.subject import Subject
from harebell.model.limits import SELECTOR_RETURNED
from harebell.model.queue.features.key_waits import KeyWaits
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker

WANTED: dict[str, Any] = {
    "": lambda number: True,
    "c = 0": lambda number: number % 4 == 0,
    "c IN (0, 1)": lambda number: number % 4 < 2,
    "JMSPriority >= 0 AND c <> 0": lambda number: number % 4 != 0,
    "c > 90": lambda number: False,
    **{f"c = {value}": lambda number, value=value: number % 4 == value for value in (1, 2, 3)},
    "c IN (1, 3) AND JMSPriority = 1": lambda number: number % 4 in (1, 3) and number * 7 % 3 == 1,
}


def declared(**arguments: Any) -> Any:
    clock = Clock()
    host = VHost("/", MemoryStore(Gauge()), EDITOR, clock)
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    durable = "x-queue-type" in given
    return host.declare_queue("q", durable=durable, arguments=given)


def taker(of: Any, text: str, credit: int, **options: Any) -> Taker:
    made = Taker(of, text, credit, **options)
    made.selector = compile_selector(text) if text else None
    return made


def numbered(number: int, **headers: Any) -> Any:
    properties = {"headers": {"c": number % 4, **headers}, "priority": number * 7 % 3}
    return composed("", f"k{number % 5}", b"%d" % number, properties)


class SelectiveAgainstModel(RuleBasedStateMachine):
    """Bodies are numbers in the order of publishing."""

    arguments: dict[str, Any] = {}
    keyed = False

    def __init__(self) -> None:
        super().__init__()
        self.queue = declared(**self.arguments)
        self.takers: list[Taker] = []
        self.ready: set[int] = set()
        # By position, as the consumer got them: the message and who has it.
        self.out: dict[int, tuple[int, Taker | None]] = {}
        self.seen: dict[Taker, int] = {}
        self.next = 0

    def _look(self) -> None:
        """Take over what was delivered, and compare it with what may be."""
        for each in self.takers:
            for body, position, _ in each.got[self.seen[each] :]:
                number = int(body)
                assert number in self.ready, "it was delivered once, and to one consumer"
                assert WANTED[each.tag](number)
                self.ready.discard(number)
                self.out[position] = (number, each)
            self.seen[each] = len(each.got)

    def _waits(self, number: int) -> bool:
        """True if a message waits for one of its key."""
        keys = {each % 5 for each, _ in self.out.values()}
        return self.keyed and number % 5 in keys

    @rule()
    def publish(self) -> None:
        self.ready.add(self.next)
        self.next += 1
        self.queue.publish(numbered(self.next - 1))
        self._look()

    @rule(text=st.sampled_from(sorted(WANTED)), credit=st.integers(0, 3))
    def consume(self, text: str, credit: int) -> None:
        made = taker(self.queue, text, credit, prefetch=3)
        self.takers.append(made)
        self.seen[made] = 0
        self.queue.add_consumer(made)
        self._look()

    @precondition(lambda self: self.takers)
    @rule(data=st.data(), credit=st.integers(1, 3))
    def grant(self, data: Any, credit: int) -> None:
        one = data.draw(st.sampled_from(self.takers))
        one.credit += credit
        self.queue.serve(one)
        self._look()

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def settle(self, data: Any) -> None:
        position = data.draw(st.sampled_from(sorted(self.out)))
        del self.out[position]
        self.queue.settle(position)
        self.queue.drain()
        self._look()

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def requeue(self, data: Any) -> None:
        position = data.draw(st.sampled_from(sorted(self.out)))
        self.ready.add(self.out.pop(position)[0])
        self.queue.requeue_returned(position)
        self.queue.drain()
        self._look()

    @precondition(lambda self: self.takers)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        one = data.draw(st.sampled_from(self.takers))
        self.takers.remove(one)
        self.queue.remove_consumer(one)
        self.queue.drain()
        self._look()

    @rule()
    def get(self) -> None:
        if self.arguments.get("queue_type") == "quorum" and self.arguments.get("single"):
            return
        one = self.queue.get()
        if one is None:
            assert not any(not self._waits(number) for number in self.ready)
            return
        message, position, _ = one
        self.ready.remove(int(message.body))
        self.out[position] = (int(message.body), None)

    @rule()
    def purge(self) -> None:
        assert self.queue.purge() == len(self.ready)
        self.ready.clear()

    @invariant()
    def nothing_that_is_wanted_waits(self) -> None:
        for each in self._served():
            if each.credit > 0:
                wanted = {number for number in self.ready if WANTED[each.tag](number)}
                assert all(self._waits(number) for number in wanted), (each.tag, wanted)

    def _served(self) -> list[Taker]:
        return self.takers

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.ready_count() == len(self.ready)
        assert self.queue.unacked == len(self.out)
        if self.takers and all(each.tag for each in self.takers) and not self.keyed:
            nobody = {
                number
                for number in self.ready
                if not any(WANTED[each.tag](number) for each in self.takers)
            }
            assert self.queue.unselected()[0] >= (len(nobody) if self._all_looked() else 0)
            if not any(WANTED[each.tag](number) for each in self.takers for number in self.ready):
                assert self.queue.unselected()[0] <= len(self.ready)

    def _all_looked(self) -> bool:
        return not any(self.queue.looks_for(each) for each in self.takers)


class OfPriority(SelectiveAgainstModel):
    arguments = {"max_priority": 2}


class OfQuorum(SelectiveAgainstModel):
    arguments = {"queue_type": "quorum", "delivery_limit": -1}


class OfKeys(SelectiveAgainstModel):
    arguments = {"group_key": "routing_key"}
    keyed = True


class OfIndex(SelectiveAgainstModel):
    def __init__(self) -> None:
        super().__init__()
        for text in ("c = 0", "c = 1", "c = 2", "c = 3", "c IN (0, 1)"):
            self.consume(text, 1)


class OfIndexWithPriority(OfIndex):
    """Positions of priorities have no index."""

    arguments = {"max_priority": 2}


class OfSingleActive(SelectiveAgainstModel):
    arguments = {"single_active_consumer": True}

    def _served(self) -> list[Taker]:
        # The one that came first.
        return self.takers[:1]


STEPS = settings(max_examples=60, stateful_step_count=40)
TestClassic = SelectiveAgainstModel.TestCase
TestClassic.settings = STEPS
TestPriority = OfPriority.TestCase
TestPriority.settings = STEPS
TestQuorum = OfQuorum.TestCase
TestQuorum.settings = STEPS
TestKeys = OfKeys.TestCase
TestKeys.settings = STEPS
TestIndex = OfIndex.TestCase
TestIndex.settings = STEPS
TestIndexWithPriority = OfIndexWithPriority.TestCase
TestIndexWithPriority.settings = STEPS
TestSingleActive = OfSingleActive.TestCase
TestSingleActive.settings = STEPS


def test_a_selective_consumer_gets_what_it_wants_in_order_and_the_rest_stays() -> None:
    q = declared()
    for number in range(1000):
        q.publish(numbered(number))
    one = taker(q, "c = 0", 10**6)
    q.add_consumer(one)
    assert one.bodies == [b"%d" % number for number in range(0, 1000, 4)]
    assert q.ready_count() == 750
    assert q.unselected()[0] == 750
    q.publish(numbered(1000))
    q.publish(numbered(1001))
    assert one.bodies[-1] == b"1000"


@pytest.mark.parametrize("arguments", [{}, {"max_priority": 3}, {"queue_type": "quorum"}])
def test_a_message_is_looked_at_once_for_equal_selectors_and_again_when_requeued(
    arguments: dict[str, Any],
) -> None:
    q = declared(**arguments)
    first, second = taker(q, "c = 0 AND message.offset >= 0", 1), taker(q, "", 0)
    second.selector = first.selector
    for number in range(40):
        q.publish(numbered(number))
    q.add_consumer(first)
    q.add_consumer(second)
    assert len(first.got) == 1
    assert second.group is first.group
    first.credit = second.credit = 10**6
    q.serve(first)
    numbers = sorted(int(body) for body in [*first.bodies, *second.bodies])
    assert numbers == list(range(0, 40, 4))
    body, position, _ = first.got[0]
    q.requeue_returned(position)
    q.drain()
    again = [got for got in [*first.got, *second.got] if got[0] == body]
    assert [redelivered for _, _, redelivered in again] == [False, True]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the selectors that ask for the offset of a message have looked at."""
    seen: list[int] = []
    real = Subject.is_now

    def is_now(subject: Subject, message: Any, offset: int, *args: Any, **more: Any) -> None:
        seen.append(offset)
        real(subject, message, offset, *args, **more)

    monkeypatch.setattr(Subject, "is_now", is_now)
    return seen


def test_selectors_that_compare_one_header_look_only_at_what_they_may_want(
    looks: list[int],
) -> None:
    q = declared()
    takers = [taker(q, f"c = {value} AND message.offset >= 0", 10**6) for value in range(50)]
    for each in takers:
        q.add_consumer(each)
    q.publish(composed("", "", b"none", {"headers": {"c": -1}}))
    looks.clear()
    for number in range(1000):
        q.publish(composed("", "", b"%d" % number, {"headers": {"c": number % 100}}))
    assert [len(each.got) for each in takers] == [10] * 50
    assert q.unselected()[0] == 501
    # Without an index they were 50 looks for each message.
    assert len(looks) < 2 * 1000
    body, position, _ = takers[7].got[0]
    q.requeue_returned(position)
    q.drain()
    assert takers[7].got[-1] == (body, position, True)
    assert len(looks) < 2 * 1000


def test_what_an_index_keeps_for_consumers_without_credit_is_bounded() -> None:
    q = declared()
    takers = [taker(q, f"c = {value}", 1) for value in range(5)]
    for each in takers:
        q.add_consumer(each)
    q.publish(composed("", "", b"none", {"headers": {"c": -1}}))
    for number in range(3 * SELECTOR_RETURNED):
        q.publish(composed("", "", b"%d" % number, {"headers": {"c": number % 2}}))
    assert takers[0].group.index is None
    assert takers[2].group.index is not None
    takers[0].credit = takers[1].credit = 10**9
    for _ in range(3000):
        q.serve(takers[0])
        q.serve(takers[1])
        if not q.ready_count() > 1:
            break
    for value in (0, 1):
        wanted = [b"%d" % number for number in range(value, 3 * SELECTOR_RETURNED, 2)]
        assert takers[value].bodies == wanted


def test_numbers_texts_and_truth_values_are_found_by_an_index_as_they_compare() -> None:
    q = declared()
    texts = ("c = 1", "c = '1'", "c = TRUE", "c = 2.0", "c IN ('\u00e9', 3)", "c = NULL")
    takers = [taker(q, text, 100) for text in texts]
    for each in takers:
        q.add_consumer(each)
    values: list[Any] = [-1, 1, 1.0, "1", True, False, 2, "\u00e9", 3.0, None, [1], 2**62]
    for number, value in enumerate(values):
        q.publish(composed("", "", b"%d" % number, {"headers": {"c": value}}))
    assert takers[0].group.index is not None
    got = [[int(body) for body in each.bodies] for each in takers]
    assert got == [[1, 2], [3], [4], [6], [7, 8], []]


def test_an_expired_message_is_removed_when_an_index_comes_to_it() -> None:
    q = declared()
    for each in range(5):
        q.add_consumer(taker(q, f"c = {each}", 1))
    q.publish(composed("", "", b"none", {"headers": {"c": -1}}))
    q.clock.steady = 10
    one = composed("", "", b"old", {"headers": {"c": 77}})
    one.due = 5
    q.publish(one)
    q.drain()
    assert q.ready_count() == 1


def test_a_higher_priority_blocks_a_lower_one_only_with_what_it_wants() -> None:
    q = declared()
    high, low = taker(q, "c = 0", 2, priority=5), taker(q, "", 10**6)
    q.add_consumer(high)
    q.add_consumer(low)
    for number in range(12):
        q.publish(numbered(number))
    assert high.bodies == [b"0", b"4"]
    assert low.bodies == [b"%d" % number for number in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11)]


def test_equal_consumers_share_fairly_with_one_that_wants_everything() -> None:
    q = declared()
    takers = [taker(q, text, 10**6) for text in ("c = 0", "c = 0", "")]
    for each in takers:
        q.add_consumer(each)
    for number in range(0, 400, 4):
        q.publish(numbered(number))
    assert sum(len(each.got) for each in takers) == 100
    assert min(len(each.got) for each in takers) >= 33


def test_expired_messages_behind_unselected_ones_are_removed_as_a_group_passes() -> None:
    q = declared()
    for number in (1, 0, 0, 2):
        one = numbered(number)
        one.due = 5 if number == 0 else 0
        q.publish(one)
    q.clock.steady = 10
    wants = taker(q, "c = 0", 10)
    q.add_consumer(wants)
    assert wants.got == []
    assert q.ready_count() == 2


def test_messages_that_wait_for_one_key_are_not_looked_at_at_each_settlement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    real = KeyWaits.next

    def counted(waits: KeyWaits) -> int:
        tried.append(real(waits))
        return tried[-1]

    monkeypatch.setattr(KeyWaits, "next", counted)
    q = declared(group_key="routing_key")
    for number in range(2000):
        q.publish(composed("", "k", b"%d" % number, {"headers": {"c": 0}}))
    wants = taker(q, "c = 0", 10**6)
    q.add_consumer(wants)
    for number in range(1000):
        q.settle(wants.got[number][1])
        q.drain()
    assert wants.bodies == [b"%d" % number for number in range(1001)]
    assert len(tried) < 5 * 1000


def test_selective_consumers_of_ordering_keys_come_by_priority_then_before_others() -> None:
    q = declared(group_key="routing_key")
    low, equal, high = (
        taker(q, "c = 0", 10, priority=0),
        taker(q, "", 10**6, priority=1),
        taker(q, "c = 1", 1, priority=1),
    )
    for each in (low, equal, high):
        q.add_consumer(each)
    for number in range(4):
        q.publish(composed("", f"k{number}", b"%d" % number, {"headers": {"c": number % 4}}))
    assert (low.bodies, equal.bodies, high.bodies) == ([], [b"0", b"2", b"3"], [b"1"])


def test_an_expired_message_that_waited_for_its_key_is_not_delivered() -> None:
    q = declared(group_key="routing_key")
    for number, due in ((0, 0), (4, 5), (8, 0)):
        one = composed("", "k", b"%d" % number, {"headers": {"c": 0}})
        one.due = due
        q.publish(one)
    wants = taker(q, "c = 0", 10)
    q.add_consumer(wants)
    assert wants.bodies == [b"0"]
    q.clock.steady = 10
    q.settle(wants.got[0][1])
    q.drain()
    assert wants.bodies == [b"0", b"8"]
    assert q.ready_count() == 0


def test_a_message_requeued_while_its_key_is_held_goes_to_who_wants_it_once_it_is_free() -> None:
    q = declared(group_key="routing_key")
    for number in (0, 4):
        q.publish(composed("", "k", b"%d" % number, {"headers": {"c": 0}}))
    plain, wants = taker(q, "", 2), taker(q, "c = 0", 10)
    q.add_consumer(plain)
    assert plain.bodies == [b"0", b"4"]
    q.add_consumer(wants)
    q.requeue_returned(plain.got[0][1])
    q.drain()
    assert wants.got == []
    q.settle(plain.got[1][1])
    q.drain()
    assert wants.bodies == [b"0"]


def test_a_requeued_message_that_a_consumer_does_not_want_does_not_block_its_key() -> None:
    q = declared(group_key="routing_key")
    for number in (0, 1, 2):
        q.publish(composed("", "k", b"%d" % number, {"headers": {"c": number}}))
    position = q.get()[1]
    q.requeue_returned(position)
    wants = taker(q, "c > 0", 10)
    q.add_consumer(wants)
    assert wants.bodies == [b"1"]
    q.settle(wants.got[0][1])
    q.drain()
    assert wants.bodies == [b"1", b"2"]
    assert q.get() is None
    q.settle(wants.got[1][1])
    assert q.get()[0].body == b"0"


def test_a_full_queue_delivers_what_arrives_before_it_drops() -> None:
    q = declared(max_length=2)
    wants = taker(q, "c = 0", 10)
    q.add_consumer(wants)
    for number in (1, 2, 0, 4):
        q.publish(numbered(number))
    assert wants.bodies == [b"0", b"4"]
    assert q.ready_count() == 2
    q.publish(numbered(3))
    assert q.ready_count() == 2


def test_a_no_local_consumer_beside_a_selective_one_loses_nothing() -> None:
    q = declared()
    mine = taker(q, "", 10, excluded=7)
    q.add_consumer(mine)
    own = numbered(1)
    own.origin = 7
    q.publish(own)
    assert mine.got == []
    wants = taker(q, "c = 1", 10)
    q.add_consumer(wants)
    assert wants.bodies == [b"1"]
    another = numbered(2)
    another.origin = 7
    q.publish(another)
    assert mine.got == []
    q.remove_consumer(wants)
    q.drain()
    assert q.selecting is None
    q.publish(numbered(3))
    assert mine.bodies == [b"3"]
    assert q.get()[0].body == b"2"


def test_messages_taken_out_of_order_are_not_remembered_when_they_are_settled() -> None:
    q = declared()
    q.publish(numbered(1))
    wants = taker(q, "c = 0", 10**6)
    q.add_consumer(wants)
    for number in range(0, 4000, 4):
        q.publish(numbered(number))
        q.settle(wants.got[-1][1])
    assert q.ready_count() == 1
    assert q.unacked == 0
    assert q.get()[0].body == b"1"
    assert q.get() is None
