"""What publishers have published is known for ever, and never without the messages."""

from __future__ import annotations

import contextlib

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.ports import PUBLISHER_LOG
from harebell.model.broker import Broker
from harebell.model.limits import PUBLISHER_KEPT_MS
from harebell.model.publishing import publishers
from harebell.model.publishing.publishers import NUMBERED, STAGED, Key, Publishers
from harebell.store.check import PUBLISHERS, Survey
from harebell.store.log.memory import MemoryStore
from tests.sim.disk import Random, SimDisk
from tests.unit.model.things import headers_of
from tests.unit.store.stores import Bench, message

ONE = Key(STAGED, "/", "guest", "one")
TWO = Key(NUMBERED, "/", "guest", "two")
IMAGES = 20


def remembered(bench: Bench) -> Publishers:
    """The publishers of a store, as the broker has them after its start."""
    known = Publishers(bench.store, bench.clock)
    known.restore()
    return known


def numbers(known: Publishers, *keys: Key) -> list[int]:
    """The next number of each, -1 for an unknown one."""
    found = [known.find(key) for key in keys]
    return [-1 if entry is None else entry.next for entry in found]


def test_numbers_grow_and_outlive_the_process() -> None:
    bench = Bench()
    known = remembered(bench)
    for number in range(5):
        known.advance(known.entry(ONE), number)
        known.advance(known.entry(TWO), number * 10)
    bench.commit()
    known.advance(known.entry(ONE), 5)
    again = remembered(bench.again())
    assert numbers(again, ONE, TWO) == [5, 41], "what was not committed is not known"
    bench.commit()
    assert numbers(remembered(bench.again()), ONE, TWO) == [6, 41]


def test_kinds_users_and_vhosts_have_publishers_of_their_own() -> None:
    known = remembered(Bench())
    known.advance(known.entry(ONE), 1)
    for other in (ONE._replace(kind=NUMBERED), ONE._replace(vhost="v")):
        assert known.entry(other).next == 0


def test_a_name_is_one_users_until_he_forgets_it_or_it_is_handed_over() -> None:
    bench = Bench()
    known = remembered(bench)
    eve = ONE._replace(user="eve")
    known.enter(known.entry(ONE), "run")
    known.advance(known.entry(ONE), 4)
    bench.commit()
    with pytest.raises(Refusal, match=r"hand-over one --to eve") as refusal:
        known.entry(eve)
    assert refusal.value.kind == ErrorKind.ACCESS_REFUSED
    known.hand_over([known.entry(ONE)], "eve")
    with pytest.raises(Refusal, match=r"hand-over one --to guest"):
        known.entry(ONE)
    bench.commit()
    again = remembered(bench.again())
    assert numbers(again, ONE, eve) == [-1, 5], "its number and its owner outlive the process"
    again.enter(again.entry(eve), "later")
    with pytest.raises(Refusal, match="another run has taken its place"):
        again.check(again.find(eve), "one", "run")
    again.forget(eve)
    assert again.entry(ONE).next == 0


def test_a_handover_that_cannot_be_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "PUBLISHERS_COUNT", 8)
    known = remembered(Bench())
    found = [known.entry(ONE._replace(name=f"q/{number}")) for number in range(2)]
    found[1].holders = 1
    with pytest.raises(Refusal, match="publisher 'q/1' is in use on 1 channels"):
        known.hand_over(found, "eve")
    found[1].holders = 0
    known.entry(ONE._replace(name="other", user="eve"))
    with pytest.raises(Refusal, match="user 'eve' has 1 publishers in vhost '/'"):
        known.hand_over(found, "eve")
    assert {entry.key.user for entry in found} == {"guest"}
    assert known.query("/", "q", None) == known.query("/", "q", "guest") == found
    assert known.query("/", "q/", None) == []


def test_two_of_one_name_from_before_stay_apart() -> None:
    known = remembered(Bench())
    eve = ONE._replace(user="eve")
    known.advance(known.entry(ONE), 4)
    older = publishers.Entry(eve)
    older.next = 2
    known._add(older)
    assert (known.entry(ONE).next, known.entry(eve).next) == (5, 2)
    with pytest.raises(Refusal, match="user 'eve' has a publisher 'one' too"):
        known.hand_over([known.entry(ONE)], "eve")
    known.forget(eve)
    known.hand_over([known.entry(ONE)], "eve")
    assert known.entry(eve).next == 5


def test_a_run_is_fenced_after_a_restart_too() -> None:
    bench = Bench()
    known = remembered(bench)
    entry = known.entry(ONE)
    known.enter(entry, "first")
    known.enter(entry, "first")
    known.enter(entry, "second")
    bench.commit()
    known = remembered(bench.again())
    assert known.check(known.find(ONE), "one", "second").next == 0
    for call in (
        lambda: known.enter(known.entry(ONE), "first"),
        lambda: known.check(known.find(ONE), "one", "first"),
    ):
        with pytest.raises(Refusal) as caught:
            call()
        assert caught.value.kind is ErrorKind.FENCED
        assert "run 'first' of publisher 'one' is fenced" in caught.value.text


def test_only_some_runs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "STAGE_RUNS_COUNT", 3)
    known = remembered(Bench())
    entry = known.entry(ONE)
    for run in "abcd":
        known.enter(entry, run)
    assert len(entry.runs) == 3
    with pytest.raises(Refusal):
        known.enter(entry, "b")


def test_a_user_makes_room_with_his_own_that_were_not_used_for_very_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishers, "PUBLISHERS_COUNT", 12)
    bench = Bench()
    known = remembered(bench)
    keys = [ONE._replace(name=name) for name in "abc"]
    for key in keys:
        known.advance(known.entry(key), 7)
        bench.commit()
    known.entry(keys[0]).holders += 1
    bench.clock.advance(PUBLISHER_KEPT_MS - 1)
    known.entry(keys[1])
    new = ONE._replace(name="d")
    with pytest.raises(Refusal, match=r"publisher 'd' cannot be made: .* one user may have 3: "):
        known.entry(new)
    bench.clock.advance(1)
    known.advance(known.entry(new), 0)
    known.entry(ONE._replace(vhost="other"))
    assert numbers(known, *keys) == [8, 8, -1]
    bench.commit()
    assert numbers(remembered(bench.again()), *keys) == [8, 8, -1]
    with pytest.raises(Refusal, match="one user may have 3: remove some that are not used"):
        known.entry(ONE._replace(name="e"))


def test_no_user_evicts_a_publisher_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "PUBLISHERS_COUNT", 8)
    bench = Bench()
    known = remembered(bench)
    known.advance(known.entry(ONE), 7)
    bench.clock.advance(2 * PUBLISHER_KEPT_MS)
    for user in ("b", "c", "d", "e"):
        taken = 0
        for number in range(10):
            with contextlib.suppress(Refusal):
                known.advance(known.entry(ONE._replace(user=user, name=f"{user}{number}")), 0)
                taken += 1
        assert 1 <= taken <= 2
    assert numbers(known, ONE) == [8]
    # However many there are, a user who has none gets one.
    known.entry(ONE._replace(user="f", name="f"))


def test_a_publisher_that_has_published_nothing_is_forgotten_with_its_channel() -> None:
    known = remembered(Bench())
    for _ in range(2):
        entry = known.entry(ONE)
        entry.holders += 1
        known.release(entry)
        assert known.find(ONE) is None
    entry = known.entry(ONE)
    entry.holders += 1
    known.advance(entry, 3)
    known.release(entry)
    assert numbers(known, ONE) == [4]


def test_a_forgotten_publisher_begins_anew() -> None:
    bench = Bench()
    known = remembered(bench)
    known.advance(known.entry(ONE), 7)
    bench.commit()
    known.advance(known.entry(ONE), 8)
    assert known.forget(ONE)
    assert not known.forget(ONE)
    bench.commit()
    assert numbers(remembered(bench.again()), ONE) == [-1]


def test_a_vhost_takes_its_publishers_along() -> None:
    gauge = Gauge()
    broker = Broker(MemoryStore(gauge), gauge, headers_of)
    vhost = broker.add_vhost("gone")
    key = ONE._replace(vhost="gone")
    broker.publishers.advance(broker.publishers.entry(key), 1)
    broker.publishers.entry(ONE)
    broker.delete_vhost(vhost)
    assert numbers(broker.publishers, key, ONE) == [-1, 0]


def test_the_log_stays_small_however_often_numbers_grow() -> None:
    bench = Bench(segment_bytes=4096)
    known = remembered(bench)
    idle = [known.entry(ONE._replace(name=f"idle {number}")) for number in range(20)]
    for entry in idle:
        known.advance(entry, 3)
    busy = known.entry(ONE)
    for number in range(3000):
        known.advance(busy, number)
        bench.commit()
    assert len(bench.disk.names(f"queues/{PUBLISHER_LOG}")) < 60
    again = remembered(bench.again())
    assert numbers(again, ONE, *(entry.key for entry in idle)) == [3000] + [4] * 20


def test_damaged_entries_are_passed_over() -> None:
    bench = Bench()
    log = bench.store.open_log(PUBLISHER_LOG, durable=True, keep_all=True)
    for octets in (b"", bytes(17), bytes(23), bytes(18) + b"\xff", bytes(17) + b"\1\0\xff" * 3):
        log.append(message(octets))
    bench.commit()
    known = remembered(bench.again())
    assert len(known) == 0
    known.advance(known.entry(ONE), 0)


def test_the_log_is_known_to_the_check_of_the_store() -> None:
    bench = Bench()
    known = remembered(bench)
    known.advance(known.entry(ONE), 0)
    bench.commit()
    survey = Survey(bench.disk, bench.definitions)
    assert [(each.name, each.kind) for each in survey.holdings()] == [("publishers", PUBLISHERS)]
    bench.store.clean([])
    assert bench.reports == []


def _cut_at(number: int) -> set[tuple[int, int]]:
    """What is found when the power goes after so many operations of the disk."""
    bench = Bench()
    log = bench.log()
    known = remembered(bench)
    known.advance(known.entry(ONE), 0)
    log.append(message())
    bench.commit()
    known.advance(known.entry(ONE), 1)
    for _ in range(3):
        log.append(message())
    if not bench.cut_power(number):
        return set()
    return {_found(bench.disk.crash(Random(seed))) for seed in range(IMAGES)}


def _found(disk: SimDisk) -> tuple[int, int]:
    bench = Bench(disk)
    return numbers(remembered(bench), ONE)[0], bench.log().end()


def test_a_power_loss_never_parts_a_number_from_its_messages() -> None:
    seen: set[tuple[int, int]] = set()
    number = 1
    while found := _cut_at(number):
        seen |= found
        number += 1
    assert seen == {(1, 1), (2, 4)}


def test_a_store_that_ends_in_good_order_says_what_changed_last() -> None:
    bench = Bench()
    known = remembered(bench)
    known.advance(known.entry(ONE), 4)
    bench.store.close()
    bench.commit()
    assert numbers(remembered(Bench(bench.disk, clean=True)), ONE) == [5]
