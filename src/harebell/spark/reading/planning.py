"""Split position ranges into partitions for tasks.

A range may have fewer messages than positions: some are acknowledged, or belong to other claims.
It is split as if they were spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from harebell.client.url import URL
from harebell.spark.limits import SPARK_ROWS_PER_PARTITION
from harebell.spark.options.source_options import BY_KEY, Options


@dataclass(frozen=True)
class OffsetRange:
    """A range of positions of one queue.

    Args:
        queue: the name of the queue.
        generation: identity of its log.
        first: first position.
        end: position after the last.
        messages: number of messages, if known.
        group: name of the lease group; "" without one.
        epoch: of the group.
        claim: of the group; 0 without one.
    """

    queue: str
    generation: str
    first: int
    end: int
    messages: int
    group: str = ""
    epoch: int = 0
    claim: int = 0


class RangePartition(InputPartition):
    """The ranges that one task reads from the broker.

    The address is part of the partition, not of the reader: it contains a password, and only tasks
    need it.

    Args:
        ranges: in their order.
        url: address of the broker, with user and password.
        share: of the ordering keys, from 0.
        shares: how many tasks share the keys of these ranges; 1 for all rows.
    """

    def __init__(
        self, ranges: list[OffsetRange], url: URL, share: int = 0, shares: int = 1
    ) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.url = url
        self.share = share
        self.shares = shares

    def __repr__(self) -> str:
        share = f", share {self.share} of {self.shares}" if self.shares > 1 else ""
        return f"RangePartition({self.ranges!r}{share})"


def cut(
    ranges: Sequence[OffsetRange],
    partitions: int,
    max_messages: int | None,
    *,
    minimum: int = SPARK_ROWS_PER_PARTITION,
    by_queue: bool = False,
) -> list[list[OffsetRange]]:
    """Split ranges into partitions of about equal size.

    Args:
        ranges: in their order.
        partitions: number of partitions to make; small ranges make fewer.
        max_messages: maximum number of messages of a partition, or None.
        minimum: minimum number of messages of a partition.
        by_queue: make one partition per queue.
    """
    ranges = [one for one in ranges if one.first < one.end]
    if by_queue:
        queues = dict.fromkeys(one.queue for one in ranges)
        return [[one for one in ranges if one.queue == queue] for queue in queues]
    total = sum(one.messages for one in ranges)
    count = max(1, min(partitions, -(-total // minimum)))
    if max_messages is not None:
        count = max(count, -(-total // max_messages))
    # Partition n ends behind message bounds[n] of all ranges together.
    bounds = [total * number // count for number in range(1, count + 1)]
    made: list[list[OffsetRange]] = [[] for _ in bounds]
    number = before = 0
    for one in ranges:
        done, first = 0, one.first
        while number < count - 1 and before + one.messages > bounds[number]:
            share = bounds[number] - before
            # As if messages were spread evenly: a guess that is wrong makes sizes unequal, no more.
            split = one.first + (one.end - one.first) * share // one.messages
            if split > first:
                made[number].append(replace(one, first=first, end=split, messages=share - done))
            done, first = share, max(split, first)
            number += 1
        if first < one.end:
            made[number].append(replace(one, first=first, messages=one.messages - done))
        before += one.messages
    return [part for part in made if part]


def planned(ranges: Sequence[OffsetRange], options: Options) -> list[RangePartition]:
    """Return the partitions of a micro-batch, or of a batch read, as the options require."""
    if options.partition_by == BY_KEY:
        ranges = [one for one in ranges if one.first < one.end]
        count = share_count(ranges, options.partitions, options.least_rows)
        whole = list(ranges)
        return [RangePartition(whole, options.url, share, count) for share in range(count) if whole]
    pieces = cut(
        ranges,
        options.partitions,
        options.max_records_per_partition,
        minimum=options.least_rows,
        by_queue=options.partition_by == "queue",
    )
    return [RangePartition(piece, options.url) for piece in pieces]


def share_count(ranges: Sequence[OffsetRange], partitions: int, minimum: int) -> int:
    """Return how many tasks share the keys of some ranges.

    Args:
        ranges: of the micro-batch.
        partitions: how many tasks are wanted; small ranges make fewer.
        minimum: minimum number of messages for each.
    """
    return max(1, min(partitions, -(-sum(one.messages for one in ranges) // minimum)))
