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
            if log.time_of(middle) < moment:
                low = middle + 1
            else:
                high = middle
        return low
    return log.end()
