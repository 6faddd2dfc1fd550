"""Counters of published messages that all connections of one version of AMQP share.

They are incremented for each message, so the buckets of the size are plain C integers in the
compiled class. Rows of a stage count when they are routed, also if the stage is rolled back later.
"""

from __future__ import annotations

from harebell.base.c_types import i32, i64, isize
from harebell.base.histogram import Histogram

MESSAGE_BYTES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000)
"""Bounds of the buckets for the size of a body, those of RabbitMQ."""


class Arrivals:
    """Counters of published messages.

    Attributes:
        routed: copies that queues were to get.
        wanting_confirm: messages published on channels with confirms.
        byte_count: the sum of the bodies' sizes, in bytes.
        to_100, to_1k, to_10k, to_100k, to_1m, to_10m, to_50m, to_100m: messages by the size of
            their body: at most that large, and larger than the bucket before.
        above: messages that are larger.
    """

    def __init__(self) -> None:
        self.routed: i64 = 0
        self.wanting_confirm: i64 = 0
        self.byte_count: i64 = 0
        self.to_100: i64 = 0
        self.to_1k: i64 = 0
        self.to_10k: i64 = 0
        self.to_100k: i64 = 0
        self.to_1m: i64 = 0
        self.to_10m: i64 = 0
        self.to_50m: i64 = 0
        self.to_100m: i64 = 0
        self.above: i64 = 0

    def count(self, size: isize, queues: isize, confirms: bool) -> i32:
        """Count a message.

        Args:
            size: the size of its body, in bytes.
            queues: how many queues it was routed to.
            confirms: whether its publisher waits for a confirm.
        """
        self.routed += queues
        self.wanting_confirm += confirms
        self.byte_count += size
        if size <= 100:
            self.to_100 += 1
        elif size <= 1_000:
            self.to_1k += 1
        elif size <= 10_000:
            self.to_10k += 1
        elif size <= 100_000:
            self.to_100k += 1
        elif size <= 1_000_000:
            self.to_1m += 1
        elif size <= 10_000_000:
            self.to_10m += 1
        elif size <= 50_000_000:
            self.to_50m += 1
        elif size <= 100_000_000:
            self.to_100m += 1
        else:
            self.above += 1
        return 0

    def sizes(self) -> Histogram:
        """Return the sizes of the bodies as a histogram."""
        sizes = Histogram(MESSAGE_BYTES)
        sizes.counts = [
            *(self.to_100, self.to_1k, self.to_10k, self.to_100k, self.to_1m),
            *(self.to_10m, self.to_50m, self.to_100m, self.above),
        ]
        sizes.total = self.byte_count
        return sizes
