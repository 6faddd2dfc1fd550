"""What rows of several kinds share."""

from __future__ import annotations

from datetime import UTC, datetime

_MS = 1000
GARBAGE_COLLECTION = {
    "fullsweep_after": 0,
    "max_heap_size": 0,
    "min_bin_vheap_size": 0,
    "min_heap_size": 0,
    "minor_gcs": 0,
}
"""RabbitMQ shows the collector of a process of Erlang, and tools read it. There is none here."""
NO_RATE = {"rate": 0.0}
"""The rate of the steps ("reductions") that a process of Erlang has done."""


def moment(ms: int) -> str:
    """Return a time in milliseconds since 1970 as RabbitMQ writes it."""
    return datetime.fromtimestamp(ms / _MS, UTC).isoformat(timespec="milliseconds")


def time_text(ms: int) -> str:
    """Return a time in milliseconds since 1970 as text in UTC: `2026-01-02T03:04:05.678Z`."""
    return moment(ms).replace("+00:00", "Z")
