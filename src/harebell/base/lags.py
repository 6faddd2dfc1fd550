"""How long syncs may be put off: everywhere, and in folders that have a word of their own.

A lag is a number of milliseconds: 0 is at once, and NEVER leaves it to the system. What belongs to
no folder with a lag of its own, such as the folder above them all, follows the strictest of all,
for what is promised in one folder may rest on it.
"""

from __future__ import annotations

from collections import Counter

from harebell.base.durability import INTERVAL, OS, Durability

NEVER = -1


def lag_of(durability: Durability, interval_ms: int) -> int:
    """The lag that a durability means.

    Args:
        durability: the durability.
        interval_ms: milliseconds for an interval that has none.
    """
    if durability.kind == OS:
        return NEVER
    return (durability.ms or interval_ms) if durability.kind == INTERVAL else 0


def _weakness(lag: int) -> float:
    return float("inf") if lag == NEVER else lag


class Lags:
    """The lags of one data directory.

    Args:
        common: of whatever has none of its own.
    """

    __slots__ = ("_common", "_count", "_own", "_strictest")

    def __init__(self, common: int = 0) -> None:
        self._common = self._strictest = common
        self._own: dict[str, int] = {}
        self._count: Counter[int] = Counter()

    def put(self, folder: str, lag: int | None) -> bool:
        """Give a folder a lag of its own, or none; True when it is stricter than before."""
        before = self._own.pop(folder, None)
        if before is not None:
            self._count[before] -= 1
        if lag is not None:
            self._own[folder] = lag
            self._count[lag] += 1
        used = [self._common, *(each for each, count in self._count.items() if count)]
        self._strictest = min(used, key=_weakness)
        was = self._common if before is None else before
        return _weakness(self._common if lag is None else lag) < _weakness(was)

    def of(self, path: str) -> int:
        """The lag of a file or a folder."""
        if not self._own:
            return self._common
        found = self._own.get(path)
        if found is None:
            found = self._own.get(path.rpartition("/")[0])
        return self._strictest if found is None else found
