"""Facts about the process of a broker, for commands; the server collects them."""

from __future__ import annotations

from msgspec import Struct, field


class Listening(Struct, frozen=True):
    """An address that accepts connections.

    Args:
        protocol: RabbitMQ's name: "amqp", "amqp/ssl", "http", "https", "http/prometheus", ...
        address: an IP address.
        port: its number, as bound.
        certificates: files with the certificates that are used there.
    """

    protocol: str
    address: str
    port: int
    certificates: tuple[str, ...] = ()


class Certificate(Struct, frozen=True):
    """A certificate in a file.

    Args:
        path: the file.
        expires_at: seconds since 1970.
    """

    path: str
    expires_at: int


class NodeFacts(Struct, frozen=True):
    """The process of a broker.

    Args:
        listeners: the addresses that accept connections.
        pid: of the process.
        uptime_ms: milliseconds since its start.
        processors: processors that it may use.
        data_dir: the data directory.
        config_files: the configuration files that were read.
        log_files: where log lines go.
        rabbitmq_version: the version of RabbitMQ that clients get; "" for the default.
        auth_mechanisms: the SASL mechanisms that are offered.
        fd_total: the limit of open files and sockets.
        sockets_total: the limit of connections.
        disk_free: free bytes on the disk of the data directory.
        disk_free_limit: below it publishers are blocked.
        disk_alarm: whether the disk is short.
        run_queue: users whose work waits for another turn.
        sync_ms: the mean duration of the syncs of commits, in milliseconds.
        figures: what is sampled, such as `mem_used`.
        certificates: those of the TLS listeners.
    """

    listeners: tuple[Listening, ...] = ()
    pid: int = 0
    uptime_ms: int = 0
    processors: int = 1
    data_dir: str = ""
    config_files: tuple[str, ...] = ()
    log_files: tuple[str, ...] = ()
    rabbitmq_version: str = ""
    auth_mechanisms: tuple[str, ...] = ()
    fd_total: int = 0
    sockets_total: int = 0
    disk_free: int = 0
    disk_free_limit: int = 0
    disk_alarm: bool = False
    run_queue: int = 0
    sync_ms: float = 0.0
    figures: dict[str, int] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()


FIGURES = (
    *("mem_used", "fd_used", "sockets_used", "disk_free", "proc_used"),
    *("gc_num", "gc_bytes_reclaimed", "context_switches"),
    *("io_read_count", "io_read_bytes", "io_read_avg_time"),
    *("io_write_count", "io_write_bytes", "io_write_avg_time"),
    *("io_sync_count", "io_sync_avg_time", "io_seek_count", "io_seek_avg_time"),
    "io_reopen_count",
    *("mnesia_ram_tx_count", "mnesia_disk_tx_count"),
    *("msg_store_read_count", "msg_store_write_count"),
    *("queue_index_read_count", "queue_index_write_count"),
)
"""The sampled figures of a node, in RabbitMQ's words. Those that Harebell has no counterpart for,
such as `io_seek_count`, are 0."""
