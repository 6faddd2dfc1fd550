"""Metrics of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.server.metrics.text import COUNTER, GAUGE, HISTOGRAM, Metric, Row

if TYPE_CHECKING:
    from harebell.server.metrics.source import Source

OWNED = Metric("storage_owned", GAUGE, "1 if this broker owns the store, 0 if it stands by.")
EPOCH = Metric("storage_epoch", GAUGE, "Epoch of the owner of the store; it grows with each claim.")
PASSED_ON = (
    Metric("relayed_connections", GAUGE, "Connections that are passed on to another owner."),
    Metric("relay_waiting_connections", GAUGE, "Connections that wait for another owner."),
)
STORAGE = (
    OWNED,
    EPOCH,
    Metric("storage_lease_seconds", GAUGE, "Time that is left of the lease on the store."),
    Metric("storage_commits_total", COUNTER, "Rows that were appended to the log of the store."),
    Metric("storage_written_bytes_total", COUNTER, "Bytes that were appended to the log."),
    Metric("storage_commit_seconds", HISTOGRAM, "Durations of commits in PostgreSQL."),
    Metric("storage_log_bytes", GAUGE, "Size of the log, compressed."),
    Metric(
        "storage_log_live_bytes",
        GAUGE,
        "Estimate of its bytes that are needed to restore the store.",
    ),
    Metric("storage_log_dead_bytes", GAUGE, "Estimate of its bytes that are not needed any more."),
    Metric("storage_log_generations", GAUGE, "Tables that the log is in."),
    Metric("storage_brokers_running", GAUGE, "Brokers of the store that run."),
)


def storage_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `STORAGE`; none for a store in the data directory."""
    owned = source.storage.owned
    if owned is None:
        return
    found = owned.overview()
    yield (
        "",
        (
            1,
            found["epoch"],
            found["lease_seconds"],
            found["log_rows"],
            found["log_written_bytes"],
            source.storage.files.syncs,
            found["log_bytes"],
            found["log_live_bytes"],
            found["log_dead_bytes"],
            found["log_generations"],
            sum([each["running"] for each in owned.nodes()]),
        ),
    )


def passed_on_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `PASSED_ON`; none with one store."""
    found = source.passed_on()
    if found:
        yield "", (found["connections_passed_on"], found["connections_waiting"])
