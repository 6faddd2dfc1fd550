"""Count failures within a window of time, and block what has too many of them for a while.

failures   NEGOTIATION_FAILURES within NEGOTIATION_WINDOW_SECONDS of the first: blocked
block      for NEGOTIATION_BLOCK_SECONDS, or longer; then it takes as many failures again
"""

from __future__ import annotations

from typing import TypeVar

from harebell.base.share import FairCache
from harebell.front.limits import (
    NEGOTIATION_BLOCK_SECONDS,
    NEGOTIATION_FAILURES,
    NEGOTIATION_WINDOW_SECONDS,
)

Key = TypeVar("Key")


class FailureCount:
    """The failures of one key.

    Attributes:
        failures: since `since`, in seconds.
        blocked_until: until when it is blocked, in seconds.
    """

    __slots__ = ("blocked_until", "failures", "since")

    def __init__(self, now: float) -> None:
        self.failures = 0
        self.since = now
        self.blocked_until = 0.0

    def blocked(self, now: float) -> bool:
        """True if it had too many failures a short time ago."""
        return now < self.blocked_until


def count_failure(
    records: FairCache[Key, FailureCount],
    owner: str,
    key: Key,
    now: float,
    seconds: float = NEGOTIATION_BLOCK_SECONDS,
) -> bool:
    """Count a failure; True if there are too many with this one, and for some seconds."""
    record = records.get(key)
    if record is None or now - record.since > NEGOTIATION_WINDOW_SECONDS:
        record = FailureCount(now)
    records.put(owner, key, record)
    record.failures += 1
    if record.failures < NEGOTIATION_FAILURES or record.blocked(now):
        return False
    record.blocked_until = now + seconds
    # After the block it takes as many failures again.
    record.failures = 0
    record.since = now
    return True
