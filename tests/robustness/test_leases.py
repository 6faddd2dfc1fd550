"""Leases of a real broker: what is claimed is so still after `kill -9`, a stop, and a lost peer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.client import blocking
from harebell.client.blocking.channel import Channel
from harebell.client.errors import Fenced, LeaseLost, NotFound, PreconditionFailed
from tests.patience import eventually
from tests.running import RunningBroker

COUNT = 600
QUEUES = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 3},
    "keys": {"x-group-key": "message_id"},
}


class Site:
    """A broker that is stopped and started again over one data directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.broker = self.start()

    def start(self) -> RunningBroker:
        return RunningBroker("--data-dir", str(self.directory / "data"))

    def again(self, how: signal.Signals) -> None:
        self.broker.stop(how)
        self.broker.remove()
        self.broker = self.start()

    def connect(self) -> blocking.Connection:
        return blocking.connect(self.broker.address())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.broker.stop(signal.SIGKILL)
    made.broker.remove()


def fill(channel: Channel, queue: str, count: int = COUNT, *, durable: bool = True) -> None:
    bodies = (b"%d" % number for number in range(count))
    mode = 2 if durable else 1
    channel.publish_many(bodies, routing_key=queue, delivery_mode=mode)


def drained(channel: Channel, queue: str) -> list[int]:
    """What is ready, all of it taken."""
    found = []
    while (message := channel.get(queue, no_ack=True)) is not None:
        found.append(int(message.body))
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill-9", "stop"])
@pytest.mark.parametrize("kind", QUEUES)
def test_claims_outlive_the_broker_and_commits_are_for_ever(
    site: Site, kind: str, how: signal.Signals
) -> None:
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True, arguments=QUEUES[kind])
        fill(channel, "q")
        lease = channel.lease_open("q", "g")
        made = [channel.lease_claim("q", "g", lease.epoch, 100) for _ in range(4)]
        assert channel.lease_commit("q", "g", lease.epoch, 2) == 200
        channel.lease_release("q", "g", lease.epoch, 4)
        site.again(how)
    with site.connect() as connection:
        channel = connection.channel()
        found = channel.lease_open("q", "g")
        assert (found.epoch, found.committed, found.last, found.lost) == (2, 2, 4, 0)
        assert found.generation == lease.generation
        assert found.claims == (made[2],)
        ready = drained(channel, "q")
        assert sorted(ready) == list(range(300, COUNT))
        assert channel.lease_release("q", "g", found.epoch) == 100
        assert sorted(drained(channel, "q")) == list(range(200, 300))
    # What was taken without acknowledgement is told to the disk a little later, and at a stop.
    site.again(signal.SIGTERM)
    with site.connect() as connection:
        assert drained(connection.channel(), "q") == []


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_keys_of_a_claim_are_held_over_a_kill_until_it_is_committed(
    site: Site, kind: str
) -> None:
    arguments = {"x-group-key": "message_id", "x-queue-type": kind}
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True, arguments=arguments)
        for number, key in enumerate("abacb"):
            body = b"%s%d" % (key.encode(), number)
            channel.publish(body, routing_key="q", delivery_mode=2, message_id=key)
        epoch = channel.lease_open("q", "g").epoch
        assert channel.lease_claim("q", "g", epoch, 2).messages == 2
        site.again(signal.SIGKILL)
    with site.connect() as connection:
        channel = connection.channel()
        epoch = channel.lease_open("q", "g").epoch
        other = channel.lease_open("q", "h").epoch
        claim = channel.lease_claim("q", "h", other, 10)
        assert (claim.messages, claim.first) == (1, 3)
        assert channel.get("q") is None
        assert channel.lease_claim("q", "g", epoch, 1).first == 2
        assert channel.lease_commit("q", "g", epoch, 1) == 2
        # Of "a" there is another claim.
        assert channel.get("q").body == b"b4"
        assert channel.lease_commit("q", "g", epoch, 2) == 1


def test_a_commit_is_repeated_after_a_crash_without_harm(site: Site) -> None:
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True)
        fill(channel, "q")
        epoch = channel.lease_open("q", "g").epoch
        for number in range(1, 7):
            assert channel.lease_claim("q", "g", epoch, 100).number == number
        for number in range(1, 6):
            channel.lease_commit("q", "g", epoch, number)
        site.again(signal.SIGKILL)
    with site.connect() as connection:
        channel = connection.channel()
        assert channel.lease_commit("q", "g", epoch, 5) == 0
        assert channel.lease_commit("q", "g", epoch, 6) == 100
        assert drained(channel, "q") == []


def test_a_claim_whose_messages_did_not_outlive_the_broker_counts_as_lost(site: Site) -> None:
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True)
        fill(channel, "q", 10, durable=False)
        fill(channel, "q", 10)
        epoch = channel.lease_open("q", "g").epoch
        channel.lease_claim("q", "g", epoch, 15)
        site.again(signal.SIGKILL)
    with site.connect() as connection:
        channel = connection.channel()
        with pytest.raises(LeaseLost):
            channel.lease_commit("q", "g", epoch, 1)
        channel = connection.channel()
        assert channel.lease_open("q", "g").lost == 1
        assert len(drained(channel, "q")) == 10


def test_the_time_of_a_group_runs_when_the_broker_is_back_and_nobody_holds_it(site: Site) -> None:
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True)
        fill(channel, "q", 20)
        epoch = channel.lease_open("q", "g", timeout=0.5).epoch
        channel.lease_claim("q", "g", epoch, 20)
        site.again(signal.SIGKILL)
    with site.connect() as connection:
        channel = connection.channel()
        assert eventually(lambda: channel.declare_queue("q", passive=True).message_count == 20)
        with pytest.raises(LeaseLost):
            channel.lease_commit("q", "g", epoch, 1)


def test_two_of_one_group_the_first_is_fenced_whatever_it_asks(site: Site) -> None:
    with site.connect() as one, site.connect() as two:
        first, second = one.channel(), two.channel()
        first.declare_queue("q", durable=True)
        fill(first, "q", 30)
        old = first.lease_open("q", "g").epoch
        first.lease_claim("q", "g", old, 10)
        new = second.lease_open("q", "g").epoch
        with pytest.raises(Fenced, match=f"epoch {old} is over: it is epoch {new} of lease group"):
            first.lease_commit("q", "g", old, 1)
        assert second.lease_commit("q", "g", new, 1) == 10


def test_a_queue_that_was_declared_again_knows_nothing_of_the_groups_before(site: Site) -> None:
    with site.connect() as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True)
        fill(channel, "q", 5)
        lease = channel.lease_open("q", "g")
        channel.lease_claim("q", "g", lease.epoch, 5)
        channel.delete_queue("q")
        channel.declare_queue("q", durable=True)
        with pytest.raises(NotFound, match="no lease group 'g' of queue 'q'"):
            channel.lease_commit("q", "g", lease.epoch, 1)
        channel = connection.channel()
        again = channel.lease_open("q", "g")
        assert again.generation != lease.generation
        assert (again.epoch, again.last) == (1, 0)
        channel.declare_queue("s", durable=True, arguments={"x-queue-type": "stream"})
        with pytest.raises(PreconditionFailed, match="no lease is possible on queue 's'"):
            channel.lease_open("s", "g")
