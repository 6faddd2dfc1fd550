"""How durable one queue is beside another, on a disk that keeps only what was synced.

A batch is what a confirm waits for. Whether it syncs a queue's files is counted, and what a power
loss right after it leaves is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from harebell.base.durability import Durability
from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.model.broker import Broker
from harebell.model.queue.contract import Queue
from harebell.model.settings.metadata import Metadata
from harebell.model.settings.policy import Policy
from tests.sim.disk import Random, SimDisk
from tests.unit.store.stores import Bench

CRASHES = 40


class Place:
    """A broker over a simulated disk, and the syncs of its files."""

    def __init__(self) -> None:
        self.bench = Bench()
        # File by file, so that each can be told from the others.
        self.bench.disk.together = 1 << 30
        self.broker = Broker(self.bench.store, Gauge(), lambda message: {})
        self.vhost = self.broker.vhosts["/"]
        self.synced: list[str] = []
        self.bench.disk.hook = self._note

    def _note(self, number: int, kind: str, path: str) -> None:
        if kind == "sync":
            self.synced.append(path)

    def queue(self, name: str, **arguments: object) -> Queue:
        queue: Queue = self.vhost.declare_queue(name, durable=True, arguments=arguments)
        self.bench.commit()
        return queue

    def publish(self, *queues: Queue) -> set[str]:
        """Publish to queues, and perform what a confirm waits for; whose files were synced."""
        for queue in queues:
            queue.publish(Message("", queue.name, Properties(b"\0\0", PERSISTENT), b"m"))
        self.synced.clear()
        self.bench.commit()
        return {
            queue.name
            for queue in self.vhost.queues.values()
            if any(queue.identity in path for path in self.synced)
        }

    def left(self, queue: Queue, seed: int) -> int:
        """How many of a queue's messages are there after a power loss now."""
        found = Bench(self.bench.disk.crash(Random(seed)))
        return found.store.open_log(queue.identity, durable=True).live()


def by_vhost(place: Place, word: str) -> None:
    place.vhost.set_metadata(replace(Metadata(), durability=word))


def by_policy(place: Place, word: str) -> None:
    place.vhost.policies.put(Policy("p", "", "queues", 0, {"durability": word}))


@pytest.mark.parametrize("by", [by_vhost, by_policy])
@pytest.mark.parametrize("early", [True, False])
def test_a_confirm_waits_for_the_disk_as_the_vhost_or_a_policy_says(
    by: Callable[[Place, str], None], early: bool
) -> None:
    for word in ("os", "interval:50"):
        place = Place()
        if early:
            by(place, word)
        queue = place.queue("q")
        if not early:
            by(place, word)
        place.bench.commit()
        assert place.publish(queue) == set()
        assert min(place.left(queue, seed) for seed in range(CRASHES)) == 0
        by(place, "fsync")
        assert place.publish(queue) == {"q"}
        assert {place.left(queue, seed) for seed in range(CRASHES)} == {2}


def test_of_two_queues_in_one_batch_only_the_one_that_asks_for_it_is_synced() -> None:
    place = Place()
    place.vhost.policies.put(Policy("p", "^weak", "queues", 0, {"durability": "os"}))
    strong, weak = place.queue("strong"), place.queue("weak")
    assert place.publish(strong, weak) == {"strong"}
    assert {place.left(strong, seed) for seed in range(CRASHES)} == {1}


def test_a_policy_goes_before_the_vhost_and_the_vhost_before_the_broker() -> None:
    place = Place()
    place.bench.store.durability = Durability("interval", 70)
    queue = place.queue("q")
    of = place.vhost.policies.durability_of
    assert str(of(queue)) == "interval:70"
    by_vhost(place, "os")
    assert str(of(queue)) == "os"
    by_policy(place, "fsync")
    assert str(of(queue)) == "fsync"
    assert place.publish(queue) == {"q"}
    place.vhost.policies.delete("p")
    assert place.publish(queue) == set()
    by_vhost(place, "")
    assert str(of(queue)) == "interval:70"


def test_every_level_of_a_priority_queue_is_as_durable_as_the_queue() -> None:
    place = Place()
    by_vhost(place, "os")
    queue = place.queue("q", **{"x-max-priority": 3})
    for priority in range(4):
        properties = Properties(b"\0\0", PERSISTENT, priority)
        queue.publish(Message("", "q", properties, b"m"))
    assert place.publish() == set()
    by_vhost(place, "")
    queue.publish(Message("", "q", Properties(b"\0\0", PERSISTENT, 3), b"m"))
    assert place.publish() == {"q"}


def test_a_broker_says_who_asked_for_less() -> None:
    place = Place()
    assert place.broker.weaker() == []
    by_vhost(place, "os")
    by_policy(place, "interval:50")
    place.broker.add_vhost("v", replace(Metadata(), durability="fsync"))
    assert place.broker.weaker() == ["vhost '/' (os)", "policy 'p' in vhost '/' (interval:50)"]


def test_a_disk_without_lags_syncs_everything() -> None:
    disk = SimDisk()
    assert not disk.puts_off("queues/a")
