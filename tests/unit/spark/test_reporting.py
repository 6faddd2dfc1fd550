"""What a reporter remembers of queries: the latest facts of those that run."""

from __future__ import annotations

from harebell.spark.reporting import QueryReporter
from tests.patience import eventually


def test_a_query_that_has_ended_is_reported_once_and_forgotten() -> None:
    # Nothing listens there: what is reported is dropped, and the reporter goes on.
    reporter = QueryReporter("amqp://127.0.0.1:1")
    reporter.put("runs", {"state": "running"})
    reporter.put("ended", {"state": "stopped"})
    reporter.put("failed", {"state": "failed"})
    assert eventually(lambda: list(reporter._latest) == ["runs"])
    reporter.close()
