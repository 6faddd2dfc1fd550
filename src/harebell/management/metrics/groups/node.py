"""Metrics of the process, its disk and its memory, and the identity of the broker."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from harebell import __version__
from harebell.config import machine_memory_bytes
from harebell.front.common.blocked_publishers import DISK, FILES, MEMORY
from harebell.management.metrics.text import COUNTER, GAUGE, HISTOGRAM, UNTYPED, Metric, Row, labels
from harebell.management.statistics.process import figures
from harebell.server.memory_watch import resident_bytes

if TYPE_CHECKING:
    from harebell.management.metrics.source import Source

IDENTITY = (Metric("identity_info", UNTYPED, "1; the labels name the node and the cluster."),)
IDENTITY_LABELS = (
    *("rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id", "rabbitmq_endpoint"),
)
BUILD = (Metric("build_info", UNTYPED, "1; the labels have the versions."),)
BUILD_LABELS = (
    *("rabbitmq_version", "prometheus_plugin_version", "prometheus_client_version"),
    *("erlang_version", "product_name", "product_version"),
)
COARSE = (
    Metric("process_open_fds", GAUGE, "Open file descriptors."),
    Metric("process_open_tcp_sockets", GAUGE, "Connections of AMQP."),
    Metric("process_resident_memory_bytes", GAUGE, "Resident memory of the process."),
    Metric("disk_space_available_bytes", GAUGE, "Free space in the file system of the data."),
)
LIMITS = (
    Metric("process_max_fds", GAUGE, "Most open file descriptors."),
    Metric("process_max_tcp_sockets", GAUGE, "Most connections, by the limit of descriptors."),
    Metric(
        "resident_memory_limit_bytes",
        GAUGE,
        "Memory watermark: publishers wait while resident memory is above it.",
    ),
    Metric(
        "disk_space_available_limit_bytes",
        GAUGE,
        "Free disk space below which publishers wait.",
    ),
    Metric("erlang_uptime_seconds", GAUGE, "Time since the broker started."),
)
ALARMS = (
    Metric("alarms_memory_used_watermark", GAUGE, "1 while memory is above its watermark."),
    Metric("alarms_free_disk_space_watermark", GAUGE, "1 while disk space is short."),
    Metric("alarms_file_descriptor_limit", GAUGE, "1 while no more files can be opened."),
)
PERSISTER = (
    Metric("io_sync_ops_total", COUNTER, "Commits that were synced."),
    Metric("io_sync_time_seconds_total", COUNTER, "Time that their syncs took."),
    Metric("io_read_ops_total", COUNTER, "System calls that read, of sockets too."),
    Metric("io_read_bytes_total", COUNTER, "Bytes that storage has read for the process."),
    Metric("io_write_ops_total", COUNTER, "System calls that write, to sockets too."),
    Metric("io_write_bytes_total", COUNTER, "Bytes that storage has written for the process."),
)
MEMORY_USED = (
    Metric("memory_queued_bytes", GAUGE, "Memory of messages, part of the resident memory."),
    Metric("memory_unread_bytes", GAUGE, "Part of it: messages not received completely."),
    Metric("memory_uncommitted_bytes", GAUGE, "Part of it: transactions not committed."),
    Metric("memory_machine_bytes", GAUGE, "Memory of the machine, or the limit of the cgroup."),
)
CERTIFICATES = (
    Metric(
        "certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the first certificate in a file of a TLS listener expires, in seconds since 1970.",
    ),
)
HEALTH = (
    Metric("sync_duration_seconds", HISTOGRAM, "Durations of the syncs of commits."),
    Metric(
        "event_loop_lag_seconds",
        HISTOGRAM,
        "Delays of a timer of the event loop that is due twice a second.",
    ),
    Metric("connections_blocked", GAUGE, "Connections that are blocked."),
    Metric(
        "connections_blocked_seconds_total",
        COUNTER,
        "Time that connections were blocked, all together, those that ended included.",
    ),
    Metric("commits_total", COUNTER, "Commits that are on disk."),
    Metric(
        "failed_callbacks_total",
        COUNTER,
        "Timers, ticks and other callbacks that raised; the log names the first of each.",
    ),
)

_MS = 1_000


def open_descriptors() -> int | None:
    """Return how many descriptors are open; None if the platform does not tell."""
    with suppress(OSError):
        # Listing them opens one more.
        return len(os.listdir("/proc/self/fd")) - 1
    return None


def identity_rows(source: Source, endpoint: str) -> Iterator[Row]:
    """Yield the row of `IDENTITY`; public dashboards join every other metric with it."""
    parameters = source.broker.global_parameters.values
    node = source.broker.events.node
    values = (
        node,
        str(parameters.get("cluster_name", node)),
        str(parameters.get("internal_cluster_id", "")),
        endpoint,
    )
    yield labels(**dict(zip(IDENTITY_LABELS, values, strict=True))), (1,)


def build_rows(version: str) -> Iterator[Row]:
    """Yield the row of `BUILD`.

    Args:
        version: the version that clients of RabbitMQ are shown.
    """
    python = f"{platform.python_implementation()} {platform.python_version()}"
    values = (version, version, __version__, python, "Harebell", __version__)
    yield labels(**dict(zip(BUILD_LABELS, values, strict=True))), (1,)


def coarse_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `COARSE`."""
    sockets = len(source.registry.connections)
    yield "", (open_descriptors(), sockets, resident_bytes(), source.storage.free)


def limit_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `LIMITS`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    uptime = round(source.clock() - source.started_at, 3)
    yield (
        "",
        (
            limit,
            source.max_connections,
            source.broker.gauge.high,
            source.storage.free_limit,
            uptime,
        ),
    )


def alarm_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `ALARMS`."""
    short = source.registry.publishers.short_of()
    yield "", tuple([int(what in short) for what in (MEMORY, DISK, FILES)])


def persister_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `PERSISTER`."""
    both = (source.flusher.syncs, source.storage.files.syncs)
    process = figures()
    yield (
        "",
        (
            sum([each.count for each in both]),
            sum([each.total for each in both]),
            process.reads,
            process.read_bytes,
            process.writes,
            process.written_bytes,
        ),
    )


def memory_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `MEMORY_USED`."""
    gauge = source.broker.gauge
    yield "", (gauge.used, gauge.unread, gauge.uncommitted, machine_memory_bytes())


def health_rows(source: Source) -> Iterator[Row]:
    """Yield the row of `HEALTH`."""
    publishers = source.registry.publishers
    syncs = type(source.flusher.syncs)(source.flusher.syncs.bounds)
    syncs.add(source.flusher.syncs)
    syncs.add(source.storage.files.syncs)
    yield (
        "",
        (
            syncs,
            source.lag,
            len(publishers.connections),
            publishers.total_ms() / _MS,
            source.storage.store.commit.done,
            sum(source.broker.failures.counts.values()),
        ),
    )


def certificate_rows(source: Source) -> Iterator[Row]:
    """Yield a row of `CERTIFICATES` for each TLS listener and file with certificates."""
    for listening, certificate in source.certificates():
        text = labels(
            protocol=listening.protocol,
            address=listening.address,
            port=str(listening.port),
            file=certificate.path,
        )
        yield text, (certificate.expires_at,)
