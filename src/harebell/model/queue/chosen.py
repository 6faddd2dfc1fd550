"""Messages that are chosen one by one, in whatever order, and the runs that they make together.

    chosen     7   3   4            settled between 4 and 7: 5 and 6
    in order   3   4   7            one run from 3 up to 8

How many runs there are is known after each message, so whoever chooses can stop in time.
"""

from __future__ import annotations

from harebell.base.ports import Log


class Chosen:
    """Positions of one log.

    Args:
        log: the log.

    Attributes:
        runs: how many runs they make, at most.
    """

    def __init__(self, log: Log) -> None:
        self.runs = 0
        self._log = log
        # Each position with the one of the message that follows it in the log.
        self._following: dict[int, int] = {}
        self._wanted: set[int] = set()

    def __len__(self) -> int:
        return len(self._following)

    def add(self, position: int) -> None:
        """One more message, which was not chosen yet."""
        following = self._log.next(position + 1)
        self.runs += 1 - (position in self._wanted) - (following in self._following)
        self._following[position] = following
        self._wanted.add(following)

    def in_order(self) -> list[tuple[int, int]]:
        """The runs: first position, and the one behind the last."""
        found: list[tuple[int, int]] = []
        for position in sorted(self._following):
            if found and self._log.next(found[-1][1]) == position:
                found[-1] = (found[-1][0], position + 1)
            else:
                found.append((position, position + 1))
        return found
