"""The lag of a pipeline per queue, from the progress that Spark reports.

Spark reports two offsets of a source: the end of the last micro-batch, and the present ends of the
queues. Positions are subtracted; for a leased queue the second offset has the number of ready
messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_POSITION, _READY = "position", "ready"


def lags(progress: Mapping[str, Any], queue: str) -> dict[str, int]:
    """Return the number of unprocessed messages by queue, without queues where it is unknown.

    Args:
        progress: Spark's progress of one source.
        queue: the queue of the source, for offsets that name no queue.
    """
    end, last = _offset(progress.get("endOffset")), _offset(progress.get("latestOffset"))
    if _POSITION in last and not isinstance(last[_POSITION], dict):
        end, last = {queue: end}, {queue: last}
    found = {name: _lag(end.get(name), each) for name, each in last.items()}
    return {name: lag for name, lag in found.items() if lag is not None}


def _offset(text: Any) -> dict[str, Any]:
    """Return an offset, parsed if Spark reports it as text."""
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
