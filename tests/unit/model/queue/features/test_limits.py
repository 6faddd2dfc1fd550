"""How much may wait in a queue, and what happens to what is too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.queue.contract import ACCEPTED, PENDING, REJECTED
from harebell.model.queue.factory import classic_queue, quorum_queue
from harebell.model.queue.features.limits import Limits, four_fifths, limits_of
from harebell.model.queue.queue import MessageQueue
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker, message, priority_queue, queue, rest

REJECT = {"overflow": "reject-publish"}
LARGEST = 2**63 - 1


def quorum(log: PreparedLog | None = None) -> MessageQueue:
    commit = MemoryStore(Gauge()).commit
    return quorum_queue("q", "/", log or PreparedLog(), commit, durable=True)


class Letters:
    """Notes what was dropped."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, str]] = []

    def room(self, *, in_turns: bool) -> int:
        return 10**6

    def send_later(self, letter: Any, reason: str) -> None:
        self.got.append((letter.body, reason))


def fill(queue: Any, *bodies: bytes) -> list[int]:
    return [queue.publish(message(body)) & REJECTED for body in bodies]


# --- limits ---------------------------------------------------------------------------------------


def test_without_a_limit_there_is_nothing_to_look_at() -> None:
    assert limits_of({}, quorum=False) is None
    assert limits_of(REJECT, quorum=False) is None


@pytest.mark.parametrize(
    ("settings", "quorum", "drops", "asks"),
    [
        ({"max-length": 1}, False, True, False),
        ({"max-length-bytes": 1, "overflow": "drop-head"}, False, True, False),
        ({"max-length": 0} | REJECT, False, False, False),
        ({"max-length": 0, "overflow": "reject-publish-dlx"}, False, False, True),
        ({"max-length": 0, "overflow": "reject-publish-dlx"}, True, True, False),
    ],
)
def test_the_overflow_setting_says_what_goes(
    settings: dict[str, Any], quorum: bool, drops: bool, asks: bool
) -> None:
    limits = limits_of(settings, quorum=quorum)
    assert limits is not None
    assert (limits.drops, limits.letters) == (drops, asks and not drops)


@pytest.mark.parametrize(("max_length", "share"), [(0, 0), (1, 0), (2, 1), (5, 4), (9, 7), (10, 8)])
def test_four_fifths_are_rounded_down(max_length: int, share: int) -> None:
    assert four_fifths(max_length) == share


@pytest.mark.parametrize("max_length", [0, 1, LARGEST])
def test_limits_go_as_far_as_numbers_do(max_length: int) -> None:
    limits = Limits(max_length, max_length, "reject-publish")
    limits.byte_count = max_length
    assert limits.full(max_length, 0)
    assert not limits.over(max_length)
    assert four_fifths(LARGEST) == LARGEST * 4 // 5


# --- dropping the head ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [queue, quorum])
def test_the_oldest_ready_messages_go(make: Callable[[], Any]) -> None:
    full, letters = make(), Letters()
    full.configure({"max-length": 2})
    full.dead_letters = letters
    assert fill(full, b"1", b"2", b"3", b"4") == [0, 0, 0, 0]
    assert letters.got == [(b"1", "maxlen"), (b"2", "maxlen")]
    assert rest(full) == [b"3", b"4"]


def test_of_a_priority_queue_the_head_goes_which_is_of_the_highest_priority() -> None:
    full: Any = priority_queue()
    full.configure({"max-length": 3})
    for body, level in ((b"1", 1), (b"5", 5), (b"3", 3), (b"1b", 1), (b"2", 2), (b"4", 4)):
        full.publish(Message("", "q", Properties(b"\0\0", priority=level), body))
    assert rest(full) == [b"2", b"1", b"1b"]


@pytest.mark.parametrize("make", [queue, priority_queue, quorum])
def test_octets_of_bodies_count_and_a_message_that_is_too_large_goes_with_the_others(
    make: Callable[[], Any],
) -> None:
    full = make()
    full.configure({"max-length-bytes": 10})
    fill(full, b"aaaaa", b"bbbbb", b"c")
    assert full.ready_count() == 2
    fill(full, b"d" * 11)
    assert full.ready_count() == 0
    fill(full, b"e", b"", b"f" * 9)
    assert rest(full) == [b"e", b"", b"f" * 9]


@pytest.mark.parametrize("make", [queue, priority_queue, quorum])
def test_messages_taken_at_once_by_a_consumer_never_exceed_the_limit(
    make: Callable[[], Any],
) -> None:
    full = make()
    full.configure({"max-length": 0, "max-length-bytes": 0})
    taker = Taker(full, credit=2)
    full.add_consumer(taker)
    fill(full, b"1", b"2", b"3")
    assert taker.bodies == [b"1", b"2"]
    assert (full.ready_count(), full.unacked) == (0, 2)


def test_unacknowledged_messages_do_not_count_until_they_come_back() -> None:
    full: Any = queue()
    full.configure({"max-length": 2, "max-length-bytes": 2})
    full.dead_letters = letters = Letters()
    fill(full, b"1", b"2")
    positions = [full.get()[1] for _ in range(2)]
    fill(full, b"3", b"4")
    assert letters.got == []
    for position in positions:
        full.requeue(position)
    full.drain()
    assert letters.got == [(b"1", "maxlen"), (b"2", "maxlen")]
    assert rest(full) == [b"3", b"4"]


def test_a_message_requeued_in_a_quorum_queue_is_offered_before_the_limit_acts() -> None:
    full = quorum()
    full.configure({"max-length": 1})
    fill(full, b"1")
    found = full.get()
    assert found is not None
    fill(full, b"2")
    taker = Taker(full, credit=0)
    full.add_consumer(taker)
    taker.credit = 1
    full.requeue(found[1])
    full.drain()
    assert taker.bodies == [b"1"]
    assert rest(full) == [b"2"]


# --- refusing what is new -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [queue, priority_queue])
def test_a_classic_queue_refuses_what_would_be_too_much_also_when_a_consumer_is_free(
    make: Callable[[], Any],
) -> None:
    full = make()
    full.configure({"max-length": 2, "max-length-bytes": 5} | REJECT)
    assert fill(full, b"aa", b"bbbb", b"bbb", b"") == [0, REJECTED, 0, REJECTED]
    assert rest(full) == [b"aa", b"bbb"]
    assert full.counters.publish == 2
    full.configure({"max-length": 0} | REJECT)
    taker = Taker(full)
    full.add_consumer(taker)
    assert fill(full, b"x") == [REJECTED]
    assert taker.bodies == []


def test_a_quorum_queue_takes_one_too_many_and_refuses_until_a_fifth_is_free() -> None:
    full = quorum()
    full.configure({"max-length": 5} | REJECT)
    refused = fill(full, *[b"%d" % number for number in range(8)])
    assert refused == [0] * 6 + [REJECTED] * 2
    assert full.get() is not None
    assert fill(full, b"a") == [REJECTED]
    assert full.get() is not None
    assert fill(full, b"b", b"c", b"d") == [0, 0, REJECTED]


def test_a_quorum_queue_does_not_refuse_what_a_consumer_takes_at_once() -> None:
    full = quorum()
    full.configure({"max-length": 0} | REJECT)
    taker = Taker(full, credit=2)
    full.add_consumer(taker)
    assert fill(full, b"1", b"2", b"3", b"4") == [0, 0, 0, REJECTED]
    assert full.purge() == 1
    assert fill(full, b"5") == [0]


def test_a_refused_message_is_a_dead_letter_if_the_queue_says_so() -> None:
    full: Any = queue()
    full.configure({"max-length": 1, "overflow": "reject-publish-dlx"})
    full.dead_letters = letters = Letters()
    assert fill(full, b"1", b"2") == [0, REJECTED]
    assert letters.got == [(b"2", "maxlen")]
    full.dead_letters = None
    assert fill(full, b"3") == [REJECTED]


def test_messages_that_fit_have_to_reach_the_disk_as_ever() -> None:
    full = quorum()
    full.configure({"max-length": 1})
    assert full.publish(message()) == PENDING
    plain = queue()
    plain.configure({"max-length": 1})
    assert plain.publish(message()) == ACCEPTED


# --- limits that come and go ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [queue, priority_queue, quorum])
def test_a_new_limit_counts_what_is_there_and_trims_it(make: Callable[[], Any]) -> None:
    full = make()
    fill(full, b"aa", b"bb", b"cc", b"dd")
    found = full.get()
    assert found is not None
    full.configure({"max-length-bytes": 5})
    assert full.ready_count() == 2
    full.configure({"max-length-bytes": 4, "max-length": 9})
    assert full.ready_count() == 2
    full.requeue(found[1])
    full.drain()
    assert full.ready_count() == 2
    full.configure({})
    fill(full, b"e" * 100)
    assert full.ready_count() == 3


def test_messages_that_cannot_be_read_do_not_keep_a_queue_full_for_ever() -> None:
    log = PreparedLog()
    full = classic_queue("q", "/", log, durable=True)
    full.configure({"max-length-bytes": 4} | REJECT)
    fill(full, b"aa", b"bb")
    log.damaged.add(0)
    assert rest(full) == [b"bb"]
    assert fill(full, b"cccc") == [0]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 2}, {"x-queue-type": "quorum"}])
def test_an_expired_message_makes_room(arguments: dict[str, Any]) -> None:
    clock = Clock()
    host = VHost("/", MemoryStore(Gauge()), EDITOR, clock)
    given = {"x-message-ttl": 1_000, "x-max-length-bytes": 4, **REJECT, **arguments}
    full = host.declare_queue("q", durable=True, arguments=given)
    fill(full, b"aa", b"bb", b"c")
    clock.steady += 2_000
    full.drain()
    assert full.get() is None
    assert fill(full, b"dd", b"ee") == [0, 0]
    assert rest(full) == [b"dd", b"ee"]


def test_own_messages_put_aside_for_a_consumer_count_again_when_it_goes() -> None:
    full: Any = queue()
    full.configure({"max-length-bytes": 12} | REJECT)
    picky = Taker(full, "picky", excluded=7)
    full.add_consumer(picky)
    own = message(b"aaaa")
    own.origin = 7
    for _ in range(3):
        assert full.publish(own) == 0
    assert picky.bodies == []
    picky.credit = 0
    assert fill(full, b"x" * 12, b"y") == [0, REJECTED]
    other = Taker(full, "other", credit=1)
    full.add_consumer(other)
    assert other.bodies == [b"aaaa"]
    full.remove_consumer(other)
    full.remove_consumer(picky)
    assert fill(full, b"y") == [REJECTED]
    assert rest(full) == [b"aaaa", b"aaaa", b"x" * 12]
    assert fill(full, b"z" * 12, b"y") == [0, REJECTED]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 6)),
        st.tuples(st.sampled_from(["get", "requeue", "settle", "purge"]), st.integers(0, 3)),
        st.tuples(st.just("limit"), st.integers(0, 12)),
    ),
    max_size=60,
)


@given(STEPS, st.booleans(), st.booleans())
def test_whatever_happens_exactly_what_fits_is_left(
    steps: list[tuple[str, int]], octets: bool, reject: bool
) -> None:
    full: Any = queue()
    key = "max-length-bytes" if octets else "max-length"
    ready: list[tuple[int, bytes]] = []
    out: list[tuple[int, bytes, int]] = []
    max_length = 10
    full.configure({key: max_length} | (REJECT if reject else {}))

    def load(more: int = 0) -> int:
        return sum(len(body) for _, body in ready) + more if octets else len(ready) + (more > -1)

    def excess() -> bool:
        used = sum(len(body) for _, body in ready) if octets else len(ready)
        return used > max_length

    for number, (step, argument) in enumerate(steps):
        if step == "publish":
            body = bytes((number,)) * argument
            refused = reject and load(argument) > max_length
            assert full.publish(message(body)) == (REJECTED if refused else 0)
            if not refused:
                ready.append((number, body))
        elif step == "get":
            found = full.get()
            assert (found is None) == (not ready)
            if found is not None:
                at, body = ready.pop(0)
                assert found[0].body == body
                out.append((at, body, found[1]))
        elif step == "purge":
            assert full.purge() == len(ready)
            ready.clear()
        elif step == "limit":
            max_length = argument
            full.configure({key: max_length} | (REJECT if reject else {}))
        elif out:
            at, body, position = out.pop(argument % len(out))
            getattr(full, step)(position)
            if step == "requeue":
                ready.append((at, body))
                ready.sort()
                full.drain()
        while not reject and excess():
            ready.pop(0)
        assert full.ready_count() == len(ready)
