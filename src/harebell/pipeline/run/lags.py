"""The lag of a pipeline per queue, from the progress that Spark reports.

Spark reports two offsets of a source: where the last micro-batch ended, and where the queues end
now. Positions are subtracted; of a queue that is leased the second one says how many messages are
ready.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_POSITION, _READY = "position", "ready"


def lags(told: Mapping[str, Any], queue: str) -> dict[str, int]:
    """How many messages wait, by queue; queues of which nobody knows are not in it.

    Args:
        told: what Spark says of one source.
        queue: what the source reads, for offsets that name no queue.
    """
    end, last = _offset(told.get("endOffset")), _offset(told.get("latestOffset"))
    if _POSITION in last and not isinstance(last[_POSITION], dict):
        end, last = {queue: end}, {queue: last}
    found = {name: _lag(end.get(name), each) for name, each in last.items()}
    return {name: lag for name, lag in found.items() if lag is not None}


def _offset(text: Any) -> dict[str, Any]:
    """An offset as Spark tells it: as text, or as what the text says."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _lag(end: Any, last: Any) -> int | None:
    if not isinstance(last, dict):
        return None
    if isinstance(last.get(_READY), int):
        return int(last[_READY])
    before = end.get(_POSITION) if isinstance(end, dict) else None
    if isinstance(before, int) and isinstance(last.get(_POSITION), int):
        return max(0, int(last[_POSITION]) - before)
    return None
