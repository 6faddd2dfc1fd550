"""A lease group as the broker knows it, compared with the offset that Spark's checkpoint has.

The checkpoint and the broker can be restored from copies of different dates, so either may know
claims that the other does not. `Standing` names each case; the eras (`harebell.base.eras`) tell
whether equal numbers are the same claims.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from harebell.base.eras import eras_before
from harebell.client.protocol.leases import Lease
from harebell.spark.reading.offsets import ClaimOffset


class Standing(enum.Enum):
    """What the broker's group has of the claims before an offset of the checkpoint.

    ANOTHER_LOG: none: the queue was deleted and declared again.
    SAME: all of them, and it has committed no later ones.
    CHECKPOINT_IS_OLDER: all of them, and it has committed later ones.
    BROKER_IS_OLDER: some of them: the broker's data was restored from an older copy.
    GROUP_IS_NEW: the broker has deleted the group and counts from 1 again.
    CHANGED: claims that no broker has made: the checkpoint was changed by hand.
    """

    ANOTHER_LOG = "another log"
    SAME = "same"
    CHECKPOINT_IS_OLDER = "the checkpoint is older"
    BROKER_IS_OLDER = "the broker is older"
    GROUP_IS_NEW = "the group is new"
    CHANGED = "changed"


class Comparison(NamedTuple):
    """A group beside an offset of the checkpoint.

    Args:
        standing: which case it is.
        shared: the last claim before the offset that the broker has made, too.
        missing: claims up to the offset that are neither open nor committed (`Group.missing`).
        continuation: the offset from which the query goes on.
    """

    standing: Standing
    shared: int
    missing: list[range]
    continuation: ClaimOffset


class Group:
    """A group that this process holds.

    Args:
        name: of the group.
        lease: the broker's answer to opening it.
        eras: of its claims; "" if the broker knows none.
        connection_number: of the connection on which it was opened.
    """

    def __init__(self, name: str, lease: Lease, eras: str, connection_number: int) -> None:
        self.name = name
        self.eras = eras
        self.epoch = lease.epoch
        self.generation = lease.generation
        self.committed = lease.committed
        self.newest = lease.last
        self.claims = {claim.number: claim for claim in lease.claims}
        self.connection_number = connection_number

    def offset(self, claim: int) -> ClaimOffset:
        """Return the offset after a claim."""
        return ClaimOffset(self.generation, self.name, claim, eras_before(self.eras, claim + 1))

    def shared(self, offset: ClaimOffset) -> int:
        """Return the last claim before an offset that checkpoint and broker have in common."""
        return offset.shared(self.eras, self.newest)

    def compare(self, offset: ClaimOffset) -> Comparison:
        """Compare the group with an offset of the checkpoint."""
        shared = self.shared(offset)
        standing = self._standing(offset, shared)
        continuation = offset
        if standing in (Standing.ANOTHER_LOG, Standing.GROUP_IS_NEW):
            # The numbers of the offset name nothing in this group.
            continuation = self.offset(self.committed)
        elif standing is Standing.BROKER_IS_OLDER:
            # The numbers after `shared` are given again, to claims of other messages.
            continuation = self.offset(shared)
        return Comparison(standing, shared, self.missing(0, offset, shared), continuation)

    def _standing(self, offset: ClaimOffset, shared: int) -> Standing:
        if self.generation != offset.generation:
            return Standing.ANOTHER_LOG
        has_eras = bool(self.eras and offset.eras)
        if has_eras and self.newest < offset.claim == offset.shared(self.eras, offset.claim):
            # Both have one history, so no restore explains that the broker has made fewer.
            return Standing.CHANGED
        if shared == offset.claim:
            newer = offset.claim < self.committed
            return Standing.CHECKPOINT_IS_OLDER if newer else Standing.SAME
        # Without eras, as in offsets of earlier versions, a restored broker cannot be told from one
        # that has deleted the group; the cautious answer uses no number twice.
        return Standing.BROKER_IS_OLDER if has_eras else Standing.GROUP_IS_NEW

    def missing(self, first: int, offset: ClaimOffset, shared: int) -> list[range]:
        """Return the claims after `first` up to an offset that are neither open nor committed.

        The broker does not know them, or has made others with their numbers: its data was restored
        from an older copy, or the group was forgotten.

        Args:
            first: a claim before the offset.
            offset: of the checkpoint.
            shared: the last claim before the offset that the broker has made, too.

        Returns:
            Ranges in order. In each, the broker has made all of the numbers, or none.
        """
        made = range(max(first, self.committed) + 1, shared + 1)
        closed = [range(each, each + 1) for each in made if each not in self.claims]
        unknown = range(max(shared, first) + 1, offset.claim + 1)
        return [*closed, unknown] if unknown else closed

    def record_commit(self, upto: int) -> None:
        """Record that the claims up to a number are committed."""
        self.committed = max(self.committed, upto)
        for number in [number for number in self.claims if number <= upto]:
            del self.claims[number]

    def after(self, claim: int) -> list[int]:
        """Return the numbers of the open claims after a claim, in order."""
        return sorted(number for number in self.claims if number > claim)
