"""A histogram: how many values are at most as large as each of some bounds.

    bounds    0.001   0.01   0.1
    counts   [  3   |   5  |  0  |  1 ]      the last one is for values above all bounds

For events that are not on the hot path: syncs, ticks, failed deliveries.
"""

from __future__ import annotations

from bisect import bisect_left

SYNC_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01),
    *(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
"""Bounds for the duration of a sync, in seconds."""
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Bounds for the delay of the event loop, in seconds."""
DELIVERY_COUNTS = (0, 1, 2, 3, 5, 10, 20)
"""Bounds for the failed deliveries of a message."""


class Histogram:
    """Counts values by size.

    Args:
        bounds: the upper bounds of the buckets, in order.

    Attributes:
        bounds: as given.
        counts: the number of values in each bucket, and above all bounds.
        total: the sum of the values.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total: float = 0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, other: Histogram) -> None:
        """Add the values of another histogram with the same bounds."""
        self.counts = [
            ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)
        ]
        self.total += other.total

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)
