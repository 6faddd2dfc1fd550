"""How far a query is behind, under the names that Spark's Kafka source gives to its metrics.

A Python data source cannot report metrics: in Spark 4.3 no class of Python streams implements
`ReportsSourceMetrics`. What they would be made of is in the progress of the query, so they are made
of that: in a listener, or of `query.lastProgress`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

BEHIND = ("minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest")
"""Metrics over the queues of a source, in messages."""
BYTES = "estimatedTotalBytesBehindLatest"
"""Bytes of all messages that a source has not read, as far as the broker knows the size of one."""


class LagListener(StreamingQueryListener):
    """Call a function with the metrics of each source of Harebell after each micro-batch.

    Args:
        report: gets the name or the id of the query, the number of the source, and its metrics.
    """

    def __init__(self, report: Callable[[str, int, dict[str, str]], None]) -> None:
        super().__init__()
        self._report = report

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing: nothing was read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report the metrics of each source."""
        progress = event.progress
        for number, source in enumerate(progress.sources):
            metrics = lag_of(source.latestOffset, source.endOffset)
            if metrics:
                self._report(progress.name or str(progress.id), number, metrics)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: the metrics of the last micro-batch still hold."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: there are no metrics of a query that has ended."""


def lag_of(latest: Any, end: Any) -> dict[str, str]:
    """Return the metrics of one source; empty if it is not one of Harebell, or has no offsets yet.

    Args:
        latest: `latestOffset` of the source in the progress of a query, as a text or parsed.
        end: its `endOffset`.
    """
    there, read = _parsed(latest), _parsed(end)
    behind: list[int] = []
    sizes: list[int] = []
    for queue, last in there.items():
        count = _waiting(last, read.get(queue))
        # A metric over some of the queues would be too small.
        if count is None:
            return {}
        behind.append(count)
        if "messageBytes" in last:
            sizes.append(count * int(last["messageBytes"]))
    if not behind:
        return {}
    numbers = (min(behind), max(behind), sum(behind) / len(behind))
    metrics = {name: str(number) for name, number in zip(BEHIND, numbers, strict=True)}
    return metrics | ({BYTES: str(sum(sizes))} if len(sizes) == len(behind) else {})


def waiting_of(latest: Any, end: Any, queue: str = "") -> dict[str, int]:
    """Return the messages of one source that are not read yet, by queue, where they are known.

    Args:
        latest: `latestOffset` of the source in the progress of a query, as a text or parsed.
        end: its `endOffset`.
        queue: the queue of a source whose offsets are those of a spool, which name none.
    """
    there, read = _parsed(latest), _parsed(end)
    if queue and isinstance(there.get("position"), int):
        there, read = {queue: there}, {queue: read}
    counts = {name: _waiting(last, read.get(name)) for name, last in there.items()}
    return {name: count for name, count in counts.items() if count is not None}


def _waiting(last: Any, begin: Any) -> int | None:
    """Return the messages of a queue between two offsets; None where the later one does not say."""
    if not isinstance(last, Mapping):
        return None
    # A leased queue: claims count no messages, so the reader reports those that are ready.
    if isinstance(last.get("ready"), int):
        return int(last["ready"])
    if not isinstance(last.get("position"), int):
        return None
    # An offset of another log says nothing of this one, of which nothing was read.
    here = last.get("first", 0)
    if isinstance(begin, Mapping) and begin.get("generation") == last.get("generation"):
        here = begin.get("position", here)
    return max(0, int(last["position"]) - int(here))


def _parsed(offset: Any) -> dict[str, Any]:
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return dict(offset) if isinstance(offset, Mapping) else {}
