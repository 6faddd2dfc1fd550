"""A clock for tests of how long something is tried again."""

from __future__ import annotations

import time


class Hasty:
    """A clock by which nobody waits: a pause is over at once, and its time has passed."""

    def __init__(self) -> None:
        self._slept = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        self._slept += seconds
