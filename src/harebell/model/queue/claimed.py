"""What a claim has of one log, as a log of its own: for those who read claims in bulk.

It is the log seen through the claim's runs; whatever stands between them is passed over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from harebell.base.ports import Log


class ClaimedLog(Log):
    """The runs of a claim in one log.

    Args:
        log: where its messages are.
        runs: first position and end of each run.
    """

    def __init__(self, log: Log, runs: Iterable[tuple[int, int]]) -> None:
        self._log = log
        self._runs = sorted(runs)
        self._end = max([end for _, end in self._runs], default=0)

    def _from(self, position: int) -> list[tuple[int, int]]:
        """The runs that are not wholly before a position."""
        at = bisect_right(self._runs, (position + 1,)) - 1
        return self._runs[max(at, 0) :]

    def next(self, position: int) -> int:
        """The first message of the claim from a position on; `end()` without one."""
        for first, end in self._from(position):
            found = self._log.next(max(position, first)) if position < end else end
            if found < end:
                return found
        return self._end

    def end(self) -> int:
        """The position behind the last run."""
        return self._end

    def pour(self, position: int, end: int, into: Any) -> int:
        """Make rows of the claim's messages until there are enough."""
        for first, behind in self._from(position):
            until = min(behind, end)
            begin = max(position, first)
            if begin >= end:
                break
            if begin >= until:
                continue
            reached = self._log.pour(begin, until, into)
            if into.full or reached < until:
                return reached
        return end
