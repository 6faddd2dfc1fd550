"""Report how far queries are to the broker, which shows it: `harebell queries list`, the web page.

    listener or pipeline --> latest facts of each query --> thread --> broker

Reports never hold up a query or end it. While the broker is away they are dropped.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from harebell.base.errors import HarebellError
from harebell.base.limits import QUERY_SOURCES, QUERY_TEXT_BYTES
from harebell.client import blocking
from harebell.client.url import URL
from harebell.spark.failure_sentences import sentence_of
from harebell.spark.lag import waiting_of
from harebell.spark.options.access import DEFAULT_URL, URL_VARIABLE

_LOG = logging.getLogger("harebell.spark")
INTERVAL_SECONDS = 20
"""A running query reports again after that time, though it has nothing new."""
_PAUSE_SECONDS = 1.0
_CALL_SECONDS = 5.0
RUNNING = "running"


class QueryReporter:
    """Sends the latest facts of queries to a broker, in a thread of its own.

    Args:
        url: the broker.
    """

    def __init__(self, url: str | URL) -> None:
        self._url = URL.of(url)
        self._latest: dict[str, dict[str, Any]] = {}
        self._new: set[str] = set()
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: blocking.Connection | None = None
        self._warned = False

    def put(self, query: str, facts: Mapping[str, Any]) -> None:
        """Report facts of a query soon; they replace those that are not sent yet."""
        query = _cut(query)
        with self._guard:
            self._latest[query] = {"interval": INTERVAL_SECONDS, **facts}
            self._new.add(query)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="harebell-reports", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Send the last facts, unless the broker does not take them in time."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_CALL_SECONDS)

    def _run(self) -> None:
        while True:
            self._wake.wait(INTERVAL_SECONDS)
            # Before the reports are taken: those that are put before `close` are among them.
            closing = self._closing.is_set()
            self._wake.clear()
            self._send(self._due())
            if closing:
                self._disconnect()
                return
            self._closing.wait(_PAUSE_SECONDS)

    def _due(self) -> dict[str, dict[str, Any]]:
        """Take the new reports, or else all of running queries, so that they are not stale."""
        with self._guard:
            # The broker forgets a query that has not reported for a while.
            names = self._new or set(self._latest)
            due = {name: self._latest[name] for name in names}
            self._new = set()
            for name, facts in due.items():
                if facts.get("state", RUNNING) != RUNNING:
                    del self._latest[name]
        return due

    def _send(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        if not reports:
            return
        try:
            if self._connection is None:
                self._connection = blocking.connect(
                    self._url, call_timeout=_CALL_SECONDS, background_heartbeats=True
                )
            with self._connection.channel(confirms=False) as channel:
                for query, facts in reports.items():
                    channel.report_query(query, facts)
            self._warned = False
        except (HarebellError, OSError) as error:
            self._disconnect()
            if not self._warned:
                self._warned = True
                _LOG.warning(
                    "the broker at %s gets no reports of queries, which go on: %s",
                    self._url.address,
                    error,
                )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (HarebellError, OSError):
                connection.abort()


class ReportListener(StreamingQueryListener):
    """Report all queries of a session to a broker: `spark.streams.addListener(ReportListener())`.

    Args:
        url: the broker; by default that of the variable `HAREBELL_URL`, or the one on this machine.
        application: a name of the application for the reports.
    """

    def __init__(self, url: str | None = None, application: str = "") -> None:
        super().__init__()
        self._reporter = QueryReporter(url or os.environ.get(URL_VARIABLE) or DEFAULT_URL)
        self._application = application
        self._facts: dict[str, tuple[str, dict[str, Any]]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Report that the query runs."""
        facts: dict[str, Any] = {"id": str(event.id), "run_id": str(event.runId)}
        if self._application:
            facts["application"] = _cut(self._application)
        self._report(event.name or str(event.id), facts)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report the micro-batch."""
        progress = event.progress
        run = str(progress.runId)
        name, facts = self._facts.get(run, (progress.name or str(progress.id), {"run_id": run}))
        waiting: dict[str, int] = {}
        for source in progress.sources:
            waiting |= waiting_of(source.latestOffset, source.endOffset)
        facts = facts | {
            "batch": int(progress.batchId),
            "input_rows": int(progress.numInputRows),
            "sink": _cut(progress.sink.description),
        }
        rate = progress.processedRowsPerSecond
        if rate is not None and math.isfinite(rate):
            facts["rows_per_second"] = float(rate)
        self._report(name, facts | lag_facts(waiting, facts.get("rows_per_second", 0.0)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: the last report still holds, and is sent again."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Report the end, and the error if there is one."""
        run = str(event.runId)
        name, facts = self._facts.pop(run, (str(event.id), {"run_id": run}))
        if event.exception:
            end = {"state": "failed", "error": sentence_of(str(event.exception))}
        else:
            end = {"state": "stopped"}
        self._reporter.put(name, facts | end)

    def close(self) -> None:
        """Send the last reports; the listener has to be removed from the session before."""
        self._reporter.close()

    def _report(self, name: str, facts: dict[str, Any]) -> None:
        self._facts[facts["run_id"]] = name, facts
        self._reporter.put(name, facts)


def lag_facts(waiting: Mapping[str, int], rate: float) -> dict[str, Any]:
    """Return the facts about what is not read yet.

    Args:
        waiting: messages by queue; empty if unknown.
        rate: rows per second, for the time that they will take.
    """
    if not waiting:
        return {}
    lag = sum(waiting.values())
    lag_facts: dict[str, Any] = {
        "lag_messages": lag,
        "sources": [_cut(queue) for queue in sorted(waiting)[:QUERY_SOURCES]],
    }
    if not lag or rate > 0:
        lag_facts["lag_seconds"] = lag / rate if lag else 0.0
    return lag_facts


def _cut(text: str) -> str:
    """Return as much of a text as a report takes."""
    return text.encode(errors="replace")[:QUERY_TEXT_BYTES].decode(errors="ignore")
