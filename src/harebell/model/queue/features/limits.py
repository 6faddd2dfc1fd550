"""Length limits of a queue, and its overflow behaviour.

    drop-head            the oldest ready messages are dropped, or dead-lettered
    reject-publish       the new message is refused: the publisher's confirm is a nack
    reject-publish-dlx   the same, and it is dead-lettered

The limits apply to ready messages and the bytes of their bodies, not to unacknowledged deliveries.
Bytes are counted only if they are limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, i64

if TYPE_CHECKING:
    from harebell.base.timers import Timer
    from harebell.model.queue.features.byte_accounting import ByteAccount

DROP_HEAD = "drop-head"
REJECT_PUBLISH = "reject-publish"
REJECT_PUBLISH_DLX = "reject-publish-dlx"
_NONE = -1


class Incoming:
    """Messages that are published to one queue together.

    Attributes:
        count: the number of messages.
        byte_count: bytes of their bodies.
        last: bytes of the body of the last one.
    """

    def __init__(self) -> None:
        self.count: i64 = 0
        self.byte_count: i64 = 0
        self.last: i64 = 0

    def add(self, byte_count: i64) -> Done:
        """Add a message with a body of that size."""
        self.count += 1
        self.byte_count += byte_count
        self.last = byte_count
        return 0

    def add_rows(self, count: i64, byte_count: i64, last: i64) -> Done:
        """Add messages.

        Args:
            count: how many.
            byte_count: bytes of their bodies.
            last: bytes of the body of the last one.
        """
        self.count += count
        self.byte_count += byte_count
        self.last = last
        return 0


class Limits:
    """The limits of one queue, and the ready bytes.

    Args:
        max_length: most ready messages; -1 for no limit.
        max_bytes: most bytes of their bodies; -1 for no limit.
        overflow: drop-head, reject-publish or reject-publish-dlx.
        takes_one_more: whether the message that exceeds a limit is taken, and later ones are
            refused until the queue is down to four fifths of the limit, as in a quorum queue.

    Attributes:
        drops: whether the oldest messages are dropped.
        letters: whether refused messages are dead-lettered.
        counts: whether bytes are counted.
        byte_count: bytes of the ready bodies, if they are counted.
        counting: progress of the count while a backlog from before the limit is counted.
        turn: the timer of the turn in which counting and dropping go on; None before the first.
        refusing: with `takes_one_more`: whether messages are refused now.
        reserved: whether room is reserved for the next message (distributed transactions).
    """

    def __init__(
        self, max_length: i64, max_bytes: i64, overflow: str, takes_one_more: bool = False
    ) -> None:
        self.max_length = max_length
        self.max_bytes = max_bytes
        self.drops = overflow not in (REJECT_PUBLISH, REJECT_PUBLISH_DLX)
        self.letters = overflow == REJECT_PUBLISH_DLX
        self.counts = max_bytes != _NONE
        self.takes_one_more = takes_one_more
        self.byte_count: i64 = 0
        self.counting: ByteAccount | None = None
        self.turn: Timer | None = None
        self.refusing = False
        self.reserved = False

    def refuses(self, ready: i64, byte_count: i64) -> C[bool]:
        """True if a message of that size is refused, whether or not it would be ready."""
        if self.drops or self.reserved:
            return False
        # RabbitMQ's quorum queues refuse by a state that publishers are told, which lags behind;
        # its classic queues check each message.
        return self.refusing if self.takes_one_more else self.full(ready, byte_count)

    def full(self, ready: i64, byte_count: i64) -> C[bool]:
        """True if one more message of that size would exceed a limit."""
        if self.reserved:
            return False
        if self.max_length >= 0 and ready >= self.max_length:
            return True
        return self.counts and self.byte_count + byte_count > self.max_bytes

    def has_room(self, ready: i64, incoming: Incoming) -> C[bool]:
        """True if all messages would be taken, one after the other.

        Args:
            ready: how many are ready already.
            incoming: the messages.
        """
        count: i64
        byte_count: i64
        count, byte_count = incoming.count, incoming.byte_count
        if self.takes_one_more:
            if self.refusing:
                return False
            # The last one may exceed the limit.
            if count:
                count -= 1
                byte_count -= incoming.last
        if not count:
            return True
        if self.max_length >= 0 and ready + count > self.max_length:
            return False
        return not self.counts or self.byte_count + byte_count <= self.max_bytes

    def over(self, ready: i64) -> C[bool]:
        """True if a limit is exceeded."""
        if self.max_length >= 0 and ready > self.max_length:
            return True
        return self.counts and self.byte_count > self.max_bytes

    def low(self, ready: i64) -> C[bool]:
        """True if at most four fifths of each limit are used."""
        if self.max_length >= 0 and ready > four_fifths(self.max_length):
            return False
        return not self.counts or self.byte_count <= four_fifths(self.max_bytes)

    def clear(self) -> Done:
        """Reset the count: nothing is ready."""
        self.byte_count = 0
        self.counting = None
        self.refusing = False
        return 0


def four_fifths(limit: i64) -> i64:
    """Return four fifths, rounded down, without overflow for any value that fits."""
    # `limit * 4` exceeds 64 bits for the largest limits, and compiled code would wrap around.
    share = limit // 5
    return limit - share - (limit > share * 5)


def limits_of(settings: Mapping[str, Any], *, quorum: bool) -> Limits | None:
    """Return the limits of the settings; None if there are none.

    Args:
        settings: arguments and policies merged, by policy key.
        quorum: whether it is a quorum queue, where reject-publish-dlx means drop-head.
    """
    max_length = settings.get("max-length", _NONE)
    max_bytes = settings.get("max-length-bytes", _NONE)
    if max_length == max_bytes == _NONE:
        return None
    overflow = settings.get("overflow", DROP_HEAD)
    # A quorum queue of RabbitMQ knows no reject-publish-dlx, and falls back to the default.
    if overflow == REJECT_PUBLISH_DLX and quorum:
        overflow = DROP_HEAD
    return Limits(max_length, max_bytes, overflow, takes_one_more=quorum)
