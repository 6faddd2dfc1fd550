"""The time of day, as a value that the shell sets: the store stamps records with it."""

from __future__ import annotations


class Clock:
    """Wall-clock time.

    Args:
        ms: milliseconds since 1970 to begin with.
    """

    __slots__ = ("ms",)

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms
