"""The positions in a queue where a job has put messages, as ranges: what it may take back.

A range is the first and the last position. The positions of a priority queue have their level in
the lowest bits, so a step leads from a position to the next one of its level.
"""

from __future__ import annotations

from harebell.model.limits import JOB_RANGES

Ranges = list[list[int]]


def has(ranges: Ranges, position: int, step: int) -> bool:
    """Return whether a position is in one of the ranges."""
    return any(
        first <= position <= last and (position - first) % step == 0 for first, last in ranges
    )


def takes(ranges: Ranges, position: int, step: int) -> bool:
    """Return whether there is room for a position."""
    return len(ranges) < JOB_RANGES or _before(ranges, position, step) is not None


def add(ranges: Ranges, position: int, step: int) -> None:
    """Note a position, if there is room for it."""
    before = _before(ranges, position, step)
    if before is not None:
        before[1] = position
    elif len(ranges) < JOB_RANGES:
        ranges.append([position, position])


def _before(ranges: Ranges, position: int, step: int) -> list[int] | None:
    # The newest first: a job mostly adds to it.
    return next((each for each in reversed(ranges) if each[1] + step == position), None)
