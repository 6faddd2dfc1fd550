"""Leases of queues with ordering keys: a group holds the keys of what it has claimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import Refusal
from harebell.model.limits import LEASE_CLAIM_RANGES, LEASE_KEYED_MESSAGES, LEASE_SINGLE_MESSAGES
from harebell.model.queue.features.lease import ClaimedMessages, LeasedRange
from tests.unit.model.queue.keyed import KINDS, Keyed
from tests.unit.model.things import NO_PROPERTIES, Message, Taker, message


class Place(Keyed):
    """The queue, and groups."""

    def claim(self, group: str = "g", messages: int = 100, octets: int = 0) -> ClaimedMessages:
        taken: ClaimedMessages = self.queue.claims().claim(messages, octets, group)
        return ClaimedMessages((), 0, 0) if taken is None else taken

    def bodies(self, taken: ClaimedMessages) -> list[str]:
        """What a claim has, in the order in which it is read."""
        log = self.queue.claims().logs()[0]
        found = []
        for run in sorted(taken.runs):
            position = log.next(run.first)
            while position < run.end:
                found.append(log.read(position).body.decode())
                position = log.next(position + 1)
        assert len(found) == taken.messages
        return found

    def has(self, group: str = "g", messages: int = 100, octets: int = 0) -> list[str]:
        """What a group claims now."""
        return self.bodies(self.claim(group, messages, octets))

    def commit(self, taken: ClaimedMessages) -> None:
        self.queue.claims().settle(taken.runs, taken.messages)
        self.queue.drain()

    def release(self, taken: ClaimedMessages) -> None:
        self.queue.claims().release(taken.runs, taken.messages)
        self.queue.drain()

    def settle(self, text: str, how: str = "settle", which: int = 0) -> None:
        """Settle or give back the last delivery of a message."""
        taker = self.takers[which]
        position = [at for body, at, _ in taker.got if body == text.encode()][-1]
        taker.credit += 1
        getattr(self.queue, how)(position)
        self.queue.drain()

    def delivered(self, which: int = 0) -> list[str]:
        return [body.decode() for body in self.takers[which].bodies]

    def counts(self) -> tuple[int, int, int]:
        return self.queue.ready_count(), self.queue.unacked, self.queue.leased


@KINDS
def test_a_claim_takes_what_is_free_and_later_ones_go_on_with_its_keys(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "b1", "a2", "b2", "a3")
    first = place.claim(messages=2)
    assert (place.bodies(first), first.runs) == (["a1", "b1"], (LeasedRange(0, 0, 2),))
    assert place.counts() == (3, 0, 2)
    second = place.claim(messages=2)
    assert place.bodies(second) == ["a2", "b2"]
    place.commit(first)
    assert place.counts() == (1, 0, 2)
    assert place.has() == ["a3"]
    place.commit(second)
    assert place.counts() == (0, 0, 1)


@KINDS
def test_another_group_gets_none_of_the_keys_until_they_are_committed(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "b1", "a2", "b2", "c1")
    first = place.claim("g", 2)
    assert place.has("h") == ["c1"]
    assert place.has("h") == []
    place.publish("a3", "d1")
    assert place.has("h") == ["d1"]
    place.commit(first)
    assert place.has("h", 1) == ["a2"]
    assert place.has("g") == ["b2"]
    assert place.has("h") == ["a3"]
    assert place.counts() == (0, 0, 5)


@KINDS
def test_a_key_is_held_until_the_last_of_its_claims_is_committed(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "a2", "a3")
    first, second = place.claim(messages=1), place.claim(messages=1)
    place.consume()
    place.commit(first)
    assert place.delivered() == []
    place.commit(second)
    assert place.delivered() == ["a3"]


@KINDS
def test_consumers_get_other_keys_and_the_claimed_ones_when_it_is_committed(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "b1", "a2")
    claimed = place.claim(messages=1)
    place.consume().publish("a3", "c1")
    assert place.delivered() == ["b1", "c1"]
    assert place.queue.get() is None
    assert place.counts() == (2, 2, 1)
    place.commit(claimed)
    assert place.delivered() == ["b1", "c1", "a2", "a3"]


@KINDS
def test_a_claim_gets_nothing_of_what_a_consumer_or_a_get_holds(kind: str) -> None:
    place = Place((1,), queue_type=kind).consume()
    place.publish("a1", "a2", "b1", "b2", "c1")
    got = place.queue.get()
    assert got[0].body == b"b1"
    claimed = place.claim()
    assert place.bodies(claimed) == ["c1"]
    assert place.counts() == (2, 2, 1)
    place.queue.settle(got[1])
    assert place.has() == ["b2"]
    place.queue.remove_consumer(place.takers[0])
    place.settle("a1")
    assert place.has() == ["a2"]


def test_a_claim_gets_nothing_of_a_key_that_is_blocked_or_waits_for_a_retry() -> None:
    place = Place((2,), retry_delays=[1_000]).consume().publish("a1", "a2", "a3", "b1")
    place.queue.remove_consumer(place.takers[0])
    place.settle("a1", "requeue")
    assert place.has() == ["b1"]
    place.settle("a2", "reject")
    assert place.has() == []
    place.queue.retry_now()
    assert place.has() == ["a1", "a2", "a3"]


@KINDS
def test_released_messages_are_in_their_place_again_and_redelivered(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "b1", "a2", "a3")
    claimed = place.claim(messages=3)
    place.release(claimed)
    assert place.counts() == (4, 0, 0)
    place.consume()
    assert sorted((body.decode(), again) for body, _, again in place.takers[0].got) == [
        ("a1", True), ("a2", True), ("a3", False), ("b1", True)
    ]  # fmt: skip
    assert [text for text in place.delivered() if text[0] == "a"] == ["a1", "a2", "a3"]


@KINDS
def test_a_released_message_blocks_its_key_while_more_of_it_is_claimed(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "a2", "a3", "b1")
    first, second = place.claim(messages=1), place.claim(messages=1)
    place.release(second)
    assert place.has("g") == ["b1"]
    place.consume()
    assert place.delivered() == []
    place.commit(first)
    assert place.delivered() == ["a2", "a3"]


@KINDS
def test_a_claim_counts_as_delivered_before_what_was_claimed_or_delivered_before(kind: str) -> None:
    place = Place((1,), queue_type=kind).publish("a1", "b1", "c1")
    first = place.claim(messages=1)
    assert first.seen == ((0, 0),)
    place.release(first)
    assert place.claim(messages=2).seen == ((0, 1),)
    got = place.queue.get()
    place.queue.requeue(got[1])
    assert place.claim().seen == ((0, 3),)


def test_a_claim_is_read_in_order_however_it_was_put_together() -> None:
    place = Place().publish("a1", "b1", "a2", "c1", "b2", "a3", "c2")
    held = place.claim("h", 2)
    assert place.has("g") == ["c1", "c2"]
    place.commit(held)
    found = place.claim("g")
    assert place.bodies(found) == ["a2", "b2", "a3"]
    assert found.runs == (LeasedRange(0, 2, 3), LeasedRange(0, 4, 6))


@KINDS
def test_messages_without_a_key_are_claimed_by_anybody(kind: str) -> None:
    place = Place(queue_type=kind, group_key="customer")
    for number in range(4):
        place.queue.publish(message(b"%d" % number))
    first = place.claim("g", 2)
    assert place.bodies(first) == ["0", "1"]
    assert place.has("h", 1) == ["2"]
    place.release(first)
    assert place.has("h") == ["0", "1", "3"]


@KINDS
def test_octets_limit_a_claim_and_what_is_too_much_stays_as_it_was(kind: str) -> None:
    for key, twice in (("routing_key", "aab"), ("customer", "123")):
        place = Place(queue_type=kind, group_key=key)
        for letter in twice:
            place.queue.publish(message(letter.encode() * 50, letter))
        one = place.claim(messages=1)
        place.commit(one)
        assert place.claim(octets=one.byte_count + 1).messages == 1
        assert place.counts() == (1, 0, 1)
        place.consume()
        assert [again for _, _, again in place.takers[0].got] == [False]


@KINDS
def test_the_limits_of_a_claim_stop_it_and_the_next_one_goes_on(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place((1,), queue_type=kind).consume()
    place.publish("a0", *[f"a{number}" for number in range(1, 8)], "b1")
    place.queue.order.waiting_max = 5
    assert place.has() == []
    place.settle("a0")
    assert place.has() == []
    place.queue.remove_consumer(place.takers[0])
    place.settle("a1")
    assert len(place.has("g", 5)) == 5
    assert place.has("h") == ["b1"]


def test_a_message_that_waits_for_its_key_is_not_claimed_when_it_has_expired() -> None:
    place = Place((1,), message_ttl=1_000).consume().publish("a1", "a2", "b1")
    claimed = place.claim()
    assert place.bodies(claimed) == ["b1"]
    place.clock.advance(2_000)
    place.publish("c1")
    assert place.has() == ["c1"]
    assert place.counts() == (0, 1, 2)
    place.release(claimed)
    assert place.counts() == (0, 1, 1)


def test_a_message_behind_the_head_that_has_expired_is_not_claimed() -> None:
    place = Place()
    for text, due in (("a1", 0), ("a2", 5), ("a3", 0)):
        each = Message("", "a", NO_PROPERTIES, text.encode())
        each.due = due
        place.queue.publish(each)
    place.clock.advance(10)
    assert place.has() == ["a1", "a3"]
    assert place.counts() == (0, 0, 2)


@KINDS
def test_a_purge_leaves_claims_and_their_keys_alone(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "b1", "a2", "b2")
    claimed = place.claim(messages=2)
    assert place.has("h") == []
    assert place.queue.purge() == 2
    assert place.counts() == (0, 0, 2)
    place.publish("a3", "c1")
    assert place.has("h") == ["c1"]
    place.release(claimed)
    assert place.has("g") == ["a1", "b1", "a3"]


@pytest.mark.parametrize("limit", [{"max_length": 3}, {"max_length_bytes": 6}])
@KINDS
def test_a_limit_drops_what_is_ready_and_nothing_that_is_claimed(
    kind: str, limit: dict[str, int]
) -> None:
    place = Place(queue_type=kind, **limit).publish("a1", "a2", "b1")
    claimed = place.claim(messages=2)
    place.publish("a3", "c1", "a4", "b2")
    assert place.counts() == (3, 0, 2)
    assert place.bodies(claimed) == ["a1", "a2"]
    assert place.has("h") == ["c1", "b2"]
    place.release(claimed)
    assert place.counts() == (3, 0, 2)
    assert place.has("g") == ["a1", "a2", "a4"]
    place.publish("d1", "d2", "d3")
    assert place.counts() == (3, 0, 5)


@KINDS
def test_a_queue_that_is_deleted_forgets_its_claims(kind: str) -> None:
    place = Place(queue_type=kind).publish("a1", "a2")
    claimed = place.claim(messages=1)
    place.host.delete_queue("q")
    place.queue.claims().settle(claimed.runs, claimed.messages)
    place.queue.claims().release(claimed.runs, claimed.messages)
    assert place.queue.ready_count() == 0


def test_a_quorum_queue_that_drops_a_message_frees_its_key() -> None:
    place = Place(queue_type="quorum", delivery_limit=1).publish("a1", "a2")
    for _ in range(2):
        place.release(place.claim(messages=1))
    assert place.queue.order.delivery_count(1) == 0
    assert place.has("h") == ["a2"]
    assert place.counts() == (0, 0, 1)


def test_a_message_requeued_in_a_quorum_queue_waits_for_its_retry_with_its_key() -> None:
    delays = {"delayed_retry_type": "all", "delayed_retry_min": 1_000}
    place = Place(queue_type="quorum", **delays).publish("a1", "a2", "b1")
    first, second = place.claim(messages=1), place.claim(messages=1)
    place.release(second)
    assert place.has() == ["b1"]
    place.commit(first)
    place.publish("a3")
    assert place.has() == []
    place.queue.retry_now()
    assert place.has() == ["a2", "a3"]


def test_a_consumer_that_is_not_sent_its_own_does_not_keep_them_from_a_claim() -> None:
    place = Place(())
    taker = Taker(place.queue, "c", excluded=7)
    place.queue.add_consumer(taker)
    for text in ("a1", "a2"):
        each = Message("", "a", NO_PROPERTIES, text.encode())
        each.origin = 7
        place.queue.publish(each)
    assert taker.bodies == []
    assert place.has() == ["a1", "a2"]


def test_a_browser_can_take_nothing_of_a_claimed_key() -> None:
    place = Place().publish("a1", "a2", "b1")
    claimed = place.claim(messages=1)
    browser = Taker(place.queue, "b")
    place.queue.add_browser(browser)
    assert browser.bodies == [b"a2", b"b1"]
    shown = {body: position for body, position, _ in browser.got}
    assert not place.queue.acquire(shown[b"a2"], browser)
    assert place.queue.acquire(shown[b"b1"], browser)
    place.commit(claimed)
    assert place.queue.acquire(shown[b"a2"], browser)


def test_a_queue_with_keys_and_a_single_active_consumer_has_no_leases() -> None:
    with pytest.raises(Refusal, match="it has a single active consumer"):
        Place(single_active_consumer=True).queue.check_lease()


# --- limits -------------------------------------------------------------------------------------


def test_a_claim_has_so_many_runs_at_most() -> None:
    place = Place((1,)).consume()
    place.publish("a0", *["b1", "a1"] * (LEASE_CLAIM_RANGES + 5))
    found = place.claim(messages=LEASE_CLAIM_RANGES * 2)
    assert (found.messages, len(found.runs)) == (LEASE_CLAIM_RANGES, LEASE_CLAIM_RANGES)
    place.settle("a0")
    place.settle("a1")
    assert len(place.bodies(found)) == LEASE_CLAIM_RANGES


def test_messages_that_wait_for_many_keys_are_one_run_when_claimed_together() -> None:
    place = Place((0,)).publish(*[letter + "1" for letter in "abcdefgh"] * 1_000)
    held = place.claim("g", 8)
    assert place.claim("h").messages == 0
    place.commit(held)
    found = place.claim("h", 10_000)
    assert (found.messages, found.runs) == (7_992, (LeasedRange(0, 8, 8_000),))


def test_a_claim_looks_behind_whatever_is_held_until_it_has_something() -> None:
    place = Place((1,)).consume()
    place.publish(*["a0"] * (LEASE_SINGLE_MESSAGES + 2), "b1")
    assert place.has() == ["b1"]


def test_a_claim_that_has_something_looks_at_so_many_messages_and_the_next_one_goes_on() -> None:
    place = Place((1,)).consume()
    place.publish("a0", "b1", *["a0"] * LEASE_SINGLE_MESSAGES, "c1")
    assert place.has() == ["b1"]
    assert place.has() == ["c1"]


def test_so_many_messages_are_claimed_at_most_and_more_when_some_are_committed() -> None:
    place = Place().publish("a1", "a2", "a3")
    first = place.claim(messages=1)
    place.queue.leased += LEASE_KEYED_MESSAGES - 2
    second = place.claim()
    assert place.bodies(second) == ["a2"]
    assert place.has() == []
    place.commit(first)
    assert place.has() == ["a3"]


# --- whatever happens ---------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish", "publish", "claim", "claim", "commit", "release", "settle", "requeue",
             "reject", "get", "purge", "come", "go"]
        ),
        st.integers(0, 11),
    ),
    max_size=80,
)  # fmt: skip


class Ledger:
    """Who has what, and that nobody has anything out of turn."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.out: dict[int, tuple[object, str, int]] = {}
        self.claims: dict[str, list[ClaimedMessages]] = {"g": [], "h": []}
        self.numbers: dict[str, int] = {}
        self.done: dict[str, set[int]] = {}
        self.seen = [0] * len(place.takers)

    def goes(self, holder: object, position: int, text: str) -> None:
        """Somebody gets a message now."""
        key, number = text[0], int(text[1:])
        assert position not in self.out
        holders = {each for each, other, _ in self.out.values() if other == key}
        assert holders <= {holder}, "one at a time"
        before = set(range(number)) - self.done.setdefault(key, set())
        assert before <= {n for _, other, n in self.out.values() if other == key}, "in order"
        self.out[position] = (holder, key, number)

    def look(self) -> None:
        """What consumers have got since the last time."""
        for which, taker in enumerate(self.place.takers):
            for body, position, _ in taker.got[self.seen[which] :]:
                self.goes(which, position, body.decode())
            self.seen[which] = len(taker.got)
        leased = sum(taken.messages for each in self.claims.values() for taken in each)
        queue = self.place.queue
        assert (queue.leased, queue.unacked) == (leased, len(self.out) - leased)
        there = sum(self.numbers.values()) - sum(map(len, self.done.values()))
        assert queue.ready_count() == there - len(self.out)

    def finished(self, position: int) -> None:
        _, key, number = self.out.pop(position)
        self.done[key].add(number)

    # --- actions --------------------------------------------------------------------------------

    def publish(self, which: int) -> None:
        key = "abc"[which % 3]
        number = self.numbers.get(key, 0)
        self.numbers[key] = number + 1
        self.done.setdefault(key, set())
        self.place.publish(f"{key}{number}")

    def claim(self, which: int) -> None:
        group = "gh"[which % 2]
        taken = self.place.claim(group, 1 + which // 2)
        if taken.messages:
            self.claims[group].append(taken)
            log = self.place.queue.claims().logs()[0]
            for position in self.positions(taken):
                self.goes(group, position, log.read(position).body.decode())

    def positions(self, taken: ClaimedMessages) -> list[int]:
        log = self.place.queue.claims().logs()[0]
        runs = sorted(taken.runs)
        return [n for run in runs for n in range(run.first, run.end) if log.next(n) == n]

    def commit(self, which: int) -> None:
        claims = self.claims["gh"[which % 2]]
        for _ in range(min(len(claims), 1 + which // 4)):
            taken = claims.pop(0)
            for position in self.positions(taken):
                self.finished(position)
            self.place.commit(taken)

    def release(self, which: int) -> None:
        claims = self.claims["gh"[which % 2]]
        while len(claims) > which // 4:
            taken = claims.pop(which // 4)
            for position in self.positions(taken):
                self.out.pop(position)
            self.place.queue.claims().release(taken.runs, taken.messages)
        self.place.queue.drain()

    def back(self, which: int, how: str) -> None:
        mine = sorted(n for n, (holder, _, _) in self.out.items() if holder not in ("g", "h"))
        if mine:
            position = mine[which % len(mine)]
            holder = self.out[position][0]
            if isinstance(holder, int):
                self.place.takers[holder].credit += 1
            if how == "requeue":
                del self.out[position]
            else:
                self.finished(position)
            getattr(self.place.queue, how)(position)
            self.place.queue.drain()

    def get(self) -> None:
        found = self.place.queue.get()
        if found is not None:
            self.goes("get", found[1], found[0].body.decode())

    def purge(self) -> None:
        self.place.queue.purge()
        out: dict[str, set[int]] = {}
        for _, key, number in self.out.values():
            out.setdefault(key, set()).add(number)
        for key, count in self.numbers.items():
            self.done[key] = set(range(count)) - out.get(key, set())

    def come(self, which: int) -> None:
        taker = self.place.takers[which % 2]
        if taker not in self.place.queue.consumers:
            self.place.queue.add_consumer(taker)

    def go(self, which: int) -> None:
        self.place.queue.remove_consumer(self.place.takers[which % 2])


@given(ACTIONS, st.integers(1, 3), st.integers(1, 8), st.sampled_from(["classic", "quorum"]))
def test_whatever_happens_every_key_has_one_holder_and_keeps_its_order(
    actions: list[tuple[str, int]], credit: int, waiting: int, kind: str
) -> None:
    given = {"queue_type": kind, **({"delivery_limit": -1} if kind == "quorum" else {})}
    place = Place((credit, credit), **given)
    place.queue.order.waiting_max = waiting
    ledger = Ledger(place)
    for action, which in actions:
        if action in ("settle", "requeue", "reject"):
            ledger.back(which, action)
        elif action in ("get", "purge"):
            getattr(ledger, action)()
        else:
            getattr(ledger, action)(which)
        ledger.look()
    for which in (0, 1):
        ledger.go(which)
    for which in (11, 10) * 40:
        ledger.commit(which)
    while any(holder not in ("g", "h") for holder, _, _ in ledger.out.values()):
        ledger.back(0, "settle")
    ledger.claim(11)
    while ledger.claims["h"]:
        ledger.commit(11)
        ledger.claim(11)
    ledger.look()
    assert place.counts() == (0, 0, 0)
    assert {key: len(gone) for key, gone in ledger.done.items()} == ledger.numbers
