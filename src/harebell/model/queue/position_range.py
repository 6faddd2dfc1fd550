"""Ranges of positions: where the messages of a queue are, for leases and bulk readers.

Positions are those of the log; a priority queue has positions over all levels, see
`order.priority`. A range is its first position and the one behind its last. Settled messages in it
are skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.resource import rendered

if TYPE_CHECKING:
    from harebell.model.queue.order.fifo import FifoOrder


class LogRange(NamedTuple):
    """A range of positions of one log.

    Args:
        level: the level of the log.
        first: the first position.
        end: the position behind the last.
        log: where the positions are.
    """

    level: int
    first: int
    end: int
    log: Log


@dataclass(frozen=True, slots=True)
class MessageRange:
    """The range of the messages of a queue.

    Args:
        first: the first position with a message; `end` without one.
        end: the position behind the last.
        messages: the number of messages, delivered ones included.
        byte_count: their size in the log, as far as it is known.
        position: the first position at the requested time or later.
    """

    first: int
    end: int
    messages: int
    byte_count: int
    position: int


def cannot_be_spanned(name: str, vhost: str) -> Refusal:
    """Return the refusal for a queue that keeps no messages."""
    thing = rendered("queue", name, vhost)
    return Refusal(ErrorKind.PRECONDITION_FAILED, f"{thing} has no log that could be read in bulk")


def span_of(log: Log, end: int, moment: int, hidden: int) -> MessageRange:
    """Return the range of the messages of a log below a position.

    Args:
        log: where the messages are.
        end: the position.
        moment: `MessageRange.position` is the first message at that time or later; 0 for the first.
        hidden: how many messages are from the position on.
    """
    first = min(log.first(), end)
    position = position_at(log, first, end, moment) if moment else first
    return MessageRange(first, end, log.live() - hidden, log.byte_count(), position)


def position_at(log: Log, first: int, end: int, moment: int) -> int:
    """Return the first position in a range appended at a moment or later; the end if none was.

    A binary search. Settled positions have no time, so each probe uses the next one that has.
    """
    low, high = first, end
    while low < high:
        middle = low + (high - low) // 2
        there = log.next(middle)
        if there >= high:
            high = middle
        elif log.time_of(there) < moment:
            low = there + 1
        else:
            high = middle
    return min(log.next(low), end) if low < end else end


def check_kept(name: str, vhost: str, first: int, kept: int, end: int, into: BatchBuilder) -> int:
    """Return where a stream can be read from: retention may have removed the first position.

    Raises:
        Refusal: it has, and lost positions may not be skipped.
    """
    if first >= kept:
        return first
    until = min(kept, end)
    if not into.skip:
        thing = rendered("queue", name, vhost)
        raise Refusal(
            ErrorKind.RANGE_GONE,
            f"offsets {first} to {until - 1} of {thing} are gone: the first that is kept is {kept}",
        )
    into.gone(until - first)
    return until


def pour_runs(
    runs: Sequence[LogRange],
    shift: int,
    first: int,
    end: int,
    into: BatchBuilder,
    mark: Callable[[int], None],
) -> int:
    """Make rows of runs of several logs, merged in the order of `position << shift | level`.

    Args:
        runs: the runs; those of one level do not overlap.
        shift: bits of the level.
        first: the first position.
        end: the position behind the last.
        into: the builder of the rows.
        mark: called with the level before its rows are made.

    Returns:
        The position to continue from; `end` when nothing is left before it.
    """
    heads: list[tuple[int, int]] = []

    def look(number: int, position: int) -> None:
        level, low, high, log = runs[number]
        there = log.next(max(position, low)) if position < high else high
        if there < high and (there << shift | level) < end:
            heappush(heads, (there << shift | level, number))

    for number, run in enumerate(runs):
        look(number, _within(first, shift, run.level))
    while heads and not into.full:
        found, number = heappop(heads)
        follows = heads[0][0] if heads else end
        level, _, high, log = runs[number]
        mark(level)
        until = min(_within(follows, shift, level), high)
        reached = log.pour(found >> shift, until, into)
        if into.full:
            return reached << shift | level if reached < until else follows
        look(number, until)
    return heads[0][0] if heads else end


def _within(position: int, shift: int, level: int) -> int:
    """Return the first position of a level's log at or behind a position of the queue."""
    return max(0, -((level - position) >> shift))


def level_marker(
    levels: Sequence[tuple[int, FifoOrder]],
    bits: int,
    into: BatchBuilder,
    claimed: Mapping[int, int] | None = None,
) -> Callable[[int], None]:
    """Return a function that tells a builder the level and the redelivered messages of its rows.

    Args:
        levels: the orders of the queue.
        bits: bits of the level in a position.
        into: the builder.
        claimed: for rows of a claim: `features.lease.ClaimedMessages.seen`.
    """
    orders = dict(levels)

    def mark(level: int) -> None:
        if claimed is not None:
            orders[level].mark_claimed(into, claimed.get(level, -1))
        else:
            orders[level].mark(into)
        if bits:
            into.at_level(bits, level)

    return mark


class PositionRanges:
    """Leased ranges of one log; they do not overlap.

    Two sorted lists, of first positions and of ends; their size does not depend on the messages.
    """

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._firsts, self._ends, strict=True)))

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: int, end: int) -> None:
        """Add a range that does not touch any other."""
        at = bisect_left(self._firsts, first)
        self._firsts.insert(at, first)
        self._ends.insert(at, end)

    def remove(self, first: int, end: int) -> bool:
        """Remove a range; False if it is not there."""
        at = bisect_left(self._firsts, first)
        if at == len(self._firsts) or self._firsts[at] != first or self._ends[at] != end:
            return False
        del self._firsts[at], self._ends[at]
        return True

    def behind(self, position: int) -> int:
        """Return the end of the range that contains a position; the position if none does."""
        at = bisect_right(self._firsts, position) - 1
        if at >= 0 and position < self._ends[at]:
            return self._ends[at]
        return position

    def ahead(self, position: int, end: int) -> int:
        """Return the start of the first range from a position on, at most `end`."""
        at = bisect_left(self._firsts, position)
        return min(self._firsts[at], end) if at < len(self._firsts) else end


class PickedPositions:
    """Positions of one log that are picked one by one, merged into ranges.

        picked     7   3   4            settled between 4 and 7: 5 and 6
        in order   3   4   7            one range from 3 up to 8

    The number of ranges is known after each position, so a claim can stop at its limit.

    Args:
        log: where the messages are; those that were not picked stay.

    Attributes:
        ranges: upper bound of the number of ranges.
    """

    def __init__(self, log: Log) -> None:
        self.ranges = 0
        self._log = log
        # Each position, paired with that of the next message in the log.
        self._following: dict[int, int] = {}
        self._wanted: set[int] = set()

    def __len__(self) -> int:
        return len(self._following)

    def add(self, position: int) -> None:
        """Add a position that was not picked before."""
        following = self._log.next(position + 1)
        self.ranges += 1 - (position in self._wanted) - (following in self._following)
        self._following[position] = following
        self._wanted.add(following)

    def in_order(self) -> list[tuple[int, int]]:
        """Return the ranges as pairs: first position, and the one behind the last."""
        found: list[tuple[int, int]] = []
        for position in sorted(self._following):
            if found and self._log.next(found[-1][1]) == position:
                found[-1] = (found[-1][0], position + 1)
            else:
                found.append((position, position + 1))
        return found
