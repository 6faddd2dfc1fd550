"""The metrics of a broker that stands by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harebell.management.metrics.groups.storage import passed_on, storage
from harebell.management.metrics.text import written

_STANDBY = (*storage.metrics[:2], *passed_on.metrics)
"""Whether the store is owned, its epoch, and the clients that are passed on."""


class StandbyMetrics:
    """The metrics of a broker that stands by.

    Args:
        overview: returns the figures of the broker.
    """

    def __init__(self, overview: Callable[[], dict[str, Any]]) -> None:
        self._overview = overview

    def aggregated(self) -> Iterator[bytes]:
        """Write all that there is."""
        overview = self._overview()
        epoch = overview["storage"].get("epoch", 0)
        values = (0, epoch, overview["connections_passed_on"], overview["connections_waiting"])
        for piece in written("harebell_", _STANDBY, [("", values)]):
            yield piece if isinstance(piece, bytes) else piece.encode()

    def per_object(self) -> Iterator[bytes]:
        """Write the same: a standby has no queues."""
        return self.aggregated()

    def detailed(
        self,
        names: Iterable[str],
        vhosts: Iterable[str] | None = None,
        named: Callable[[str], bool] | None = None,
    ) -> Iterator[bytes]:
        """Write the same: a standby has no queues."""
        return self.aggregated()

    def memory(self) -> Iterator[bytes]:
        """Write the same: a standby has no queues."""
        return self.aggregated()
