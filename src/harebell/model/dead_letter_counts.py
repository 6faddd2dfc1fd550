"""Counters of dead letters: by type of queue, strategy and reason, for the whole broker."""

from __future__ import annotations

AT_MOST_ONCE = "at_most_once"
AT_LEAST_ONCE = "at_least_once"


class DeadLetterCounts:
    """Counters that never fall; queues that were deleted are included.

    Attributes:
        sent: dead letters by type of queue, strategy and reason.
        confirmed: those of at least once that other queues have stored, by type of queue.
    """

    __slots__ = ("confirmed", "sent")

    def __init__(self) -> None:
        self.sent: dict[tuple[str, str, str], int] = {}
        self.confirmed: dict[str, int] = {}

    def count(self, kind: str, strategy: str, reason: str) -> None:
        """Count a dead letter.

        Args:
            kind: the type of its queue.
            strategy: AT_MOST_ONCE or AT_LEAST_ONCE.
            reason: why it is dead-lettered.
        """
        key = (kind, strategy, reason)
        self.sent[key] = self.sent.get(key, 0) + 1

    def confirm(self, kind: str) -> None:
        """Count a dead letter that other queues have stored."""
        self.confirmed[kind] = self.confirmed.get(kind, 0) + 1
