"""How much may wait in a queue, and what happens to what is too much.

    drop-head            the oldest ready messages go, as dead letters where that is wanted
    reject-publish       the new message is refused: the publisher's confirm is a nack
    reject-publish-dlx   and goes to the dead-letter exchange

Ready messages count, and the octets of their bodies; deliveries that are out do not. Octets are
counted only where there is a limit for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.model.queue.counting import Counting

DROP_HEAD = "drop-head"
REJECT_PUBLISH = "reject-publish"
REJECT_PUBLISH_DLX = "reject-publish-dlx"
_NONE = -1


class Incoming:
    """Messages that are to come to one queue together.

    Attributes:
        count: how many.
        octets: of their bodies.
        last: octets of the body of the last one.
    """

    __slots__ = ("count", "last", "octets")

    def __init__(self) -> None:
        self.count = self.octets = self.last = 0

    def add(self, octets: int) -> int:
        """One more, with a body of so many octets."""
        self.count += 1
        self.octets += octets
        self.last = octets
        return 0


class Overflow:
    """The limits of one queue, and the octets that wait in it.

    Args:
        most: ready messages; -1 for any number.
        most_octets: octets of their bodies; -1 for any number.
        way: what happens to more: drop-head or one of its kin.

    Attributes:
        drops: whether the oldest messages go.
        letters: whether a refused message is a dead letter.
        counts: whether octets are counted.
        octets: of the bodies that are ready, where they are counted.
        counting: how far that has got, while what was there before the limit is counted.
        refusing: a quorum queue was too full, and still is not empty enough.
        promised: the message that comes has been promised room.
    """

    __slots__ = (
        "counting",
        "counts",
        "drops",
        "letters",
        "most",
        "most_octets",
        "octets",
        "promised",
        "refusing",
    )

    def __init__(self, most: int, most_octets: int, way: str) -> None:
        self.most = most
        self.most_octets = most_octets
        self.drops = way not in (REJECT_PUBLISH, REJECT_PUBLISH_DLX)
        self.letters = way == REJECT_PUBLISH_DLX
        self.counts = most_octets != _NONE
        self.octets = 0
        self.counting: Counting | None = None
        self.refusing = False
        self.promised = False

    def full(self, ready: int, octets: int) -> bool:
        """Whether one more message of that size would be too much."""
        if self.promised:
            return False
        if self.most >= 0 and ready >= self.most:
            return True
        return self.counts and self.octets + octets > self.most_octets

    def has_room(self, ready: int, incoming: Incoming, one_more: bool) -> bool:
        """Whether messages would all be taken, one after the other.

        Args:
            ready: how many wait already.
            incoming: those that are to come.
            one_more: whether the first that is too much is taken too.
        """
        count, octets = incoming.count, incoming.octets
        if one_more and count:
            count -= 1
            octets -= incoming.last
        if not count:
            return True
        if self.most >= 0 and ready + count > self.most:
            return False
        return not self.counts or self.octets + octets <= self.most_octets

    def over(self, ready: int) -> bool:
        """Whether there is too much."""
        if self.most >= 0 and ready > self.most:
            return True
        return self.counts and self.octets > self.most_octets

    def low(self, ready: int) -> bool:
        """Whether at most four fifths of what may be there is."""
        if self.most >= 0 and ready > four_fifths(self.most):
            return False
        return not self.counts or self.octets <= four_fifths(self.most_octets)


def four_fifths(most: int) -> int:
    """The share, rounded down; fits wherever `most` does."""
    share = most // 5
    return most - share - (most > share * 5)


def overflow_of(settings: Mapping[str, Any], *, letters: bool) -> Overflow | None:
    """The limits that settings give; None when there are none.

    Args:
        settings: those in effect, by their policy keys.
        letters: whether the queue knows reject-publish-dlx; if not, that means drop-head.
    """
    most = settings.get("max-length", _NONE)
    most_octets = settings.get("max-length-bytes", _NONE)
    if most == most_octets == _NONE:
        return None
    way = settings.get("overflow", DROP_HEAD)
    if way == REJECT_PUBLISH_DLX and not letters:
        way = DROP_HEAD
    return Overflow(most, most_octets, way)
