"""The table of configuration keys: one row per key, with its reader and one-line description.

A key has one name everywhere: `tls_port` in the TOML file, `HAREBELL_TLS_PORT` in the environment
and `--tls-port` on the command line. A reader converts the input (TOML values are typed, the others
are text) to the value in `harebell.server.config.Config`. It raises ValueError with the allowed
values; the caller adds the source and the key.
"""

from __future__ import annotations

from dataclasses import dataclass

from harebell.base import limits
from harebell.base.hash_names import SCRYPT, SHA256, SHA512
from harebell.server.config.values import (
    COUNT_MAX,
    PORT_MAX,
    SHORT_MAX,
    TIMEOUT_MAX_SECONDS,
    TIMEOUT_MIN_SECONDS,
    Reader,
    address,
    choice,
    ciphers,
    file,
    folder,
    free_space,
    header,
    listening,
    mechanisms,
    origins,
    password_file,
    path_prefix,
    pem_file,
    port_or_none,
    seconds,
    size,
    switch,
    text,
    version,
    watermark,
    whole,
)
from harebell.server.net.certificate import LOGIN_NAMES

PREFIX = "HAREBELL_"


PASSWORD_HASHING = (SCRYPT, SHA256, SHA512)
"""Hash algorithms for new passwords, the strongest one first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration key.

    Args:
        name: the key in the TOML file; variable and flag are derived from it.
        read: parses the value, or raises ValueError with the allowed values.
        help: one line for `--help` and the documentation.
        secret: true if there is no flag, because other users can read command lines.
    """

    name: str
    read: Reader
    help: str
    secret: bool = False

    @property
    def variable(self) -> str:
        """Return the name of the environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Return the name of the flag; None for a secret."""
        return None if self.secret else "--" + self.name.replace("_", "-")


_STAGED = size(0, 2**60)

SETTINGS: tuple[Setting, ...] = (
    Setting("host", address, "Address to listen on."),
    Setting(
        "port",
        port_or_none,
        "Port for AMQP; 0 takes a free one and prints it, none serves no plain AMQP.",
    ),
    Setting("listen", listening, "More addresses: amqp://host:port, amqp-0-10t://host:port."),
    Setting("data_dir", folder, "Directory for everything the broker keeps."),
    Setting("tls_port", whole(0, PORT_MAX), "Port for AMQP over TLS; without it there is no TLS."),
    Setting("tls_cert", pem_file, "Certificate chain of the broker (PEM)."),
    Setting("tls_key", pem_file, "Private key of the certificate (PEM)."),
    Setting("tls_ca", pem_file, "Authorities that client certificates are checked against (PEM)."),
    Setting("tls_key_password", text, "Passphrase of that key.", secret=True),
    Setting("tls_key_password_file", password_file, "File with the passphrase of that key."),
    Setting(
        "tls_verify",
        choice("verify_peer", "verify_none"),
        "Whether certificates that clients show are checked against tls_ca.",
    ),
    Setting(
        "tls_fail_if_no_peer_cert",
        switch,
        "Turn clients away that show no certificate.",
    ),
    Setting("tls_min_version", choice("tlsv1.2", "tlsv1.3"), "Oldest version of TLS."),
    Setting("tls_ciphers", ciphers, "Ciphers of TLS 1.2, as OpenSSL writes them."),
    Setting(
        "tls_login_from",
        choice(*LOGIN_NAMES),
        "What of a client's certificate is its user's name, for SASL EXTERNAL.",
    ),
    Setting(
        "management_port",
        whole(0, PORT_MAX),
        "Port of the HTTP API, 0 for none; by default 15672, and none with port 0.",
    ),
    Setting("management_host", address, "Address of the HTTP API."),
    Setting(
        "management_tls_port",
        whole(0, PORT_MAX),
        "Port of the HTTP API over TLS, with the certificate of tls_cert; 0 for none.",
    ),
    Setting("management_path_prefix", path_prefix, "Start of all its paths, such as /rabbit."),
    Setting(
        "management_body_max_bytes",
        size(1, limits.HTTP_BODY_MOST_BYTES),
        "Largest body of a request to it, in octets.",
    ),
    Setting(
        "management_cors_allow_origins",
        origins,
        "Origins whose pages may use it, with commas between them; * for all.",
    ),
    Setting(
        "management_cors_max_age",
        whole(0, COUNT_MAX),
        "Seconds that browsers may remember that they may.",
    ),
    Setting("management_csp_policy", header, "Its header content-security-policy."),
    Setting("management_hsts_policy", header, "Its header strict-transport-security."),
    Setting(
        "metrics_port",
        whole(0, PORT_MAX),
        "Port of metrics and probes, 0 for none; by default 15692, and none with port 0.",
    ),
    Setting("metrics_host", address, "Address of the metrics and probes."),
    Setting(
        "metrics_per_object",
        switch,
        "Give a sample for each queue, channel and connection at /metrics, not sums.",
    ),
    Setting(
        "auth_mechanisms",
        mechanisms,
        "SASL mechanisms that clients may log in with, where they can succeed.",
    ),
    Setting(
        "password_hashing_module",
        choice(*PASSWORD_HASHING),
        "How passwords that are set are hashed.",
    ),
    Setting(
        "anonymous_login_user",
        text,
        "User that everybody is who logs in with SASL ANONYMOUS; without it nobody can.",
    ),
    Setting("channel_max", whole(1, SHORT_MAX), "Most channels per connection."),
    Setting(
        "channel_max_per_node",
        whole(0, COUNT_MAX),
        "Most channels of all connections together; 0 for no limit.",
    ),
    Setting("connection_max", whole(0, COUNT_MAX), "Most connections; 0 for no limit."),
    Setting(
        "unauthenticated_connection_max",
        whole(0, COUNT_MAX),
        "Most connections that have not logged in yet; 0 for no limit.",
    ),
    Setting(
        "unauthenticated_connection_max_per_address",
        whole(0, COUNT_MAX),
        "Most of them from one address; 0 for no limit.",
    ),
    Setting(
        "consumer_max_per_channel",
        whole(0, COUNT_MAX),
        "Most consumers per channel; 0 for no limit.",
    ),
    Setting("vhost_max", whole(0, COUNT_MAX), "Most virtual hosts; 0 for no limit."),
    Setting(
        "cluster_queue_limit",
        whole(0, COUNT_MAX),
        "Most queues of all virtual hosts together; 0 for no limit.",
    ),
    Setting(
        "cluster_exchange_limit",
        whole(0, COUNT_MAX),
        "Most exchanges of all virtual hosts together; 0 for no limit.",
    ),
    Setting(
        "frame_max",
        size(limits.FRAME_MIN_BYTES, limits.MESSAGE_MAX_BYTES),
        "Largest frame, in octets.",
    ),
    Setting("heartbeat", whole(0, SHORT_MAX), "Seconds between heartbeats; 0 turns them off."),
    Setting(
        "handshake_timeout_seconds",
        seconds(TIMEOUT_MIN_SECONDS, TIMEOUT_MAX_SECONDS),
        "Seconds that a client has to log in.",
    ),
    Setting(
        "shutdown_grace_seconds",
        seconds(0.0, TIMEOUT_MAX_SECONDS),
        "Seconds that clients have to read what is left when the broker stops.",
    ),
    Setting(
        "consumer_timeout",
        whole(0, limits.CONSUMER_TIMEOUT_MAX_MS),
        "Milliseconds that a delivery may go without acknowledgement; 0 for no limit.",
    ),
    Setting(
        "default_queue_type",
        choice("classic", "quorum", "stream"),
        "Type of queues whose declaration and vhost name none.",
    ),
    Setting(
        "memory_high_watermark",
        watermark,
        "Memory for queued messages above which publishers wait.",
    ),
    Setting(
        "disk_free_limit",
        free_space,
        "Free disk space below which publishers wait; 0 for no limit.",
    ),
    Setting("stage_user_limit", _STAGED, "Octets that a user may stage; 0: half of the room."),
    Setting("stage_vhost_limit", _STAGED, "The same in a vhost; 0: three quarters of the room."),
    Setting(
        "durability",
        choice("fsync", "interval", "os"),
        "What a confirm waits for: the disk, or less.",
    ),
    Setting(
        "durability_interval_ms",
        whole(1, limits.DURABILITY_INTERVAL_MAX_MS),
        'Milliseconds between syncs with durability "interval".',
    ),
    Setting(
        "segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "Size of the files that a queue's messages are kept in.",
    ),
    Setting(
        "stream_segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "The same for streams.",
    ),
    Setting(
        "message_max_bytes",
        size(1, limits.BODY_HARD_MAX_BYTES),
        "Largest message body, in octets.",
    ),
    Setting(
        "load_definitions",
        file("a file of definitions"),
        "Definitions (JSON) that are taken in at every start, before anybody connects.",
    ),
    Setting("compat_product", text, "Product that clients are told they are connected to."),
    Setting("compat_version", version, "Version of that product."),
    Setting(
        "message_interceptors_incoming_set_header_timestamp_overwrite",
        switch,
        "Stamp every message that comes in with the time; true replaces another.",
    ),
    Setting(
        "message_interceptors_incoming_set_header_routing_node_overwrite",
        switch,
        "Stamp every message that comes in with the broker; true replaces another.",
    ),
    Setting(
        "message_interceptors_outgoing_timestamp_enabled",
        switch,
        "Stamp every message that goes out with the time.",
    ),
    Setting("log_exchange", switch, "Publish the log on the exchange amq.rabbitmq.log."),
    Setting(
        "log_exchange_level",
        choice("debug", "info", "warning", "error"),
        "Least important line that is published there.",
    ),
    Setting("log_level", choice("debug", "info", "warning", "error"), "Least important log line."),
    Setting("loop", choice("auto", "uvloop", "asyncio"), "Event loop; auto prefers uvloop."),
    Setting("default_user", text, "User that exists from the start."),
    Setting("default_pass", text, "Password of that user.", secret=True),
)

ALIASES = {"max_message_size": "message_max_bytes"}
"""Names of RabbitMQ that are accepted in the file and in the environment."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
