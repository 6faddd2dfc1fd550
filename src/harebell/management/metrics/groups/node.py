"""Metrics of the process, its disk and its memory, and the identity of the broker."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from contextlib import suppress

from harebell import __version__
from harebell.config import machine_memory_bytes
from harebell.front.common.blocked_publishers import DISK, FILES, MEMORY
from harebell.management.metrics.section import Selection, Values, figures, section
from harebell.management.metrics.text import Row, labels
from harebell.management.statistics import process
from harebell.server.memory_watch import resident_bytes

_MS = 1_000


def _open_descriptors() -> int | None:
    """Return how many descriptors are open; None if the platform does not tell."""
    with suppress(OSError):
        # Listing them opens one more.
        return len(os.listdir("/proc/self/fd")) - 1
    return None


@section("""
    by rabbitmq_node rabbitmq_cluster rabbitmq_cluster_permanent_id rabbitmq_endpoint
    untyped rabbitmq_identity_info 1; the labels name the node and the cluster.
""")
def identity(chosen: Selection) -> Iterator[Row]:
    """Yield the row that public dashboards join with every other metric."""
    parameters = chosen.source.broker.global_parameters.values
    node = chosen.source.broker.events.node
    text = labels(
        rabbitmq_node=node,
        rabbitmq_cluster=str(parameters.get("cluster_name", node)),
        rabbitmq_cluster_permanent_id=str(parameters.get("internal_cluster_id", "")),
        rabbitmq_endpoint=chosen.endpoint,
    )
    yield text, (1,)


@section("""
    by rabbitmq_version prometheus_plugin_version prometheus_client_version erlang_version \
        product_name product_version
    untyped rabbitmq_build_info 1; the labels have the versions.
""")
def build(chosen: Selection) -> Iterator[Row]:
    """Yield the row with the versions."""
    text = labels(
        rabbitmq_version=chosen.version,
        prometheus_plugin_version=chosen.version,
        prometheus_client_version=__version__,
        erlang_version=f"{platform.python_implementation()} {platform.python_version()}",
        product_name="Harebell",
        product_version=__version__,
    )
    yield text, (1,)


@figures("""
    gauge rabbitmq_process_open_fds Open file descriptors.
    gauge rabbitmq_process_open_tcp_sockets Connections of AMQP.
    gauge rabbitmq_process_resident_memory_bytes Resident memory of the process.
    gauge rabbitmq_disk_space_available_bytes Free space in the file system of the data.
""")
def coarse(chosen: Selection) -> Values:
    """Return what is used."""
    sockets = len(chosen.source.registry.connections)
    return _open_descriptors(), sockets, resident_bytes(), chosen.source.storage.free


@figures("""
    gauge rabbitmq_process_max_fds Most open file descriptors.
    gauge rabbitmq_process_max_tcp_sockets Most connections, by the limit of descriptors.
    gauge rabbitmq_resident_memory_limit_bytes Memory watermark: publishers wait while resident \
        memory is above it.
    gauge rabbitmq_disk_space_available_limit_bytes Free disk space below which publishers wait.
    gauge rabbitmq_erlang_uptime_seconds Time since the broker started.
""")
def limits(chosen: Selection) -> Values:
    """Return what may be used."""
    source = chosen.source
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    uptime = round(source.clock() - source.started_at, 3)
    memory, disk = source.broker.gauge.high, source.storage.free_limit
    return descriptors, source.max_connections, memory, disk, uptime


@figures("""
    gauge rabbitmq_alarms_memory_used_watermark 1 while memory is above its watermark.
    gauge rabbitmq_alarms_free_disk_space_watermark 1 while disk space is short.
    gauge rabbitmq_alarms_file_descriptor_limit 1 while no more files can be opened.
""")
def alarms(chosen: Selection) -> Values:
    """Return what is short."""
    short = chosen.source.registry.publishers.short_of()
    return tuple([int(what in short) for what in (MEMORY, DISK, FILES)])


@figures("""
    counter rabbitmq_io_sync_ops_total Commits that were synced.
    counter rabbitmq_io_sync_time_seconds_total Time that their syncs took.
    counter rabbitmq_io_read_ops_total System calls that read, of sockets too.
    counter rabbitmq_io_read_bytes_total Bytes that storage has read for the process.
    counter rabbitmq_io_write_ops_total System calls that write, to sockets too.
    counter rabbitmq_io_write_bytes_total Bytes that storage has written for the process.
""")
def persister(chosen: Selection) -> Values:
    """Return what was written and read."""
    both = (chosen.source.flusher.syncs, chosen.source.storage.files.syncs)
    own = process.figures()
    return (
        sum([each.count for each in both]),
        sum([each.total for each in both]),
        own.reads,
        own.read_bytes,
        own.writes,
        own.written_bytes,
    )


@figures("""
    gauge harebell_memory_queued_bytes Memory of messages, part of the resident memory.
    gauge harebell_memory_unread_bytes Part of it: messages not received completely.
    gauge harebell_memory_uncommitted_bytes Part of it: transactions not committed.
    gauge harebell_memory_machine_bytes Memory of the machine, or the limit of the cgroup.
""")
def memory(chosen: Selection) -> Values:
    """Return what the memory is used for."""
    gauge = chosen.source.broker.gauge
    return gauge.used, gauge.unread, gauge.uncommitted, machine_memory_bytes()


@figures("""
    histogram harebell_sync_duration_seconds Durations of the syncs of commits.
    histogram harebell_event_loop_lag_seconds Delays of a timer of the event loop that is due \
        twice a second.
    gauge harebell_connections_blocked Connections that are blocked.
    counter harebell_connections_blocked_seconds_total Time that connections were blocked, all \
        together, those that ended included.
    counter harebell_commits_total Commits that are on disk.
    counter harebell_failed_callbacks_total Timers, ticks and other callbacks that raised; the log \
        names the first of each.
""")
def health(chosen: Selection) -> Values:
    """Return what tells whether the broker keeps up."""
    source = chosen.source
    publishers = source.registry.publishers
    syncs = type(source.flusher.syncs)(source.flusher.syncs.bounds)
    syncs.add(source.flusher.syncs)
    syncs.add(source.storage.files.syncs)
    return (
        syncs,
        source.lag,
        len(publishers.connections),
        publishers.total_ms() / _MS,
        source.storage.store.commit.done,
        sum(source.broker.failures.counts.values()),
    )


@section("""
    by rule
    gauge harebell_findings Findings of `harebell health --why`, by what was found.
""")
def findings(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each rule that has found something."""
    counts: dict[str, int] = {}
    for each in chosen.source.findings.found:
        counts[each.rule] = counts.get(each.rule, 0) + (each.more or 1)
    for rule, count in counts.items():
        yield labels(rule=rule), (count,)


@section("""
    by rule kind vhost name
    gauge harebell_finding_since_seconds Since when somebody is needed there, in seconds since \
        1970; at most 20 of a rule in a vhost.
""")
def each_finding(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each finding that is told by its name."""
    for each in chosen.source.findings.found:
        if not each.more and (chosen.vhosts is None or each.vhost in chosen.vhosts):
            text = labels(rule=each.rule, kind=each.kind, vhost=each.vhost, name=each.name)
            yield text, (each.since / _MS,)


@section("""
    by protocol address port file
    gauge harebell_certificate_expiry_timestamp_seconds When the first certificate in a file of a \
        TLS listener expires, in seconds since 1970.
""")
def certificates(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each TLS listener and file with certificates."""
    for listening, certificate in chosen.source.certificates():
        text = labels(
            protocol=listening.protocol,
            address=listening.address,
            port=str(listening.port),
            file=certificate.path,
        )
        yield text, (certificate.expires_at,)
