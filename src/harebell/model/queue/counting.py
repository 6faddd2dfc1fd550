"""How far the bodies of a queue are counted that were there before their octets were limited.

    log      | counted counted counted | not yet ... | counted when they came ...
                                       ^ cursor      ^ end, when the counting began

A backlog may be large, so it is counted in turns. What leaves meanwhile is taken off only if it was
counted, and what comes back before the cursor gets there is counted then. A queue with several logs
has a cursor and an end for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BEHIND = 2**62
"""Where the cursor of a log is when everything in it is counted: behind any position."""


class Counting:
    """The cursors of one count.

    Args:
        logs: how many logs the queue may have.
        ends: where those end that there are, by their number; what comes to others is counted.

    Attributes:
        cursors: the first position of each log that is not looked at.
    """

    __slots__ = ("_ends", "cursors")

    def __init__(self, logs: int, ends: Mapping[int, int]) -> None:
        self.cursors = [0] * logs
        self._ends: Sequence[int] = [ends.get(log, 0) for log in range(logs)]

    def has(self, log: int, position: int) -> bool:
        """Whether what stands at a position of a log is counted, if it is ready."""
        return position < self.cursors[log] or position >= self._ends[log]

    def finish(self, log: int) -> None:
        """Everything in a log is counted."""
        self.cursors[log] = BEHIND
