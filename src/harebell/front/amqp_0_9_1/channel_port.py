"""What a connection calls on its channels beside `PublishingChannel`, and on their parts."""

from __future__ import annotations

from typing import Any, Protocol


class ClosableChannel(Protocol):
    """A channel that a connection can end."""

    number: int

    def close(self) -> None:
        """End the channel."""


class PendingConfirms(Protocol):
    """The confirms of a channel that are written at the end of the turn."""

    def flush(self) -> int:
        """Write the confirms that are due."""


class BulkReads(Protocol):
    """The bulk reads of a connection that are not answered yet."""

    def serve(self) -> None:
        """Answer some of them, in their order."""

    def add(self, channel: Any, method: Any) -> None:
        """Take another read."""
