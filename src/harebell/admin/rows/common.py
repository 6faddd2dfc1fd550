"""What rows of several kinds share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

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


def as_json(value: Any) -> Any:
    """Convert a value of a client's table to one that JSON has."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def moment(ms: int) -> str:
    """Return a time in milliseconds since 1970 as RabbitMQ writes it."""
    return datetime.fromtimestamp(ms / _MS, UTC).isoformat(timespec="milliseconds")
