"""Finding positions by time: whole segments first, then by halves."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.ports import Log
from harebell.store.segment import Segment


def position_at(log: Log, segments: Sequence[Segment], moment: int) -> int:
    """The first position appended at a moment or later; the log's end without one.

    Args:
        log: gives the time of a position.
        segments: of the log, in order.
        moment: milliseconds since 1970.
    """
    for segment in segments:
        if segment.newest < moment or not segment.positions.count:
            continue
        low, high = max(segment.first, log.first()), segment.positions.end() - 1
        while low < high:
            middle = low + (high - low) // 2
            # What was settled has no time any more: the next one that is there is asked.
            there = log.next(middle)
            if there <= high and log.time_of(there) < moment:
                low = there + 1
            else:
                high = middle
        return log.next(low)
    return log.end()
