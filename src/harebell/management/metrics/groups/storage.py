"""Metrics of backups, and of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.management.metrics.section import Selection, Values, figures, section
from harebell.management.metrics.text import Row, labels


@figures("""
    gauge harebell_storage_owned 1 if this broker owns the store, 0 if it stands by.
    gauge harebell_storage_epoch Epoch of the owner of the store; it grows with each claim.
    gauge harebell_storage_lease_seconds Time that is left of the lease on the store.
    counter harebell_storage_commits_total Rows that were appended to the log of the store.
    counter harebell_storage_written_bytes_total Bytes that were appended to the log.
    histogram harebell_storage_commit_seconds Durations of commits in PostgreSQL.
    gauge harebell_storage_log_bytes Size of the log, compressed.
    gauge harebell_storage_log_live_bytes Estimate of its bytes that are needed to restore the \
        store.
    gauge harebell_storage_log_dead_bytes Estimate of its bytes that are not needed any more.
    gauge harebell_storage_log_generations Tables that the log is in.
    gauge harebell_storage_brokers_running Brokers of the store that run.
""")
def storage(chosen: Selection) -> Values | None:
    """Return the figures of a store in PostgreSQL; None for a store in the data directory."""
    owned = chosen.source.storage.owned
    if owned is None:
        return None
    overview = owned.overview()
    return (
        1,
        overview["epoch"],
        overview["lease_seconds"],
        overview["log_rows"],
        overview["log_written_bytes"],
        chosen.source.storage.files.syncs,
        overview["log_bytes"],
        overview["log_live_bytes"],
        overview["log_dead_bytes"],
        overview["log_generations"],
        sum([each["running"] for each in owned.nodes()]),
    )


@section("""
    by broker
    gauge harebell_standby_lag_bytes Bytes of the log of the store that a broker which stands by \
        has not read.
    gauge harebell_standby_lag_seconds Since when it has not read everything.
""")
def standbys(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each broker that stands by, and says how far it is."""
    owned = chosen.source.storage.owned
    for each in owned.nodes() if owned is not None else ():
        if each["behind_bytes"] is not None:
            values = each["behind_bytes"], each["behind_seconds"]
            yield labels(broker=each["name"]), values


@figures("""
    gauge harebell_backup_last_success_timestamp_seconds When the newest complete backup began, in \
        seconds since 1970.
    gauge harebell_backup_last_duration_seconds How long it took.
    gauge harebell_backup_last_bytes Size of its files, those of earlier backups included.
    gauge harebell_backup_last_copied_bytes Bytes that were copied for it.
    counter harebell_backups_made_total Backups that were completed.
    counter harebell_backup_failures_total Backups that failed, or could not begin.
    gauge harebell_backups_running 1 while a backup is made.
""")
def backups(chosen: Selection) -> Values | None:
    """Return the figures of backups; None for a store in PostgreSQL."""
    return chosen.source.backups() if chosen.source.storage.owned is None else None


@figures("""
    gauge harebell_relayed_connections Connections that are passed on to another owner.
    gauge harebell_relay_waiting_connections Connections that wait for another owner.
""")
def passed_on(chosen: Selection) -> Values | None:
    """Return how many clients of other stores there are; None with one store."""
    given = chosen.source.passed_on()
    return (given["connections_passed_on"], given["connections_waiting"]) if given else None
