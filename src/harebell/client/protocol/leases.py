"""The verbs of leases: durable claims on a queue's messages (docs/guides/leases.md).

They are Harebell's own; with a broker that lacks them every one raises `ExtensionMissing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import lease as wire
from harebell.wire.v09 import methods
from harebell.wire.v09.lease import ClaimInfo

_MS = 1000


@dataclass(frozen=True)
class Lease:
    """The broker's answer when a group is opened.

    Args:
        epoch: required by all other verbs; older epochs are fenced.
        generation: the identity of the queue's log, which a queue that is deleted and declared
            again does not have.
        committed: the last committed claim; 0 for none.
        last: the last claim, committed or not; 0 for none.
        lost: the last claim that the broker took back, because its time was over, an operator
            released it, or its messages did not outlive a restart; 0 for none.
        timeout: seconds that claims are kept while no connection holds the group.
        claims: open claims, the oldest first.
    """

    epoch: int
    generation: str
    committed: int
    last: int
    lost: int
    timeout: float
    claims: tuple[ClaimInfo, ...]


def lease_open(
    channel: Verbs, queue: str, group: str, *, timeout: float | None = None
) -> Call[Lease]:
    """Open a group, or create it: all older epochs are fenced from now on.

    Args:
        channel: any channel; the group is held as long as its connection is open.
        queue: the name of a durable queue.
        group: the name of the group, which belongs to the queue.
        timeout: seconds that open claims wait while no connection holds the group; None leaves
            it as it is, which for a new group is a day.

    Raises:
        ExtensionMissing: the broker has no leases.
        PreconditionFailed: the queue type has no leases.
    """
    channel.need(wire.NAME)
    timeout_ms = 0 if timeout is None else max(1, round(timeout * _MS))
    method = methods.LeaseOpen(queue, group, timeout_ms)
    return channel.call(method, (methods.LeaseOpenOk,), _lease)


def lease_claim(
    channel: Verbs, queue: str, group: str, epoch: int, messages: int, octets: int = 0
) -> Call[ClaimInfo | None]:
    """Claim ready messages; None if there are none.

    Args:
        channel: any channel.
        queue: the name of the queue.
        group: the name of an open lease group.
        epoch: from `lease_open`.
        messages: maximum number of messages.
        octets: maximum bytes of messages, but at least one message; 0 for no limit.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = methods.LeaseClaim(queue, group, epoch, messages, octets)
    return channel.call(method, (methods.LeaseClaimOk,), _claim)


def lease_commit(channel: Verbs, queue: str, group: str, epoch: int, number: int) -> Call[int]:
    """Commit every claim up to a number; return the number of messages acknowledged by this call.

    Repeating it is safe. When it returns, the commit is synced.

    Raises:
        Fenced: the group has a later epoch.
        LeaseLost: one of these claims was released; none was committed now.
    """
    channel.need(wire.NAME)
    method = methods.LeaseCommit(queue, group, epoch, number)
    return channel.call(method, (methods.LeaseCommitOk,), _messages)


def lease_release(channel: Verbs, queue: str, group: str, epoch: int, number: int = 0) -> Call[int]:
    """Release claims from a number on, 0 for all; return the number of requeued messages.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = methods.LeaseRelease(queue, group, epoch, number)
    return channel.call(method, (methods.LeaseReleaseOk,), _messages)


def lease_renew(channel: Verbs, queue: str, group: str, epoch: int) -> Call[None]:
    """Hold the group with this connection, after the previous one was lost.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = methods.LeaseRenew(queue, group, epoch)
    return channel.call(method, (methods.LeaseRenewOk,), _nothing)


def lease_close(
    channel: Verbs, queue: str, group: str, epoch: int, *, forget: bool = False
) -> Call[int]:
    """Close the group; its open claims are kept until their timeout.

    Args:
        channel: any channel.
        queue: the name of the queue.
        group: the name of an open lease group.
        epoch: from `lease_open`.
        forget: requeue the messages of open claims and delete the group.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = methods.LeaseClose(queue, group, epoch, forget)
    return channel.call(method, (methods.LeaseCloseOk,), _messages)


def _lease(reply: methods.LeaseOpenOk) -> Lease:
    return Lease(
        reply.epoch,
        reply.generation,
        reply.committed,
        reply.last,
        reply.lost,
        reply.timeout / _MS,
        tuple(wire.decode_claims(reply.claims)),
    )


def _claim(reply: methods.LeaseClaimOk) -> ClaimInfo | None:
    if reply.number == 0:
        return None
    return ClaimInfo(reply.number, reply.messages, reply.octets, reply.first, reply.end)


def _messages(reply: methods.LeaseCommitOk | methods.LeaseReleaseOk | methods.LeaseCloseOk) -> int:
    return reply.messages


def _nothing(reply: methods.LeaseRenewOk) -> None:
    return None
