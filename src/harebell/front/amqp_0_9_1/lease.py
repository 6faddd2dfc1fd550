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
from harebell.wire.v09 import methods

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
    # Otherwise a crash could give the same claim or epoch to another program.
    if queue.durable:
        channel.hold_until_recorded()
    channel.connection.send(channel.number, reply)


def open_group(channel: Channel, method: methods.LeaseOpen) -> None:
    """lease.open: begin a new epoch, which fences older ones."""
    queue = find_readable(channel, method.queue)
    connection = channel.connection
    group = connection.broker.leases.open(
        channel.vhost, queue, method.group, method.timeout, connection, connection.user.name
    )
    claims = [
        wire.ClaimInfo(claim.number, claim.messages, claim.byte_count, *group.bounds(claim))
        for claim in group.claims.values()
    ]
    reply = methods.LeaseOpenOk(
        group.epoch,
        queue.identity,
        group.committed,
        group.last,
        group.lost,
        group.timeout,
        wire.encode_claims(claims),
    )
    _answer(channel, queue, reply)


def claim(channel: Channel, method: methods.LeaseClaim) -> None:
    """lease.claim: number 0 when nothing is ready."""
    group = _group(channel, method)
    connection = channel.connection
    made = connection.broker.leases.claim(group, method.messages, method.octets, connection)
    if made is None:
        # Nothing has changed, so nothing is waited for.
        connection.send(channel.number, methods.LeaseClaimOk())
        return
    reply = methods.LeaseClaimOk(made.number, made.messages, made.byte_count, *group.bounds(made))
    _answer(channel, group.queue, reply)


def commit(channel: Channel, method: methods.LeaseCommit) -> None:
    """lease.commit: repeatable; ordering keys of the claim are released."""
    group = _group(channel, method)
    connection = channel.connection
    count = connection.broker.leases.commit(group, method.number, connection)
    _answer(channel, group.queue, methods.LeaseCommitOk(group.committed, count))
    group.queue.drain()


def release(channel: Channel, method: methods.LeaseRelease) -> None:
    """lease.release: the reply is sent before redeliveries."""
    group = _group(channel, method)
    connection = channel.connection
    count = connection.broker.leases.release(group, method.number, connection)
    _answer(channel, group.queue, methods.LeaseReleaseOk(count))
    group.queue.drain()


def renew(channel: Channel, method: methods.LeaseRenew) -> None:
    """lease.renew: this connection holds the group."""
    group = _group(channel, method)
    channel.connection.broker.leases.renew(group, channel.connection)
    channel.connection.send(channel.number, methods.LeaseRenewOk())


def close(channel: Channel, method: methods.LeaseClose) -> None:
    """lease.close: release the group."""
    group = _group(channel, method)
    count = channel.connection.broker.leases.close(group, forget=method.forget)
    _answer(channel, group.queue, methods.LeaseCloseOk(count))
    group.queue.drain()


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.LeaseOpen: open_group,
    methods.LeaseClaim: claim,
    methods.LeaseCommit: commit,
    methods.LeaseRelease: release,
    methods.LeaseRenew: renew,
    methods.LeaseClose: close,
}
