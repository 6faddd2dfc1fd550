"""What rows of several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

Columns = Mapping[str, Callable[..., Any]]
"""The columns of a list by their names: what makes each, from what the row is about."""

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


def row_of(columns: Columns, *about: Any) -> dict[str, Any]:
    """Return a row with all columns."""
    return {name: make(*about) for name, make in columns.items()}


def moment(ms: int) -> str:
    """Return a time in milliseconds since 1970 as RabbitMQ writes it."""
    return datetime.fromtimestamp(ms / _MS, UTC).isoformat(timespec="milliseconds")


def time_text(ms: int) -> str:
    """Return a time in milliseconds since 1970 as text in UTC: `2026-01-02T03:04:05.678Z`."""
    return moment(ms).replace("+00:00", "Z")
