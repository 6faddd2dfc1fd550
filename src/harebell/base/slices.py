"""Long work that somebody waits for, in slices.

A generator does it, yields where others may have their turn, and returns the result:

    def total(queues) -> Slices[int]:
        count = 0
        for queue in queues:
            count += queue.ready_count()
            yield  # others may have their turn
        return count
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")

Slices = Generator[None, None, T]
"""Yields where others may have their turn; returns the result."""


def at_once(slices: Slices[T]) -> T:
    """The result, without a pause."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


def gathered(found: Iterable[T]) -> Slices[list[T]]:
    """What an iterator finds, as a list."""
    items = []
    for each in found:
        items.append(each)
        yield
    return items
