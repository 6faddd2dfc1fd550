"""Ranges of positions: where the messages of a queue stand, for those who read them in bulk.

Positions are those of the log; a priority queue numbers its own through all levels, see there. A
range has its first position and the one behind its last. What was settled in it is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.ports import Log
from harebell.kernels.batches import BatchBuilder
from harebell.model.resource import rendered


class Stretch(NamedTuple):
    """Some positions of a log.

    Args:
        level: of the log.
        first: the first position.
        end: the position behind the last.
        log: the log.
    """

    level: int
    first: int
    end: int
    log: Log


@dataclass(frozen=True, slots=True)
class Span:
    """Where the messages of a queue stand.

    Args:
        first: the first position with a message; `end` without one.
        end: the position behind the last.
        messages: how many there are, delivered ones included.
        octets: what they take, as far as the log knows.
        position: the first position of the time that was asked for, or later.
    """

    first: int
    end: int
    messages: int
    octets: int
    position: int


def cannot_be_spanned(name: str, vhost: str) -> Refusal:
    """The refusal for a queue that keeps no messages."""
    thing = rendered("queue", name, vhost)
    return Refusal(ErrorKind.PRECONDITION_FAILED, f"{thing} has no log that could be read in bulk")


def span_of(log: Log, end: int, moment: int, hidden: int) -> Span:
    """Where the messages of a log stand that are below a position.

    Args:
        log: the log.
        end: the position.
        moment: `Span.position` is the first message of that time; 0 for that of the first.
        hidden: how many messages are from the position on.
    """
    first = min(log.first(), end)
    position = position_at(log, first, end, moment) if moment else first
    return Span(first, end, log.live() - hidden, log.octets(), position)


def position_at(log: Log, first: int, end: int, moment: int) -> int:
    """The first position between two that was appended at a moment or later; the second without.

    Settled positions have no time any more, so every probe goes to the next one that has.
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
    """Where a stream can be read from: retention may have passed the first position.

    Raises:
        Refusal: it has, and what is lost may not be passed over.
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
    runs: Sequence[Stretch],
    shift: int,
    first: int,
    end: int,
    into: BatchBuilder,
    mark: Callable[[int], None],
) -> int:
    """Make rows of runs of several logs together, in the order of `position << shift | level`.

    Args:
        runs: the runs; those of one level do not overlap.
        shift: bits that the level takes.
        first: the first position.
        end: the position behind the last.
        into: takes the rows.
        mark: called with the level before rows of it are made.

    Returns:
        The position to go on from; `end` when nothing is left before it.
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
    """The first position of a level's log that is at or behind a position of the queue."""
    return max(0, -((level - position) >> shift))
