"""Ranges of positions: where the messages of a queue are, for leases and bulk readers.

Positions are those of the log; a priority queue has positions over all levels, see
`order.priority`. A range is its first position and the one behind its last. Settled messages in it
are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

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


class MessageRange(Struct, frozen=True):
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
    resource = rendered("queue", name, vhost)
    return Refusal(
        ErrorKind.PRECONDITION_FAILED, f"{resource} has no log that could be read in bulk"
    )


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
        unsettled = log.next(middle)
        if unsettled >= high:
            high = middle
        elif log.time_of(unsettled) < moment:
            low = unsettled + 1
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
    # A reader that may not skip has to know: it would report success without these messages.
    if not into.skip:
        resource = rendered("queue", name, vhost)
        raise Refusal(
            ErrorKind.RANGE_GONE,
            f"offsets {first} to {until - 1} of {resource} are gone: the first that is "
            f"kept is {kept}",
        )
    into.gone(until - first)
    return until


def append_runs_to(
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

    def push_head(number: int, position: int) -> None:
        level, low, high, log = runs[number]
        unsettled = log.next(max(position, low)) if position < high else high
        if unsettled < high and (unsettled << shift | level) < end:
            heappush(heads, (unsettled << shift | level, number))

    for number, run in enumerate(runs):
        push_head(number, _within(first, shift, run.level))
    while heads and not into.full:
        head, number = heappop(heads)
        follows = heads[0][0] if heads else end
        level, _, high, log = runs[number]
        mark(level)
        # Rows of one log in a row, up to the first message of another log: one call for all.
        until = min(_within(follows, shift, level), high)
        reached = log.append_to(head >> shift, until, into)
        if into.full:
            return reached << shift | level if reached < until else follows
        push_head(number, until)
    return heads[0][0] if heads else end


def _within(position: int, shift: int, level: int) -> int:
    """Return the first position of a level's log at or behind a position of the queue."""
    # The smallest p with `p << shift | level >= position`: a division that rounds up.
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
        # The values of `_following`: a picked position among them continues a range.
        self._ends: set[int] = set()

    def __len__(self) -> int:
        return len(self._following)

    def add(self, position: int) -> None:
        """Add a position that was not picked before."""
        following = self._log.next(position + 1)
        # It begins a range of its own, continues the one before it, or joins two.
        self.ranges += 1 - (position in self._ends) - (following in self._following)
        self._following[position] = following
        self._ends.add(following)

    def in_order(self) -> list[tuple[int, int]]:
        """Return the ranges as pairs: first position, and the one behind the last."""
        spans: list[tuple[int, int]] = []
        for position in sorted(self._following):
            if spans and self._log.next(spans[-1][1]) == position:
                spans[-1] = (spans[-1][0], position + 1)
            else:
                spans.append((position, position + 1))
        return spans
