"""The verbs of leases: claims on a queue's messages that outlive both ends (docs/guides/leases.md).

They are Harebell's own; against a broker that lacks them every one raises `ExtensionMissing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import lease as wire
from harebell.wire.v09.lease import ClaimInfo

_MS = 1000


@dataclass(frozen=True)
class Lease:
    """What the broker says when a group is opened.

    Args:
        epoch: to be given with everything else; older ones are fenced.
        generation: the identity of the queue's log, which a queue that is deleted and declared
            again does not have.
        committed: the last claim that was committed; 0 for none.
        last: the last claim that was made, committed or not; 0 for none.
        lost: the last claim that the broker took back, because its time was over, an operator
            released it, or its messages did not outlive a restart; 0 for none.
        timeout: seconds that claims wait while no connection holds the group.
        claims: those that are open, the oldest first.
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
    """Take a group over, or make it: every older epoch of it is fenced from now on.

    Args:
        channel: any channel; the group is held as long as its connection lasts.
        queue: the queue.
        group: the name of the group, which belongs to the queue.
        timeout: seconds that open claims wait while no connection holds the group; None leaves
            it as it is, which for a new group is a day.

    Raises:
        ExtensionMissing: the broker has no leases.
        PreconditionFailed: the queue is of a kind that has none.
    """
    channel.need(wire.NAME)
    wanted = 0 if timeout is None else max(1, round(timeout * _MS))
    method = wire.LeaseOpen(queue, group, wanted)
    return channel.call(method, (wire.LeaseOpenOk,), _lease)


def lease_claim(
    channel: Verbs, queue: str, group: str, epoch: int, messages: int, octets: int = 0
) -> Call[ClaimInfo | None]:
    """Claim messages that are ready; None when there are none.

    Args:
        channel: any channel.
        queue: the queue.
        group: the group.
        epoch: from `lease_open`.
        messages: how many at most.
        octets: stop before more than that, but never before the first message; 0 for no limit.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = wire.LeaseClaim(queue, group, epoch, messages, octets)
    return channel.call(method, (wire.LeaseClaimOk,), _claim)


def lease_commit(channel: Verbs, queue: str, group: str, epoch: int, number: int) -> Call[int]:
    """Be done with every claim up to a number; answers how many messages were settled now.

    It is fine to do that again. When it returns, the broker's disk knows.

    Raises:
        Fenced: the group has a later epoch.
        LeaseLost: one of these claims was taken back; none was committed now.
    """
    channel.need(wire.NAME)
    method = wire.LeaseCommit(queue, group, epoch, number)
    return channel.call(method, (wire.LeaseCommitOk,), _messages)


def lease_release(channel: Verbs, queue: str, group: str, epoch: int, number: int = 0) -> Call[int]:
    """Give claims from a number on back to the queue, 0 for all; answers how many messages.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = wire.LeaseRelease(queue, group, epoch, number)
    return channel.call(method, (wire.LeaseReleaseOk,), _messages)


def lease_renew(channel: Verbs, queue: str, group: str, epoch: int) -> Call[None]:
    """Hold the group with this connection, for the one before is lost.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = wire.LeaseRenew(queue, group, epoch)
    return channel.call(method, (wire.LeaseRenewOk,), _nothing)


def lease_close(
    channel: Verbs, queue: str, group: str, epoch: int, *, forget: bool = False
) -> Call[int]:
    """Hold the group no longer; its open claims wait for their timeout.

    Args:
        channel: any channel.
        queue: the queue.
        group: the group.
        epoch: from `lease_open`.
        forget: let its open claims go back to the queue and forget the group.

    Raises:
        Fenced: the group has a later epoch.
    """
    channel.need(wire.NAME)
    method = wire.LeaseClose(queue, group, epoch, forget)
    return channel.call(method, (wire.LeaseCloseOk,), _messages)


def _lease(reply: wire.LeaseOpenOk) -> Lease:
    return Lease(
        reply.epoch,
        reply.generation,
        reply.committed,
        reply.last,
        reply.lost,
        reply.timeout / _MS,
        tuple(wire.decode_claims(reply.claims)),
    )


def _claim(reply: wire.LeaseClaimOk) -> ClaimInfo | None:
    if reply.number == 0:
        return None
    return ClaimInfo(reply.number, reply.messages, reply.octets, reply.first, reply.end)


def _messages(reply: wire.LeaseCommitOk | wire.LeaseReleaseOk | wire.LeaseCloseOk) -> int:
    return reply.messages


def _nothing(reply: wire.LeaseRenewOk) -> None:
    return None
