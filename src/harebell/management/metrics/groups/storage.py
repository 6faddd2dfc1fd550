"""Metrics of backups, and of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.text import COUNTER, GAUGE, HISTOGRAM, Metric, Row

if TYPE_CHECKING:
    from harebell.management.metrics.source import Source

OWNED = Metric("storage_owned", GAUGE, "1 if this broker owns the store, 0 if it stands by.")
EPOCH = Metric("storage_epoch", GAUGE, "Epoch of the owner of the store; it grows with each claim.")
PASSED_ON = (
    Metric("relayed_connections", GAUGE, "Connections that are passed on to another owner."),
    Metric("relay_waiting_connections", GAUGE, "Connections that wait for another owner."),
)
BACKUPS = (
    Metric(
        "backup_last_success_timestamp_seconds",
        GAUGE,
        "When the newest complete backup began, in seconds since 1970.",
    ),
    Metric("backup_last_duration_seconds", GAUGE, "How long it took."),
    Metric("backup_last_bytes", GAUGE, "Size of its files, those of earlier backups included."),
    Metric("backup_last_copied_bytes", GAUGE, "Bytes that were copied for it."),
    Metric("backups_made_total", COUNTER, "Backups that were completed."),
    Metric("backup_failures_total", COUNTER, "Backups that failed, or could not begin."),
    Metric("backups_running", GAUGE, "1 while a backup is made."),
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
    overview = owned.overview()
    yield (
        "",
        (
            1,
            overview["epoch"],
            overview["lease_seconds"],
            overview["log_rows"],
            overview["log_written_bytes"],
            source.storage.files.syncs,
            overview["log_bytes"],
            overview["log_live_bytes"],
            overview["log_dead_bytes"],
            overview["log_generations"],
            sum([each["running"] for each in owned.nodes()]),
        ),
    )


def backup_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `BACKUPS`; none for a store in PostgreSQL."""
    if source.storage.owned is None:
        yield "", source.backups()


def passed_on_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `PASSED_ON`; none with one store."""
    passed_on = source.passed_on()
    if passed_on:
        yield "", (passed_on["connections_passed_on"], passed_on["connections_waiting"])
