"""OrderingKeys after a restart that came at a bad moment, and how many of them one queue has."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.limits import LEASE_GROUP_KEPT_MS
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import Store
from harebell.kernels.batches import BatchBuilder
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "limited": {"x-max-length-bytes": 10_000},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 3},
}
LIMITED_QUORUM = {"x-queue-type": "quorum", "x-max-length-bytes": 10_000}


class Broker(DiskBroker):
    """A broker that says what it could not bring back."""

    said: list[str]

    def misses(self, sentence: str) -> None:
        self.said = [*getattr(self, "said", []), sentence]


def publish(broker: DiskBroker, *bodies: bytes) -> None:
    queue = broker.vhost.queues["q"]
    for body in bodies:
        queue.publish(Message("", "q", Properties(b"\0\0", PERSISTENT), body))


def drained(broker: DiskBroker) -> list[bytes]:
    found = []
    while (got := broker.vhost.queues["q"].get()) is not None:
        found.append(got[0].body)
    return found


def begun(kind: str) -> Broker:
    """A broker whose queue has two messages on disk."""
    disk = SimDisk()
    broker = Broker(disk, SimDefinitions(disk))
    broker.vhost.declare_queue("q", durable=True, arguments=KINDS.get(kind, LIMITED_QUORUM))
    publish(broker, b"1", b"2")
    while broker.commit():
        pass
    return broker


def killed_before_the_logs(broker: Broker) -> Broker:
    """The process dies when the definitions of a commit are on disk and nothing else is."""
    broker.store.commit.close_up()
    broker.definitions.write(broker.definitions.take())
    disk = broker.disk.copy()
    return Broker(disk, broker.definitions.crash(disk, Random(1)), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_that_was_on_disk_before_its_messages_is_lost_and_the_rest_is_ready(
    kind: str,
) -> None:
    broker = begun(kind)
    publish(broker, b"3", b"4")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    assert leases.claim(group, 10, 0, "holder").messages == 4
    again = killed_before_the_logs(broker)
    (sentence,) = again.said
    assert "claim 1 had 4 messages, of which 2 outlived the restart" in sentence
    publish(again, b"5")
    assert sorted(drained(again)) == [b"1", b"2", b"5"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_that_was_committed_before_its_messages_were_on_disk_takes_no_others(
    kind: str,
) -> None:
    broker = begun(kind)
    publish(broker, b"3", b"4")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    leases.claim(group, 10, 0, "holder")
    leases.commit(group, 1, "holder")
    again = killed_before_the_logs(broker)
    publish(again, b"5")
    while again.commit():
        pass
    disk = again.disk.copy()
    last = Broker(disk, again.definitions.crash(disk, Random(1)), 2)
    assert drained(last) == [b"5"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_committed_messages_stay_settled_although_the_crash_came_before_the_log_knew(
    kind: str, forgotten: bool, crashes: int
) -> None:
    broker = begun(kind)
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    leases.claim(group, 1, 0, "holder")
    leases.commit(group, 1, "holder")
    if forgotten:
        leases.close(group, forget=True)
    for _ in range(crashes):
        broker = killed_before_the_logs(broker)
    assert drained(broker) == [b"2"]


def test_a_group_that_was_forgotten_again_does_not_settle_for_ever() -> None:
    broker = begun("classic")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    for _ in range(2):
        group = leases.open(broker.vhost, queue, "g", 0, "holder")
        leases.claim(group, 1, 0, "holder")
        leases.commit(group, 1, "holder")
        leases.close(group, forget=True)
        assert len(queue.leases.settling) == 1
        while broker.commit():
            pass


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_released_after_a_restart_is_ready_once(kind: str) -> None:
    broker = begun(kind)
    publish(broker, b"3", b"4")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    for _ in range(3):
        leases.claim(group, 1, 0, "holder")
    while broker.commit():
        pass
    disk = broker.disk.copy()
    again = Broker(disk, broker.definitions.crash(disk, Random(1)), 1)
    leases, queue = again.broker.leases, again.vhost.queues["q"]
    group = leases.find(again.vhost, queue, "g")
    assert (queue.ready_count(), queue.leased) == (1, 3)
    assert leases.release(group, 2, "holder") == 2
    assert (queue.ready_count(), queue.leased) == (3, 1)
    publish(again, b"5")
    assert sorted(drained(again)) == [b"2", b"3", b"4", b"5"]
    assert leases.release(group, 1, "holder") == 1
    assert drained(again) == [b"1"]


class Later(Broker):
    """A broker that is started when most of the time of an idle group is over."""

    def make_store(self) -> Store:
        self.clock.advance(LEASE_GROUP_KEPT_MS)
        return super().make_store()


def test_the_time_of_an_idle_group_goes_on_over_a_restart() -> None:
    broker = begun("classic")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    broker.clock.advance(10)
    leases.close(leases.open(broker.vhost, queue, "g", 0, "holder"), forget=False)
    began = broker.clock.ms
    while broker.commit():
        pass
    disk = broker.disk.copy()
    later = Later(disk, broker.definitions.crash(disk, Random(1)), 1)
    (group,) = later.broker.leases.of()
    assert group.idle_since == began
    for left in (9, 1):
        assert later.broker.leases.of()
        later.clock.advance(left)
        later.broker.timers.run()
    assert later.broker.leases.of() == []


def marks(broker: DiskBroker, number: int) -> list[bool]:
    """Of every message in a claim, whether it counts as handed out before."""
    group = broker.broker.leases.find(broker.vhost, broker.vhost.queues["q"], "g")
    claim = group.claims[number]
    into = BatchBuilder(("redelivered",), (), "q", None, None, None, None)
    into.limit(1_000, 1_000_000, 1_000_000)
    group.queue.claims().append_to(claim.runs, *group.bounds(claim), into, claim.seen)
    _, _, (_, bits) = into.finish()
    return [bool(bits[each // 8] >> each % 8 & 1) for each in range(claim.messages)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_says_the_same_of_its_messages_after_releases_and_restarts(kind: str) -> None:
    broker = begun(kind)
    publish(broker, b"3", b"4")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    leases.claim(group, 2, 0, "holder")
    assert marks(broker, 1) == [False, False]
    other = leases.open(broker.vhost, queue, "h", 0, "holder")
    leases.claim(other, 2, 0, "holder")
    leases.release(other, 1, "holder")
    assert marks(broker, 1) == [False, False]
    while broker.commit():
        pass
    disk = broker.disk.copy()
    again = Broker(disk, broker.definitions.crash(disk, Random(1)), 1)
    assert marks(again, 1) == [False, False]
    leases, queue = again.broker.leases, again.vhost.queues["q"]
    leases.claim(leases.find(again.vhost, queue, "g"), 2, 0, "holder")
    assert marks(again, 2) == [True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_requeued_by_a_consumer_count_as_delivered_in_the_claim(kind: str) -> None:
    broker = begun(kind)
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    queue.requeue(queue.get()[1])
    leases.claim(group, 2, 0, "holder")
    assert marks(broker, 1) == [True, False]


@pytest.mark.parametrize("kind", [*KINDS, "limited quorum"])
def test_a_message_that_did_not_fit_into_a_claim_is_the_next_one(kind: str) -> None:
    broker = begun(kind)
    publish(broker, b"3")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    assert leases.claim(group, 3, 1, "holder").messages == 1
    assert leases.claim(group, 3, 0, "holder").messages == 2
    assert marks(broker, 2) == [False, False]


def test_a_message_requeued_in_a_quorum_queue_that_did_not_fit_stays_the_first() -> None:
    broker = begun("quorum")
    publish(broker, b"3", b"4")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    for position in [queue.get()[1] for _ in range(3)]:
        queue.requeue(position)
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    assert leases.claim(group, 4, 1, "holder").messages == 1
    assert drained(broker) == [b"2", b"3", b"4"]


def test_a_claim_is_encoded_when_it_is_made() -> None:
    broker = begun("classic")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    claims = [leases.claim(group, 1, 0, "holder") for _ in range(2)]
    # Both, although the row was written with the first and the second is only noted.
    assert [len(claim._written) for claim in claims] == [1, 1]


def test_a_claim_after_the_row_was_written_is_in_the_commit_too() -> None:
    broker = begun("classic")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    for _ in range(2):
        assert leases.claim(group, 1, 0, "holder") is not None
    while broker.commit():
        pass
    again = killed_before_the_logs(broker)
    assert list(again.vhost.queues["q"].leases.groups["g"].claims) == [1, 2]
    assert drained(again) == []
