"""The time, as a value that the shell sets: the store stamps records with it, queues expire by it.

The time of day jumps when it is set. What has been promised for a while must neither end at
once nor last for ever then, so whatever is due goes by a second reading, which begins with the time
of day and then only passes.
"""

from __future__ import annotations


class Clock:
    """The time in milliseconds since 1970.

    Args:
        ms: to begin with.

    Attributes:
        ms: the time of day.
        steady: the time that never jumps.
    """

    __slots__ = ("ms", "steady")

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms
        self.steady = ms

    def advance(self, ms: int) -> None:
        """So many milliseconds have passed."""
        self.ms += ms
        self.steady += ms
