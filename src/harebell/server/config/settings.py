"""The table of configuration keys: one row per key, with its reader and one-line description.

A key has one name everywhere: `tls_port` in the TOML file, `HAREBELL_TLS_PORT` in the environment
and `--tls-port` on the command line. A reader converts the input (TOML values are typed, the others
are text) to the value in `harebell.server.config.Config`. It raises ValueError with the allowed
values; the caller adds the source and the key.
"""

from __future__ import annotations

from harebell.base import limits
from harebell.base.hash_names import SCRYPT, SHA256, SHA512
from harebell.server.config.backend_settings import BACKEND_SETTINGS
from harebell.server.config.setting import Setting
from harebell.server.config.values import (
    COUNT_MAX,
    PORT_MAX,
    SHORT_MAX,
    TIMEOUT_MAX_SECONDS,
    TIMEOUT_MIN_SECONDS,
    address,
    choice,
    ciphers,
    definitions,
    directory,
    field_map,
    free_space,
    header,
    host_and_port,
    https_url,
    levels,
    listening,
    mechanisms,
    names,
    optional,
    origins,
    password_file,
    path_prefix,
    pattern,
    pem_file,
    plaintext_format,
    port_or_none,
    retention_policies,
    rotation_date,
    rows,
    schema,
    seconds,
    size,
    storage_url,
    switch,
    text,
    texts,
    version,
    watermark,
    whole,
)
from harebell.server.net.certificate import LOGIN_NAMES

CONFIG_VARIABLE = "HAREBELL_CONFIG"
"""Names the configuration file."""


PASSWORD_HASHING = (SCRYPT, SHA256, SHA512)
"""Hash algorithms for new passwords, the strongest one first."""


_STAGED = size(0, 2**60)
LOG_LEVELS = ("debug", "info", "warning", "error", "none")
LOG_CATEGORIES = (
    *("connection", "channel", "queue", "user", "upgrade", "ra", "mirroring", "federation"),
)
"""Categories of log lines: RabbitMQ's. Harebell has lines in the first four."""
FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron"),
    *("authpriv", "ftp", "local0", "local1", "local2", "local3", "local4", "local5", "local6"),
    "local7",
)
"""Facilities of syslog, as the standard library names them."""
_level = choice(*LOG_LEVELS)
_FORMATTERS = ("plaintext", "json")
_TIME_FORMATS = ("rfc3339_space", "rfc3339_t", "epoch_usecs", "epoch_secs")
_LEVEL_FORMATS = ("lc", "uc", "lc3", "uc3", "lc4", "uc4")
_OPERATOR_POLICY = {
    "vhost_pattern": pattern,
    "queue_pattern": pattern,
    "apply_to": choice("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all"),
    **dict.fromkeys(
        (
            *("delivery_limit", "expires", "max_in_memory_bytes", "max_in_memory_length"),
            *("max_length", "max_length_bytes", "message_ttl"),
        ),
        whole(0, 10**12),
    ),
}


def _log_output(output: str, where: str) -> tuple[Setting, ...]:
    """Return the settings of the format of one output of the log."""
    return (
        Setting(
            f"log_{output}_level",
            optional(_level),
            f"Least important line {where}; without it log_level.",
            reloads=True,
        ),
        Setting(
            f"log_{output}_formatter",
            choice(*_FORMATTERS),
            f"Form of the lines {where}: plaintext or json.",
            reloads=True,
        ),
        Setting(
            f"log_{output}_time_format",
            choice(*_TIME_FORMATS),
            f"How lines {where} have their time.",
            reloads=True,
        ),
        Setting(
            f"log_{output}_level_format",
            choice(*_LEVEL_FORMATS),
            f"How lines {where} have their level: info, INFO, inf, INF, info, INFO.",
            reloads=True,
        ),
        Setting(
            f"log_{output}_plaintext_format",
            plaintext_format,
            f"The parts of a line {where}: $time, $level, $pid, $domain and $msg.",
            reloads=True,
        ),
        Setting(
            f"log_{output}_json_field_map",
            field_map,
            f"Names of fields of JSON lines {where}: time:ts renames, pid:- drops.",
            reloads=True,
        ),
    )


SETTINGS: tuple[Setting, ...] = (
    Setting("host", address, "Address to listen on; 0.0.0.0 or :: for all."),
    Setting(
        "port",
        port_or_none,
        "Port for AMQP; 0 takes a free one and prints it, none serves no plain AMQP.",
    ),
    Setting(
        "listen",
        listening,
        "More addresses: amqp://host:port, amqps://host:port, amqp-0-10t://host:port.",
    ),
    Setting(
        "proxy_protocol",
        switch,
        "Whether connections of AMQP begin with a PROXY header of a load balancer.",
    ),
    Setting(
        "node_name", text, "Name of the broker; without it harebell@ and the name of the machine."
    ),
    Setting(
        "cluster_name",
        text,
        "Name that clients and tools are shown; without it that of the broker.",
    ),
    Setting("cluster_tags", texts, "Tags of the cluster, for tools."),
    Setting("node_tags", texts, "Tags of the broker, for tools."),
    Setting("data_dir", directory, "Directory for all data of the broker."),
    Setting("tls_port", whole(0, PORT_MAX), "Port for AMQP over TLS; without it there is no TLS."),
    Setting("tls_host", address, "Address to listen on for TLS; without it host."),
    Setting("tls_cert", pem_file, "Certificate chain of the broker (PEM).", reloads=True),
    Setting("tls_key", pem_file, "Private key of the certificate (PEM).", reloads=True),
    Setting(
        "tls_ca",
        pem_file,
        "Authorities that may issue client certificates (PEM).",
        reloads=True,
    ),
    Setting(
        "tls_key_password",
        text,
        "Passphrase of tls_key, if the key is encrypted.",
        secret=True,
        reloads=True,
    ),
    Setting(
        "tls_key_password_file",
        password_file,
        "File with the passphrase of tls_key.",
        reloads=True,
    ),
    Setting(
        "tls_verify",
        choice("verify_peer", "verify_none"),
        "Whether certificates that clients show are checked against tls_ca.",
        reloads=True,
    ),
    Setting(
        "tls_fail_if_no_peer_cert",
        switch,
        "Whether a client needs a certificate that tls_ca verifies.",
        reloads=True,
    ),
    Setting(
        "tls_min_version",
        choice("tlsv1.2", "tlsv1.3"),
        "Oldest version of TLS that is accepted.",
        reloads=True,
    ),
    Setting(
        "tls_ciphers",
        ciphers,
        "Ciphers of TLS 1.2, as OpenSSL writes them; without it Python's default.",
        reloads=True,
    ),
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
    Setting("management_host", address, "Address of the HTTP API; 0.0.0.0 or :: for all."),
    Setting(
        "management_tls_port",
        whole(0, PORT_MAX),
        "Port of the HTTP API over TLS, with the certificate of tls_cert; 0 for none.",
    ),
    Setting(
        "management_path_prefix",
        path_prefix,
        "Start of all paths of the HTTP API, such as /rabbit.",
    ),
    Setting(
        "management_body_max_bytes",
        size(1, limits.HTTP_BODY_MAX_BYTES),
        "Largest body of a request to the HTTP API.",
        reloads=True,
    ),
    Setting(
        "management_cors_allow_origins",
        origins,
        "Origins of pages that may use the HTTP API, with commas; * for all.",
        reloads=True,
    ),
    Setting(
        "management_cors_max_age",
        whole(0, COUNT_MAX),
        "Seconds that browsers may keep the answer of a preflight request.",
        reloads=True,
    ),
    Setting(
        "management_csp_policy",
        header,
        "Header content-security-policy of the HTTP API; empty for none.",
        reloads=True,
    ),
    Setting(
        "management_hsts_policy",
        header,
        "Header strict-transport-security of the HTTP API.",
        reloads=True,
    ),
    Setting(
        "management_rates_mode",
        choice("basic", "detailed", "none"),
        "Rates: detailed also keeps samples of channels by queue and exchange.",
    ),
    Setting("management_disable_stats", switch, "Whether the HTTP API leaves out what is counted."),
    Setting(
        "management_enable_queue_totals",
        switch,
        "With management_disable_stats: whether queues have their numbers of messages.",
    ),
    Setting(
        "management_sample_retention_policies",
        retention_policies,
        "Seconds between samples that are kept for a minute, hour or day, by section.",
    ),
    Setting(
        "collect_statistics",
        choice("none", "coarse", "fine"),
        "What is sampled: nothing, single things, or also channels by queue and exchange.",
    ),
    Setting(
        "collect_statistics_interval",
        whole(limits.STATISTICS_MIN_MS, limits.STATISTICS_MAX_MS),
        "Milliseconds between two samples.",
    ),
    Setting(
        "metrics_port",
        whole(0, PORT_MAX),
        "Port of metrics and probes, 0 for none; by default 15692, and none with port 0.",
    ),
    Setting("metrics_host", address, "Address of metrics and probes; 0.0.0.0 or :: for all."),
    Setting(
        "metrics_tls_port",
        whole(0, PORT_MAX),
        "Port of metrics over TLS, with the certificate of tls_cert; 0 for none.",
    ),
    Setting(
        "metrics_per_object",
        switch,
        "Whether /metrics has a sample for each queue, channel and connection, not sums.",
        reloads=True,
    ),
    Setting(
        "auth_mechanisms",
        mechanisms,
        "SASL mechanisms that clients may use; without it all except CRAM-MD5.",
    ),
    *BACKEND_SETTINGS,
    Setting(
        "password_hashing_module",
        choice(*PASSWORD_HASHING),
        "How new passwords are hashed.",
        reloads=True,
    ),
    Setting(
        "anonymous_login_user",
        text,
        "User of logins with SASL ANONYMOUS; without it they are not offered.",
        reloads=True,
    ),
    Setting(
        "loopback_users",
        names,
        "Users who may log in from this machine only; none for no user.",
        reloads=True,
    ),
    Setting(
        "credential_validator",
        choice("accept_everything", "min_length", "regexp"),
        "What new passwords are checked for.",
        reloads=True,
    ),
    Setting(
        "credential_validator_min_length",
        whole(1, limits.NAME_BYTES),
        "Least characters of a new password, with credential_validator min_length.",
        reloads=True,
    ),
    Setting(
        "credential_validator_regexp",
        pattern,
        "What a new password has to match, with credential_validator regexp.",
        reloads=True,
    ),
    Setting("channel_max", whole(1, SHORT_MAX), "Most channels per connection.", reloads=True),
    Setting(
        "channel_max_per_node",
        whole(0, COUNT_MAX),
        "Most channels of all connections together; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "connection_max", whole(0, COUNT_MAX), "Most connections; 0 for no limit.", reloads=True
    ),
    Setting(
        "unauthenticated_connection_max",
        whole(0, COUNT_MAX),
        "Most connections that have not logged in yet; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "unauthenticated_connection_max_per_address",
        whole(0, COUNT_MAX),
        "Most of them from one address; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "consumer_max_per_channel",
        whole(0, COUNT_MAX),
        "Most consumers per channel; 0 for no limit.",
        reloads=True,
    ),
    Setting("vhost_max", whole(0, COUNT_MAX), "Most virtual hosts; 0 for no limit.", reloads=True),
    Setting(
        "cluster_queue_limit",
        whole(0, COUNT_MAX),
        "Most queues of all virtual hosts together; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "cluster_exchange_limit",
        whole(0, COUNT_MAX),
        "Most exchanges of all virtual hosts together; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "frame_max",
        size(limits.FRAME_MIN_BYTES, limits.MESSAGE_MAX_BYTES),
        "Largest frame.",
        reloads=True,
    ),
    Setting(
        "initial_frame_max",
        size(limits.FRAME_MIN_BYTES, limits.FRAME_MAX_BYTES),
        "Largest frame before a connection is tuned, which a token has to fit into.",
        reloads=True,
    ),
    Setting(
        "heartbeat",
        whole(0, SHORT_MAX),
        "Seconds between heartbeats that the broker proposes; 0 proposes none.",
        reloads=True,
    ),
    Setting(
        "handshake_timeout_seconds",
        seconds(TIMEOUT_MIN_SECONDS, TIMEOUT_MAX_SECONDS),
        "Seconds from connecting to connection.open, the TLS handshake included.",
        reloads=True,
    ),
    Setting(
        "shutdown_grace_seconds",
        seconds(0.0, TIMEOUT_MAX_SECONDS),
        "Seconds that clients have to read pending output when the broker stops.",
        reloads=True,
    ),
    Setting(
        "consumer_timeout",
        whole(0, limits.CONSUMER_TIMEOUT_MAX_MS),
        "Milliseconds that a delivery may go without acknowledgement; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "default_queue_type",
        choice("classic", "quorum", "stream"),
        "Type of queues whose declaration and vhost name none.",
    ),
    Setting(
        "memory_high_watermark",
        watermark,
        "Memory of queued messages above which publishers are blocked.",
        reloads=True,
    ),
    Setting(
        "disk_free_limit",
        free_space,
        "Free disk space below which publishers are blocked; 0 for no limit.",
        reloads=True,
    ),
    Setting(
        "stage_user_limit",
        _STAGED,
        "Bytes that a user may stage; 0 for half of the room.",
        reloads=True,
    ),
    Setting(
        "stage_vhost_limit",
        _STAGED,
        "Bytes that all users of a vhost may stage; 0 for three quarters of the room.",
        reloads=True,
    ),
    Setting(
        "storage",
        storage_url,
        "Where everything is kept: empty for the data directory, or postgresql://...",
        secret=True,
    ),
    Setting(
        "storage_schema",
        schema,
        "The schema in PostgreSQL; brokers with the same one share a store.",
    ),
    Setting(
        "storage_lease_ms",
        whole(limits.STORAGE_LEASE_MIN_MS, limits.STORAGE_LEASE_MAX_MS),
        "Milliseconds of silence after which another broker takes over the store.",
    ),
    Setting(
        "storage_address",
        host_and_port,
        "Where other brokers of the store reach this one, host:port; made up if empty.",
    ),
    Setting(
        "storage_stores",
        whole(1, limits.STORAGE_STORES),
        "Stores of a cluster in PostgreSQL, each with a process of its own.",
    ),
    Setting(
        "storage_cluster_port",
        whole(0, 65_535),
        "Port for the other brokers of the cluster; 0 for a free one.",
    ),
    Setting(
        "durability",
        choice("fsync", "interval", "os", "replicated"),
        "What a confirm waits for: the disk, or less; with PostgreSQL also its standbys.",
    ),
    Setting(
        "durability_interval_ms",
        whole(1, limits.DURABILITY_INTERVAL_MAX_MS),
        'Milliseconds between syncs with durability "interval".',
    ),
    Setting(
        "segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "Size of the files that the messages of a queue are kept in.",
    ),
    Setting(
        "stream_segment_bytes",
        size(limits.SEGMENT_MIN_BYTES, limits.SEGMENT_MAX_BYTES),
        "Size of the files that the messages of a stream are kept in.",
    ),
    Setting(
        "message_max_bytes",
        size(1, limits.BODY_HARD_MAX_BYTES),
        "Largest message body.",
        reloads=True,
    ),
    Setting(
        "load_definitions",
        definitions,
        "File of definitions (JSON) that is imported at every start, before clients.",
    ),
    Setting(
        "definitions_import_backend",
        choice("local_filesystem", "https"),
        "Where definitions are loaded from: load_definitions, or a URL.",
    ),
    Setting(
        "definitions_https_url",
        https_url,
        "URL of definitions, with https; it may have a user and a password.",
        secret=True,
    ),
    Setting(
        "definitions_tls_ca",
        pem_file,
        "Authorities of the server of that URL (PEM); without it those of the system.",
    ),
    Setting("definitions_tls_cert", pem_file, "Certificate that this server is shown (PEM)."),
    Setting("definitions_tls_key", pem_file, "Private key of that certificate (PEM)."),
    Setting("definitions_tls_key_password", text, "Passphrase of that key.", secret=True),
    Setting(
        "definitions_tls_verify",
        choice("verify_peer", "verify_none"),
        "Whether the certificate of this server is checked.",
    ),
    Setting(
        "definitions_skip_if_unchanged",
        switch,
        "Whether definitions that an earlier start has loaded are not loaded again.",
    ),
    Setting("compat_product", text, "Product name that clients get in connection.start."),
    Setting("compat_version", version, "Version of that product in connection.start."),
    Setting(
        "message_interceptors_incoming_set_header_timestamp_overwrite",
        switch,
        "Stamp every message that comes in with the time; true replaces another.",
        reloads=True,
    ),
    Setting(
        "message_interceptors_incoming_set_header_routing_node_overwrite",
        switch,
        "Stamp every message that comes in with the broker; true replaces another.",
        reloads=True,
    ),
    Setting(
        "message_interceptors_outgoing_timestamp_enabled",
        switch,
        "Stamp every message that goes out with the time.",
        reloads=True,
    ),
    Setting("log_level", _level, "Least important line of the log.", reloads=True),
    Setting(
        "log_levels",
        levels(LOG_CATEGORIES, LOG_LEVELS),
        "Least important line of single categories, such as connection.",
        reloads=True,
    ),
    Setting("log_console", switch, "Whether the log is written to the console.", reloads=True),
    Setting(
        "log_console_stdio",
        choice("stderr", "stdout"),
        "Where on the console: stderr or stdout.",
        reloads=True,
    ),
    *_log_output("console", "on the console"),
    Setting(
        "log_dir",
        directory,
        "Directory of log_file; without it log in the data directory.",
        reloads=True,
    ),
    Setting(
        "log_file",
        optional(text),
        "Name or path of a file that the log is written to; none for no file.",
        reloads=True,
    ),
    *_log_output("file", "in the file"),
    Setting(
        "log_file_rotation_size",
        size(0, 2**50),
        "Size from which the file is rotated; 0 for never.",
        reloads=True,
    ),
    Setting(
        "log_file_rotation_date",
        rotation_date,
        "When the file is rotated: $D0 every midnight, $W0 every Sunday, $M1 every month.",
        reloads=True,
    ),
    Setting(
        "log_file_rotation_count",
        whole(0, 100_000),
        "How many rotated files are kept; with 0 the file is emptied instead.",
        reloads=True,
    ),
    Setting(
        "log_file_rotation_compress",
        switch,
        "Whether rotated files are compressed (gzip).",
        reloads=True,
    ),
    Setting(
        "log_files",
        rows(
            file=text,
            rotation_size=size(0, 2**50),
            rotation_date=rotation_date,
            rotation_count=whole(0, 100_000),
            rotation_compress=switch,
        ),
        'Files of single categories: { connection = { file = "connections.log" } }.',
        reloads=True,
    ),
    Setting("log_syslog", switch, "Whether the log is sent to syslog.", reloads=True),
    Setting(
        "log_syslog_host",
        text,
        "Host of syslog, or the path of its socket, such as /dev/log.",
        reloads=True,
    ),
    Setting("log_syslog_port", whole(1, PORT_MAX), "Port of syslog.", reloads=True),
    Setting("log_syslog_transport", choice("udp", "tcp"), "How syslog is reached.", reloads=True),
    Setting(
        "log_syslog_protocol",
        choice("rfc3164", "rfc5424"),
        "Form of the messages of syslog.",
        reloads=True,
    ),
    Setting(
        "log_syslog_identity", text, "Name of the program in messages of syslog.", reloads=True
    ),
    Setting(
        "log_syslog_facility",
        choice(*FACILITIES),
        "Facility of the messages of syslog.",
        reloads=True,
    ),
    *_log_output("syslog", "in syslog"),
    Setting("log_journald", switch, "Whether the log is sent to systemd's journal.", reloads=True),
    Setting(
        "log_journald_level",
        optional(_level),
        "Least important line in the journal; without it log_level.",
        reloads=True,
    ),
    Setting("log_journald_socket", text, "Socket of the journal.", reloads=True),
    Setting(
        "log_exchange",
        switch,
        "Whether the log is also published on the exchange amq.rabbitmq.log.",
        reloads=True,
    ),
    *_log_output("exchange", "on that exchange"),
    Setting(
        "loop",
        choice("auto", "uvloop", "asyncio"),
        "Event loop; auto takes uvloop where it is installed.",
    ),
    Setting("default_user", text, "The user of a new data directory."),
    Setting("default_pass", text, "Password of that user.", secret=True),
    Setting(
        "default_pass_file", password_file, "File with that password, instead of default_pass."
    ),
    Setting("default_vhost", text, "Virtual host of that user; it is added."),
    Setting("default_user_tags", names, "Tags of that user."),
    Setting(
        "default_permissions_configure",
        pattern,
        "What that user may configure in its virtual host.",
    ),
    Setting("default_permissions_write", pattern, "What that user may write there."),
    Setting("default_permissions_read", pattern, "What that user may read there."),
    Setting(
        "default_users",
        rows(
            vhost_pattern=pattern,
            configure=pattern,
            read=pattern,
            write=pattern,
            password=text,
            tags=names,
        ),
        "Users that are created with the virtual hosts that match their vhost_pattern.",
        secret=True,
    ),
    Setting(
        "default_limits_vhosts",
        rows(
            pattern=pattern,
            max_connections=whole(0, COUNT_MAX),
            max_queues=whole(0, COUNT_MAX),
        ),
        "Limits of new virtual hosts whose names match a pattern.",
        reloads=True,
    ),
    Setting(
        "default_policies_operator",
        rows(**_OPERATOR_POLICY),
        "Operator policies of new virtual hosts whose names match a vhost_pattern.",
        reloads=True,
    ),
)

ALIASES = {"max_message_size": "message_max_bytes"}
"""Names of RabbitMQ that are accepted in the file and in the environment."""

BY_NAME = {setting.name: setting for setting in SETTINGS}
