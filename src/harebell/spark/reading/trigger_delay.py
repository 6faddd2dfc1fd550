"""Hold a micro-batch until enough messages are there, or some time has passed.

The meaning of minOffsetsPerTrigger and maxTriggerDelay is that of Spark's Kafka source, but for the
first micro-batch of a run: its time begins when the query is started. Spark cannot be given both
limits (`ReadMinRows` has no upper one, and can hang AvailableNow), so the source counts itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class TriggerDelay:
    """Decides whether a micro-batch has to wait.

    Args:
        min_messages: messages that are enough; 0 for any.
        max_seconds: how long to wait for them since the last micro-batch.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        min_messages: int = 0,
        max_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._min_messages = min_messages
        self._max_seconds = max_seconds
        self._clock = clock
        self._since = clock()

    @property
    def is_set(self) -> bool:
        """True if micro-batches wait at all."""
        return self._min_messages > 0

    def holds(self, messages: int) -> bool:
        """True if a micro-batch of this many messages has to wait."""
        late = self._clock() - self._since >= self._max_seconds
        return messages < self._min_messages and not late

    def restart(self) -> None:
        """Count the time from now on: a micro-batch begins."""
        self._since = self._clock()
