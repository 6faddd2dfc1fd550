"""Sync lags: how long syncs may be delayed, by default and per directory.

A lag is a number of milliseconds: 0 is at once, and NEVER leaves it to the operating system. Files
outside directories with a lag of their own, such as those of the root, use the strictest of all
lags, as data in any directory may depend on them.
"""

from __future__ import annotations

from collections import Counter

from harebell.base.durability import INTERVAL, OS, Durability

NEVER = -1


def lag_of(durability: Durability, interval_ms: int) -> int:
    """Return the lag of a durability.

    Args:
        durability: when changes have to be on disk.
        interval_ms: milliseconds for an interval without a number.
    """
    if durability.kind == OS:
        return NEVER
    return (durability.ms or interval_ms) if durability.kind == INTERVAL else 0


def _weakness(lag: int) -> float:
    return float("inf") if lag == NEVER else lag


class Lags:
    """The lags of one data directory.

    Args:
        common: the default lag.
    """

    __slots__ = ("_common", "_count", "_own", "_strictest")

    def __init__(self, common: int = 0) -> None:
        self._common = self._strictest = common
        self._own: dict[str, int] = {}
        self._count: Counter[int] = Counter()

    def put(self, directory: str, lag: int | None) -> bool:
        """Set or remove the lag of a directory; True if it is stricter than before."""
        before = self._own.pop(directory, None)
        if before is not None:
            self._count[before] -= 1
        if lag is not None:
            self._own[directory] = lag
            self._count[lag] += 1
        used = [self._common, *(each for each, count in self._count.items() if count)]
        self._strictest = min(used, key=_weakness)
        was = self._common if before is None else before
        return _weakness(self._common if lag is None else lag) < _weakness(was)

    def of(self, path: str) -> int:
        """Return the lag of a file or directory."""
        if not self._own:
            return self._common
        lag = self._own.get(path)
        if lag is None:
            lag = self._own.get(path.rpartition("/")[0])
        return self._strictest if lag is None else lag
