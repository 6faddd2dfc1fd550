"""Leases of queues with ordering keys over restarts: claims hold their keys again, and no others.

Messages are named by their key and a number.
"""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.message import PERSISTENT, Message, Properties
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.unit.model.lease.test_leases import Broker, killed_before_the_logs
from tests.unit.model.things import Taker

KINDS: dict[str, dict[str, Any]] = {
    "classic": {"x-group-key": "routing_key"},
    "quorum": {"x-group-key": "routing_key", "x-queue-type": "quorum"},
}
HOLDER = "holder"
TRANSIENT = 1
each_kind = pytest.mark.parametrize("kind", KINDS)


class Place:
    """A broker on a disk, with a queue and groups that are opened when they are named."""

    def __init__(self, kind: str, **arguments: Any) -> None:
        disk = SimDisk()
        self.broker = Broker(disk, SimDefinitions(disk))
        given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self.broker.vhost.declare_queue("q", durable=True, arguments=KINDS[kind] | given)

    @property
    def queue(self) -> Any:
        return self.broker.vhost.queues["q"]

    def publish(self, *texts: str, mode: int = PERSISTENT) -> Place:
        for text in texts:
            properties = Properties(b"\0\0", mode)
            self.queue.publish(Message("", text[0], properties, text.encode()))
        return self

    def group(self, name: str = "g") -> Any:
        leases = self.broker.broker.leases
        known = {} if self.queue.leases is None else self.queue.leases.groups
        return known.get(name) or leases.open(self.broker.vhost, self.queue, name, 0, HOLDER)

    def claim(self, messages: int = 100, name: str = "g") -> list[str]:
        """What a group claims now."""
        claim = self.broker.broker.leases.claim(self.group(name), messages, 0, HOLDER)
        return [] if claim is None else self.claimed(claim.number, name)

    def claimed(self, number: int, name: str = "g") -> list[str]:
        log = self.queue.claims().logs()[0]
        found = []
        for run in self.group(name).claims[number].runs:
            position = log.next(run.first)
            while position < run.end:
                found.append(log.read(position).body.decode())
                position = log.next(position + 1)
        return found

    def commit(self, number: int, name: str = "g") -> None:
        self.broker.broker.leases.commit(self.group(name), number, HOLDER)
        self.queue.drain()

    def release(self, number: int = 1, name: str = "g") -> None:
        self.broker.broker.leases.release(self.group(name), number, HOLDER)
        self.queue.drain()

    def consume(self) -> Taker:
        taker = Taker(self.queue)
        self.queue.add_consumer(taker)
        return taker

    def restart(self) -> None:
        """Everything reaches the disk, and the process is killed."""
        while self.broker.commit():
            pass
        disk = self.broker.disk.copy()
        self.broker = Broker(disk, self.broker.definitions.crash(disk, Random(1)), 1)


@each_kind
def test_a_claim_holds_its_keys_again_after_a_restart(kind: str) -> None:
    place = Place(kind).publish("a1", "b1", "a2", "b2", "c1")
    assert place.claim(2) == ["a1", "b1"]
    place.restart()
    assert place.claimed(1) == ["a1", "b1"]
    assert (place.queue.ready_count(), place.queue.leased) == (3, 2)
    taker = place.consume()
    assert taker.bodies == [b"c1"]
    assert place.claim(name="h") == []
    assert place.claim(1) == ["a2"]
    place.commit(1)
    assert taker.bodies == [b"c1", b"b2"]
    place.publish("a3")
    place.commit(2)
    assert taker.bodies == [b"c1", b"b2", b"a3"]


@each_kind
def test_a_message_released_after_a_restart_goes_first_when_nothing_of_its_key_is_out(
    kind: str,
) -> None:
    place = Place(kind).publish("a1", "a2", "a3", "b1", "a4")
    for wanted in ("a1", "a2", "a3"):
        assert place.claim(1) == [wanted]
    place.restart()
    taker = place.consume()
    assert taker.bodies == [b"b1"]
    place.release(2)
    assert taker.bodies == [b"b1"]
    assert (place.queue.ready_count(), place.queue.leased) == (3, 1)
    place.commit(1)
    assert taker.bodies == [b"b1", b"a2", b"a3", b"a4"]
    assert [again for _, _, again in taker.got][1:3] == [True, True]


@each_kind
def test_two_groups_hold_what_each_of_them_claimed_after_a_restart(kind: str) -> None:
    place = Place(kind).publish("a1", "b1", "a2", "b2", "c1", "c2")
    assert place.claim(1, "g") == ["a1"]
    assert place.claim(1, "h") == ["b1"]
    place.restart()
    assert place.claim(name="g") == ["a2", "c1", "c2"]
    assert place.claim(name="h") == ["b2"]


@each_kind
@pytest.mark.parametrize("crashes", [1, 2])
def test_committed_messages_hold_no_key_after_a_crash(kind: str, crashes: int) -> None:
    place = Place(kind).publish("a1", "a2", "b1")
    while place.broker.commit():
        pass
    assert place.claim(1) == ["a1"]
    place.commit(1)
    for _ in range(crashes):
        place.broker = killed_before_the_logs(place.broker)
    assert place.consume().bodies == [b"a2", b"b1"]
    assert place.queue.ready_count() == 0


@each_kind
def test_the_rest_of_a_claim_waits_until_later_ones_of_its_keys_are_done(kind: str) -> None:
    place = Place(kind).publish("a1", "a2")
    while place.broker.commit():
        pass
    place.publish("a3", "a4")
    assert place.claim(3) == ["a1", "a2", "a3"]
    place.broker = killed_before_the_logs(place.broker)
    assert "claim 1 had 3 messages, of which 2 outlived the restart" in place.broker.said[0]
    assert (place.queue.ready_count(), place.queue.leased) == (2, 0)
    place.publish("b1")
    assert place.consume().bodies == [b"a1", b"a2", b"b1"]


def test_the_rest_of_a_claim_goes_on_only_after_a_later_claim_of_its_key() -> None:
    place = Place("classic").publish("a1").publish("x1", mode=TRANSIENT).publish("a2", "a3")
    assert place.claim(2) == ["a1", "x1"]
    assert place.claim(1) == ["a2"]
    place.restart()
    assert "claim 1 had 2 messages, of which 1 outlived the restart" in place.broker.said[0]
    assert place.claimed(2) == ["a2"]
    assert place.claim() == []
    place.broker.broker.leases.open(place.broker.vhost, place.queue, "g", 0, HOLDER)
    place.commit(2)
    assert place.claim() == ["a1", "a3"]


def test_a_key_that_waits_for_its_retry_is_not_taken_from_a_claim_by_a_restart() -> None:
    delays = {"delayed_retry_type": "all", "delayed_retry_min": 1_000}
    place = Place("quorum", **delays).publish("a1", "a2", "a3", "b1")
    assert place.claim(1) == ["a1"]
    assert place.claim(1) == ["a2"]
    place.release(2)
    place.restart()
    assert place.claim() == ["b1"]
    place.commit(1)
    assert place.claim() == []
    place.queue.retry_now()
    assert place.claim() == ["a2", "a3"]


@each_kind
def test_a_message_that_a_prepared_branch_acknowledged_holds_its_key_after_a_restart(
    kind: str,
) -> None:
    place = Place(kind).publish("a1", "b1", "a2")
    place.restart()
    # As the branch does when it comes back.
    assert place.queue.withhold(0)
    taker = place.consume()
    assert taker.bodies == [b"b1"]
    place.queue.requeue(0)
    place.queue.drain()
    assert taker.bodies == [b"b1", b"a1", b"a2"]
