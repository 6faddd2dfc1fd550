"""Find positions by time: the segment first, then a binary search in it."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.ports import Log
from harebell.store.segment import Segment


def position_at(log: Log, segments: Sequence[Segment], moment: int) -> int:
    """Return the first position appended at a time or later; the log's end if there is none.

    Args:
        log: the log.
        segments: its segments, in order.
        moment: the time in milliseconds since 1970.
    """
    for segment in segments:
        if segment.newest < moment or not segment.positions.count:
            continue
        low, high = max(segment.first, log.first()), segment.positions.end() - 1
        while low < high:
            middle = low + (high - low) // 2
            # Settled messages have no time any more: the next live one decides.
            there = log.next(middle)
            if there <= high and log.time_of(there) < moment:
                low = there + 1
            else:
                high = middle
        return log.next(low)
    return log.end()
