"""The clock, a value that the server sets: for timestamps of records and for expiry.

The wall clock jumps when it is set; timeouts must then neither end at once nor last for ever. So
they use a second reading, which starts with the wall clock and is monotonic.
"""

from __future__ import annotations

from harebell.base.c_types import i64


class Clock:
    """The time in milliseconds since 1970.

    Args:
        ms: the initial time.

    Attributes:
        ms: wall clock time.
        steady: monotonic time.
    """

    def __init__(self, ms: i64 = 0) -> None:
        self.ms = ms
        self.steady = ms

    def advance(self, ms: int) -> None:
        """Advance both readings by so many milliseconds."""
        self.ms += ms
        self.steady += ms
