"""Long work in slices, with a result.

A generator does the work, yields where it may be interrupted, and returns the result:

    def total(queues) -> Slices[int]:
        count = 0
        for queue in queues:
            count += queue.ready_count()
            yield  # may continue in a later turn
        return count
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.work import Work

T = TypeVar("T")

Slices = Generator[Any, None, T]
"""Yields None where it may be interrupted, or the `Future` of a thread that it waits for."""


def at_hand(result: T) -> Slices[T]:
    """Return a result that needs no work, where one in slices is expected."""
    yield from ()
    return result


def steps(step: Callable[[], bool]) -> Slices[None]:
    """Return the slices of a long operation; see `harebell.base.work.Step`."""
    while not step():
        yield


def at_once(slices: Slices[T]) -> T:
    """Return the result, without interruption."""
    while True:
        try:
            wanted = next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        if wanted is not None:
            # Imported here: it takes longer than the other imports of a command.
            from concurrent.futures import wait

            wait([wanted])


def stepped(
    slices: Slices[T], work: Work, units: int, done: Callable[[T], object]
) -> Callable[[], bool]:
    """Return a step that works until the turn is over; True when all is done.

    Args:
        slices: the work.
        work: the work budget.
        units: the cost of one slice.
        done: called with the result.
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


def ended(slices: Slices[None]) -> None:
    """Do work in slices to its end, within one turn."""
    for _ in slices:
        pass


def in_pieces(items: Sequence[T], size: int = TRANSACTION_SLICE) -> Iterator[Sequence[T]]:
    """Split a list into pieces that fit in a slice each."""
    for at in range(0, len(items), size):
        yield items[at : at + size]


def emptied(items: list[T]) -> Slices[None]:
    """Empty a list in slices: freeing a million objects at once takes a while."""
    while items:
        del items[-TRANSACTION_SLICE:]
        yield


class gathered(Generator[None, None, list[T]]):  # noqa: N801 - used as a function
    """Slices that return the items of an iterator as a list, one item per slice.

    Whatever can use the items one at a time takes them from `items` instead: a list of 10,000 rows
    takes tens of MB, and freeing it takes as many milliseconds.

    Args:
        items: gives the items of the list one by one.

    Attributes:
        items: the items that are not in the list yet.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self.items = iter(items)
        self._list: list[T] = []

    def send(self, _value: object, /) -> None:
        """Take one item; at the end raise StopIteration with the list."""
        try:
            self._list.append(next(self.items))
        except StopIteration:
            raise StopIteration(self._list) from None

    def throw(self, kind: Any, value: Any = None, trace: Any = None, /) -> None:
        """End the slices with an error."""
        self._list.clear()
        super().throw(kind, value, trace)


def consumed(items: list[T]) -> Iterator[T]:
    """Yield the items of a list, which loses each when the next one is asked for."""
    items.reverse()
    while items:
        yield items.pop()
