"""Destinations by small numbers, for indexes of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue


class Slots:
    """A number from 0 for each destination; free numbers are used again.

    Attributes:
        destinations: by number; None for a free number.
    """

    def __init__(self) -> None:
        self.destinations: list[Exchange | Queue | None] = []
        self._numbers: dict[Exchange | Queue, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return how many destinations have a number."""
        return len(self._numbers)

    def use(self, destination: Exchange | Queue) -> int:
        """Return the number of a destination, with one more use."""
        number = self._numbers.get(destination)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.destinations[number] = destination
            else:
                number = len(self.destinations)
                self.destinations.append(destination)
                self._uses.append(0)
            self._numbers[destination] = number
        self._uses[number] += 1
        return number

    def leave(self, destination: Exchange | Queue) -> int:
        """Return the number of a destination, with one use less."""
        number = self._numbers[destination]
        self._uses[number] -= 1
        if self._uses[number] == 0:
            del self._numbers[destination]
            self.destinations[number] = None
            self._free.append(number)
        return number

    def destinations_of(self, numbers: list[int]) -> C[list[Exchange | Queue]]:
        """Return the destinations of numbers that are in use."""
        destinations: list[Exchange | Queue | None] = self.destinations
        used: list[Exchange | Queue] = []
        for number in numbers:
            destination = destinations[number]
            if destination is not None:
                used.append(destination)
        return used
