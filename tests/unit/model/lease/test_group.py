"""A group of leases by itself: what it counts, where it lies, and what is left when it goes."""

from __future__ import annotations

from harebell.model.lease.group import QueueLeases
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import SimDisk
from tests.sim.machine import DiskBroker
from tests.unit.model.lease.test_leases import publish


def claimed(arguments: dict[str, object]) -> DiskBroker:
    """A broker whose group has claimed two of three messages, one by one."""
    disk = SimDisk()
    broker = DiskBroker(disk, SimDefinitions(disk))
    broker.vhost.declare_queue("q", durable=True, arguments=arguments)
    publish(broker, b"1", b"2", b"3")
    leases, queue = broker.broker.leases, broker.vhost.queues["q"]
    group = leases.open(broker.vhost, queue, "g", 0, "holder")
    for _ in range(2):
        leases.claim(group, 1, 0, "holder")
    return broker


def test_a_group_counts_what_is_claimed_and_says_where_it_is() -> None:
    broker = claimed({})
    group = broker.vhost.queues["q"].leases.groups["g"]
    assert group.messages == 2
    assert [group.bounds(claim) for claim in group.claims.values()] == [(0, 1), (1, 2)]
    assert str(group) == "lease group 'g' of queue 'q' in vhost '/'"


def test_a_forgotten_group_leaves_its_epoch_and_its_last_commit() -> None:
    broker = claimed({})
    held: QueueLeases = broker.vhost.queues["q"].leases
    leases, group = broker.broker.leases, held.groups["g"]
    claim = group.claims[1]
    leases.commit(group, 1, "holder")
    leases.close(group, forget=True)
    assert held.groups == {}
    record = held.record_of_deleted()
    assert (record.epoch, record.claims, record.settling) == (1, (), (claim,))


def test_groups_go_with_their_queue() -> None:
    broker = claimed({})
    held: QueueLeases = broker.vhost.queues["q"].leases
    group = held.groups["g"]
    broker.vhost.delete_queue("q")
    assert held.groups == {}
    assert group.holder is None
    assert broker.broker.leases.of() == []
