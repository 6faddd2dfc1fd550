"""Collect the facts about this process that commands show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.admin.node import FIGURES, Certificate, Listening, NodeFacts
from harebell.auth.sasl.exchanges import USUAL
from harebell.base import impl
from harebell.front.common.blocked_publishers import DISK
from harebell.management.statistics.process import figures
from harebell.server.file_limits import max_open
from harebell.server.logs.outputs import log_paths
from harebell.server.net.certificate import certificates_in

if TYPE_CHECKING:
    from harebell.base.histogram import Histogram
    from harebell.server.app import App

_MS = 1000
_PROTOCOLS = {
    "amqp": "amqp",
    "amqps": "amqp/ssl",
    "amqp-0-10t": "amqp/0-10t",
    "https": "https",
    "http": "http",
}
_METRICS = {"http": "http/prometheus", "https": "https/prometheus"}
_TLS = ("amqps", "https")


def sampled(app: App) -> dict[str, int]:
    """Return the figures of the process that are sampled."""
    process = figures()
    values = {
        "mem_used": process.rss,
        "fd_used": process.files,
        "sockets_used": len(app.registry.connections),
        "disk_free": app.storage.free,
        "proc_used": process.threads,
        "gc_num": process.collections,
        "context_switches": process.context_switches,
        "io_read_count": process.reads,
        "io_read_bytes": process.read_bytes,
        "io_write_count": process.writes,
        "io_write_bytes": process.written_bytes,
        "io_sync_count": sum(each.count for each in _syncs(app)),
        "mnesia_disk_tx_count": app.storage.store.commit.done,
    }
    return {name: values.get(name, 0) for name in FIGURES}


def overview(app: App) -> dict[str, Any]:
    """Return the figures of `harebell status`, without those of a cluster."""
    connections = app.registry.connections
    gauge = app.broker.gauge
    return {
        "version": __version__,
        "node": app.node,
        "rabbitmq_version": app.config.compat_version,
        "implementation": impl.chosen(),
        "loop": type(app.loop).__module__.split(".")[0],
        "pid": os.getpid(),
        "uptime_seconds": round(app.clock() - app.started_at, 3),
        "data_dir": str(app.config.data_dir),
        "log_files": [str(path) for path in log_paths(app.config)],
        "log_console": app.config.log_console_stdio if app.config.log_console else "",
        "state": app.service.state,
        "listeners_suspended": bool(app.service.closed),
        "listeners": [each.shown for each in app.addresses],
        "connections": len(connections),
        "channels": sum(len(connection.channels) for connection in connections),
        **app.broker.totals(),
        "memory_used_bytes": gauge.resident(),
        "memory_messages_bytes": gauge.used,
        "memory_high_watermark_bytes": gauge.high,
        "memory_alarm": gauge.over,
        "blocked_connections": len(app.registry.publishers.connections),
        **app.storage.overview(),
        "weaker_durability": app.broker.weaker(),
        "disk_alarm": DISK in app.registry.publishers.shortages,
        "shortages": sorted(app.registry.publishers.short_of()),
    }


def _syncs(app: App) -> tuple[Histogram, ...]:
    """Return the durations of the syncs of commits: in the sync thread, and elsewhere."""
    return app.flusher.syncs, app.storage.files.syncs


def _mean_ms(syncs: tuple[Histogram, ...]) -> float:
    count = sum(each.count for each in syncs)
    return round(sum(each.total for each in syncs) * _MS / count, 3) if count else 0.0


def facts(app: App) -> NodeFacts:
    """Return the facts about the process of a broker."""
    config = app.config
    listeners = _listeners(app)
    used = {file for each in listeners for file in each.certificates}
    return NodeFacts(
        listeners=listeners,
        pid=os.getpid(),
        uptime_ms=round((app.clock() - app.started_at) * _MS),
        processors=len(os.sched_getaffinity(0)),
        data_dir=str(config.data_dir),
        log_files=tuple(str(path) for path in log_paths(config)),
        rabbitmq_version=config.compat_version,
        auth_mechanisms=tuple(app.settings.mechanisms or USUAL),
        fd_total=max_open(),
        sockets_total=app.max_connections,
        disk_free=app.storage.free,
        disk_free_limit=app.storage.free_limit,
        disk_alarm=DISK in app.registry.publishers.shortages,
        run_queue=app.registry.turns.waiting,
        sync_ms=_mean_ms(_syncs(app)),
        figures=sampled(app),
        certificates=tuple(each for file in sorted(used) for each in certificates_in(file)),
    )


def _listeners(app: App) -> tuple[Listening, ...]:
    """Return what listens, with the files of the certificates that are used there."""
    config = app.config
    files = tuple(file for file in (config.tls_cert, config.tls_ca) if file)
    return tuple(
        Listening(
            _METRICS[each.scheme] if each in app.metrics_listeners else _PROTOCOLS[each.scheme],
            each.host,
            each.port,
            files if each.scheme in _TLS else (),
        )
        for each in app.addresses
    )


def expiring(app: App) -> list[tuple[Listening, Certificate]]:
    """Return the TLS listeners, each with the certificate of a file that expires first."""
    listeners = _listeners(app)
    certificates: dict[str, list[Certificate]] = {
        file: certificates_in(file) for each in listeners for file in each.certificates
    }
    return [
        (each, min(certificates[file], key=lambda certificate: certificate.expires_at))
        for each in listeners
        for file in each.certificates
        if certificates[file]
    ]
