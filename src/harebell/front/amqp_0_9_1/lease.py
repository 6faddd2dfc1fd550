"""The class lease, Harebell's own: claims on a queue's messages, in 0-9-1 only.

docs/guides/leases.md explains it.

Leases need the permission to read the queue. Replies about durable queues are sent when the
change is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1.queue import find_readable
from harebell.wire.v09 import lease as wire

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.model.lease.group import Group
    from harebell.model.queue.contract import Queue


def _group(channel: Channel, method: Any) -> Group:
    """Find a group, if the epoch is its current one."""
    queue = find_readable(channel, method.queue)
    leases = channel.connection.broker.leases
    group: Group = leases.current(channel.vhost, queue, method.group, method.epoch)
    return group


def _answer(channel: Channel, queue: Queue, reply: Any) -> None:
    """Reply when the change is on disk."""
    if queue.durable:
        channel.hold_until_recorded()
    channel.connection.send(channel.number, reply)


def open_group(channel: Channel, method: wire.LeaseOpen) -> None:
    """lease.open: begin a new epoch, which fences older ones."""
    queue = find_readable(channel, method.queue)
    connection = channel.connection
    group = connection.broker.leases.open(
        channel.vhost, queue, method.group, method.timeout, connection
    )
    claims = [
        wire.ClaimInfo(claim.number, claim.messages, claim.byte_count, *group.bounds(claim))
        for claim in group.claims.values()
    ]
    reply = wire.LeaseOpenOk(
        group.epoch,
        queue.identity,
        group.committed,
        group.last,
        group.lost,
        group.timeout,
        wire.encode_claims(claims),
    )
    _answer(channel, queue, reply)


def claim(channel: Channel, method: wire.LeaseClaim) -> None:
    """lease.claim: number 0 when nothing is ready."""
    group = _group(channel, method)
    connection = channel.connection
    made = connection.broker.leases.claim(group, method.messages, method.octets, connection)
    if made is None:
        connection.send(channel.number, wire.LeaseClaimOk())
        return
    reply = wire.LeaseClaimOk(made.number, made.messages, made.byte_count, *group.bounds(made))
    _answer(channel, group.queue, reply)


def commit(channel: Channel, method: wire.LeaseCommit) -> None:
    """lease.commit: repeatable; ordering keys of the claim are released."""
    group = _group(channel, method)
    connection = channel.connection
    count = connection.broker.leases.commit(group, method.number, connection)
    _answer(channel, group.queue, wire.LeaseCommitOk(group.committed, count))
    group.queue.drain()


def release(channel: Channel, method: wire.LeaseRelease) -> None:
    """lease.release: the reply is sent before redeliveries."""
    group = _group(channel, method)
    connection = channel.connection
    count = connection.broker.leases.release(group, method.number, connection)
    _answer(channel, group.queue, wire.LeaseReleaseOk(count))
    group.queue.drain()


def renew(channel: Channel, method: wire.LeaseRenew) -> None:
    """lease.renew: this connection holds the group."""
    group = _group(channel, method)
    channel.connection.broker.leases.renew(group, channel.connection)
    channel.connection.send(channel.number, wire.LeaseRenewOk())


def close(channel: Channel, method: wire.LeaseClose) -> None:
    """lease.close: release the group."""
    group = _group(channel, method)
    count = channel.connection.broker.leases.close(group, forget=method.forget)
    _answer(channel, group.queue, wire.LeaseCloseOk(count))
    group.queue.drain()


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    wire.LeaseOpen: open_group,
    wire.LeaseClaim: claim,
    wire.LeaseCommit: commit,
    wire.LeaseRelease: release,
    wire.LeaseRenew: renew,
    wire.LeaseClose: close,
}
