"""A lease group, and all groups of one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.share import Shares
from harebell.base.timers import Timer
from harebell.model import limits
from harebell.model.lease.record import Claim, GroupRecord
from harebell.model.queue.queue import MessageQueue
from harebell.model.resource import rendered

if TYPE_CHECKING:
    from harebell.model.lease.leases import Leases
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

ROWS = "lease"
"""The kind of a group definition; its key is vhost, queue and group."""
FLOOR = ""
"""Group name of the row with what is kept of deleted groups."""

_REMEDY = (
    "`harebell leases list` shows them, `harebell leases release QUEUE GROUP --forget` removes one"
)

Settling = tuple[int, Claim]
"""A committed claim, with the commit that makes its settlement durable."""


class Group:
    """A lease group of a queue.

    Args:
        vhost: the name of its vhost.
        queue: the name of its queue.
        name: unique in its queue.
        epoch: its current epoch.

    Attributes:
        committed: the last committed claim.
        last: the last claim.
        lost: the last claim that was taken back.
        unreported: claims that were taken back since the group was opened: its client does not
            know of them yet.
        timeout: how long its claims stay without a holder, in milliseconds.
        claims: the open claims by number, the oldest first.
        settling: committed claims that may not be settled in the stored log yet.
        holder: the connection that holds it.
        timer: releases its open claims, or deletes the group if it has none.
        idle_since: wall clock time since when it has neither claims nor a holder; 0 otherwise.
        written: the last commit that its row was written for.
        user: the name of the user who has made it; "" for a group of a version without users.
        eras: of its claim numbers, see `harebell.base.eras`.
    """

    def __init__(self, vhost: VHost, queue: MessageQueue, name: str, epoch: int) -> None:
        self.vhost = vhost
        self.queue = queue
        self.name = name
        self.epoch = epoch
        self.committed = self.last = self.lost = 0
        self.unreported: list[int] = []
        self.timeout = limits.LEASE_TIMEOUT_MS
        self.claims: dict[int, Claim] = {}
        self.settling: list[Settling] = []
        self.holder: object = None
        self.timer: Timer | None = None
        self.idle_since = 0
        self.written = -1
        self.user = ""
        self.eras = ""

    def __str__(self) -> str:
        return f"lease group '{self.name}' of {rendered('queue', self.queue.name, self.vhost.name)}"

    @property
    def messages(self) -> int:
        """Return how many messages it has claimed and not committed."""
        return sum(claim.messages for claim in self.claims.values())

    def claims_from(self, number: int) -> list[Claim]:
        """Return the open claims from a number on."""
        return [claim for claim in self.claims.values() if claim.number >= number]

    def bounds(self, claim: Claim) -> tuple[int, int]:
        """Return the first position of a claim, and the one behind its last."""
        place = self.queue.claims().position_of
        return (
            min([place(run.level, run.first) for run in claim.runs]),
            max([place(run.level, run.end - 1) for run in claim.runs]) + 1,
        )


class QueueLeases:
    """The lease groups of one queue.

    Args:
        leases: the leases of the broker.

    Attributes:
        groups: the groups by name.
        shares: how many of them each user has made.
        floor: the highest epoch of a deleted group.
        settling: committed claims of deleted groups, see `Group.settling`.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self.groups: dict[str, Group] = {}
        self.shares = Shares("lease groups", limits.LEASE_GROUPS, _REMEDY)
        self.floor = 0
        self.settling: list[Settling] = []

    def unstore(self, vhost: VHost, queue: Queue) -> None:
        """Remove the rows of the groups: the queue is deleted."""
        # Groups of a transient queue have no rows.
        if queue.durable:
            for name in (*self.groups, *([FLOOR] if self.floor else [])):
                vhost.recorder.drop(ROWS, (vhost.name, queue.name, name))

    def gone(self) -> None:
        """Delete the groups: the queue was deleted."""
        for group in self.groups.values():
            self._leases.drop(group)
        self.groups.clear()

    def record_of_deleted(self) -> GroupRecord:
        """Return the record of deleted groups: their highest epoch, and unfinished settlements.

        The epoch fences a client of a deleted group when a group of that name is made again.
        """
        return GroupRecord(self.floor, 0, 0, 0, 0, (), tuple([claim for _, claim in self.settling]))
