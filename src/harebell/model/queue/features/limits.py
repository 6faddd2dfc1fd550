"""Length limits of a queue: how many messages may be ready, and what happens to one too many.

    drop-head            the oldest ready messages are dropped, or dead-lettered
    reject-publish       the new message is refused: the publisher's confirm is a nack
    reject-publish-dlx   and it goes to the dead-letter exchange

Ready messages count, and the bytes of their bodies; unacknowledged deliveries do not. Bytes are
counted only where there is a limit for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.model.queue.features.byte_accounting import ByteAccount

DROP_HEAD = "drop-head"
REJECT_PUBLISH = "reject-publish"
REJECT_PUBLISH_DLX = "reject-publish-dlx"
_NONE = -1


class Incoming:
    """Messages that are published to one queue together.

    Attributes:
        count: how many.
        octets: of their bodies.
        last: octets of the body of the last one.
    """

    __slots__ = ("count", "last", "octets")

    def __init__(self) -> None:
        self.count = self.octets = self.last = 0

    def add(self, octets: int) -> int:
        """Add a message with a body of so many octets."""
        self.count += 1
        self.octets += octets
        self.last = octets
        return 0


class Limits:
    """The limits of one queue, and the octets that are ready in it.

    Args:
        most: ready messages; -1 for any number.
        most_octets: octets of their bodies; -1 for any number.
        overflow: what happens to more: drop-head, reject-publish or reject-publish-dlx.
        takes_one_more: whether the message that is one too many is taken, and those after it are
            refused until four fifths of a limit are reached, as in a quorum queue.

    Attributes:
        drops: whether the oldest messages are dropped.
        letters: whether a refused message is dead-lettered.
        counts: whether octets are counted.
        octets: of the bodies that are ready, where they are counted.
        counting: how far these are counted, while a backlog from before the limit is counted.
        refusing: with `takes_one_more`: whether messages are refused now.
        reserved: whether room is reserved for the message that comes (distributed transactions).
    """

    __slots__ = (
        "counting",
        "counts",
        "drops",
        "letters",
        "most",
        "most_octets",
        "octets",
        "refusing",
        "reserved",
        "takes_one_more",
    )

    def __init__(
        self, most: int, most_octets: int, overflow: str, takes_one_more: bool = False
    ) -> None:
        self.most = most
        self.most_octets = most_octets
        self.drops = overflow not in (REJECT_PUBLISH, REJECT_PUBLISH_DLX)
        self.letters = overflow == REJECT_PUBLISH_DLX
        self.counts = most_octets != _NONE
        self.takes_one_more = takes_one_more
        self.octets = 0
        self.counting: ByteAccount | None = None
        self.refusing = False
        self.reserved = False

    def refuses(self, ready: int, octets: int) -> bool:
        """Return whether a message of that size is refused, whether it would be ready or not."""
        if self.drops or self.reserved:
            return False
        return self.refusing if self.takes_one_more else self.full(ready, octets)

    def full(self, ready: int, octets: int) -> bool:
        """Return whether one more message of that size would be too much."""
        if self.reserved:
            return False
        if self.most >= 0 and ready >= self.most:
            return True
        return self.counts and self.octets + octets > self.most_octets

    def has_room(self, ready: int, incoming: Incoming) -> bool:
        """Return whether messages would all be taken, one after the other.

        Args:
            ready: how many are ready already.
            incoming: those that are published.
        """
        count, octets = incoming.count, incoming.octets
        if self.takes_one_more:
            if self.refusing:
                return False
            if count:
                count -= 1
                octets -= incoming.last
        if not count:
            return True
        if self.most >= 0 and ready + count > self.most:
            return False
        return not self.counts or self.octets + octets <= self.most_octets

    def over(self, ready: int) -> bool:
        """Return whether too much is ready."""
        if self.most >= 0 and ready > self.most:
            return True
        return self.counts and self.octets > self.most_octets

    def low(self, ready: int) -> bool:
        """Return whether at most four fifths of each limit are used."""
        if self.most >= 0 and ready > four_fifths(self.most):
            return False
        return not self.counts or self.octets <= four_fifths(self.most_octets)

    def clear(self) -> int:
        """Nothing is ready any more."""
        self.octets = 0
        self.counting = None
        self.refusing = False
        return 0


def four_fifths(most: int) -> int:
    """Return the share, rounded down; it fits wherever `most` does."""
    share = most // 5
    return most - share - (most > share * 5)


def limits_of(settings: Mapping[str, Any], *, quorum: bool) -> Limits | None:
    """Return the limits that settings give; None if there are none.

    Args:
        settings: those in effect, by their policy keys.
        quorum: whether the queue is a quorum queue: reject-publish-dlx means drop-head there.
    """
    most = settings.get("max-length", _NONE)
    most_octets = settings.get("max-length-bytes", _NONE)
    if most == most_octets == _NONE:
        return None
    overflow = settings.get("overflow", DROP_HEAD)
    if overflow == REJECT_PUBLISH_DLX and quorum:
        overflow = DROP_HEAD
    return Limits(most, most_octets, overflow, takes_one_more=quorum)
