"""Ranges of command numbers, as a peer sends them.

A peer chooses the ranges: they may be thousands, of any width, and overlap. The work grows with
their number and with the deliveries in them, and each delivery is looked at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from harebell.base.sequence import Sequence

NumberRanges = list[tuple[int, int]]


def numbers_in(members: Sequence, ranges: NumberRanges) -> Iterator[int]:
    """Yield the numbers with a member that are in some ranges, each once and in order."""
    number = -1
    for first, last in sorted(ranges):
        # A range that ends before the last number found has none that was not yielded.
        if number < max(first, 0):
            number = members.next_from(max(first, 0))
        while number <= last and number < members.next:
            yield number
            number = members.next_from(number + 1)


def merged(ranges: NumberRanges) -> NumberRanges:
    """Return ranges without those that others contain, in order."""
    spans: NumberRanges = []
    for first, last in sorted(ranges):
        if not spans or last > spans[-1][1]:
            spans.append((first, last))
    return spans


def is_in(number: int, spans: NumberRanges) -> bool:
    """True if a number is in one of some merged ranges."""
    # Of those that begin at or before the number, the last one reaches furthest.
    index = bisect_right(spans, number, key=_first) - 1
    return index >= 0 and number <= spans[index][1]


def _first(span: tuple[int, int]) -> int:
    return span[0]
