"""Long work with a result that is waited for, in slices.

A generator does it, yields where others may have their turn, and returns the result:

    def total(queues) -> Slices[int]:
        count = 0
        for queue in queues:
            count += queue.ready_count()
            yield  # others may have their turn
        return count
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.work import Work

T = TypeVar("T")

Slices = Generator[Any, None, T]
"""Yields None where others may have their turn, or a `Future` of what a thread has to do first."""


def at_once(slices: Slices[T]) -> T:
    """The result, without a pause."""
    # Imported here, for it takes longer than the rest of what a command line needs.
    from concurrent.futures import wait

    while True:
        try:
            wanted = next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        if wanted is not None:
            wait([wanted])


def stepped(
    slices: Slices[T], work: Work, units: int, done: Callable[[T], object]
) -> Callable[[], bool]:
    """A step that goes on until the turn is over; True when all is done.

    Args:
        slices: the work.
        work: counts it.
        units: what one slice counts.
        done: takes the result.
    """

    def step() -> bool:
        while True:
            try:
                next(slices)
            except StopIteration as end:
                done(end.value)
                return True
            if work.charge(units):
                return False

    return step


def in_pieces(found: Sequence[T]) -> Iterator[Sequence[T]]:
    """A list in pieces that are short enough for a slice each."""
    for at in range(0, len(found), TRANSACTION_SLICE):
        yield found[at : at + TRANSACTION_SLICE]


def emptied(items: list[T]) -> Slices[None]:
    """Nothing is left of a list: to free a million things at once would take a while."""
    while items:
        del items[-TRANSACTION_SLICE:]
        yield


def gathered(found: Iterable[T]) -> Slices[list[T]]:
    """What an iterator finds, as a list."""
    items = []
    for each in found:
        items.append(each)
        yield
    return items
