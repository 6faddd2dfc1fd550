"""The configuration of a broker, and the rules that involve more than one key.

The sources, from the weakest: the defaults, RabbitMQ's files (`rabbitmq.conf`, `conf.d`), the TOML
file, RabbitMQ's variables (`RABBITMQ_NODE_PORT`), systemd's credentials, Harebell's variables
(`HAREBELL_PORT`), and the flags. An error in any of them aborts the start with one sentence that
names the source, the key and the allowed values. `harebell.server.config.reading` reads them; the
table of keys is in `harebell.server.config.settings`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harebell.base import limits
from harebell.base.hash_names import SCRYPT
from harebell.front.common.settings import COMPATIBLE_PRODUCT, COMPATIBLE_VERSION
from harebell.server.config.errors import ConfigError
from harebell.server.config.settings import CONFIG_VARIABLE, SETTINGS
from harebell.server.config.values import ValueOrigin, machine_memory_bytes
from harebell.server.net.certificate import DISTINGUISHED_NAME

PLAINTEXT = "$time [$level] $pid $msg"
"""The format of a log line, as RabbitMQ has it."""


def default_data_dir() -> Path:
    """Return the directory `harebell` in the user's data directory (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # XDG: a relative path is invalid and must be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "harebell"


__all__ = [
    "CONFIG_VARIABLE",
    "Config",
    "ConfigError",
    "Configuration",
    "default_data_dir",
    "default_password",
    "load",
    "machine_memory_bytes",
    "memory_bytes",
    "read_configuration",
]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a broker; docs/reference/configuration.md describes the keys."""

    host: str = "127.0.0.1"
    port: int | None = 5672
    listen: tuple[tuple[str, str, int], ...] | None = None
    proxy_protocol: bool = False
    node_name: str | None = None
    cluster_name: str | None = None
    cluster_tags: dict[str, str] = {}
    node_tags: dict[str, str] = {}
    data_dir: Path = msgspec.field(default_factory=default_data_dir)
    tls_port: int | None = None
    tls_host: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    tls_key_password: str | None = None
    tls_key_password_file: str | None = None
    tls_verify: str = "verify_peer"
    tls_fail_if_no_peer_cert: bool = False
    tls_min_version: str = "tlsv1.2"
    tls_ciphers: str | None = None
    tls_login_from: str = DISTINGUISHED_NAME
    management_port: int | None = None
    management_host: str = "127.0.0.1"
    management_tls_port: int | None = None
    management_path_prefix: str = ""
    management_body_max_bytes: int = limits.HTTP_BODY_BYTES
    management_cors_allow_origins: tuple[str, ...] | None = None
    management_cors_max_age: int = limits.HTTP_CORS_SECONDS
    management_csp_policy: str = "script-src 'self'; object-src 'none'"
    management_hsts_policy: str | None = None
    management_rates_mode: str = "basic"
    management_disable_stats: bool = False
    management_enable_queue_totals: bool = False
    management_sample_retention_policies: dict[str, dict[str, int]] = {}
    collect_statistics: str = "fine"
    collect_statistics_interval: int = limits.STATISTICS_SECONDS * 1000
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_tls_port: int | None = None
    metrics_per_object: bool = False
    auth_mechanisms: tuple[str, ...] | None = None
    auth_backends: tuple[str, ...] | None = None
    auth_http_http_method: str = "get"
    auth_http_user_path: str = "http://localhost:8000/auth/user"
    auth_http_vhost_path: str = "http://localhost:8000/auth/vhost"
    auth_http_resource_path: str = "http://localhost:8000/auth/resource"
    auth_http_topic_path: str = "http://localhost:8000/auth/topic"
    auth_http_request_timeout: int = 15_000
    auth_http_connection_timeout: int = 15_000
    auth_http_ssl_options_cacertfile: str | None = None
    auth_http_ssl_options_certfile: str | None = None
    auth_http_ssl_options_keyfile: str | None = None
    auth_http_ssl_options_verify: str = "verify_peer"
    auth_cache_cached_backend: str | None = None
    auth_cache_cache_ttl: int = 15_000
    auth_cache_cache_refusals: bool = False
    auth_oauth2_resource_server_id: str | None = None
    auth_oauth2_scope_prefix: str | None = None
    auth_oauth2_additional_scopes_key: tuple[str, ...] = ()
    auth_oauth2_preferred_username_claims: tuple[str, ...] = ()
    auth_oauth2_verify_aud: bool = True
    auth_oauth2_issuer: str | None = None
    auth_oauth2_discovery_endpoint_path: str = ".well-known/openid-configuration"
    auth_oauth2_jwks_url: str | None = None
    auth_oauth2_signing_keys: dict[str, str] = {}
    auth_oauth2_default_key: str | None = None
    auth_oauth2_algorithms: tuple[str, ...] | None = None
    auth_oauth2_scope_aliases: dict[str, tuple[str, ...]] = {}
    auth_oauth2_https_cacertfile: str | None = None
    auth_oauth2_https_peer_verification: str = "verify_peer"
    auth_oauth2_https_hostname_verification: str = "wildcard"
    management_oauth_enabled: bool = False
    management_oauth_disable_basic_auth: bool = True
    password_hashing_module: str = SCRYPT
    anonymous_login_user: str | None = None
    loopback_users: tuple[str, ...] = ("guest",)
    credential_validator: str = "accept_everything"
    credential_validator_min_length: int = 8
    credential_validator_regexp: str = ".*"
    channel_max: int = limits.CHANNEL_MAX
    channel_max_per_node: int = 0
    connection_max: int = 0
    unauthenticated_connection_max: int = limits.UNAUTHENTICATED_CONNECTIONS
    unauthenticated_connection_max_per_address: int = limits.UNAUTHENTICATED_PER_ADDRESS
    consumer_max_per_channel: int = limits.CONSUMERS_PER_CHANNEL
    vhost_max: int = 0
    cluster_queue_limit: int = 0
    cluster_exchange_limit: int = 0
    frame_max: int = limits.FRAME_MAX_BYTES
    initial_frame_max: int = limits.HANDSHAKE_FRAME_BYTES
    heartbeat: int = limits.HEARTBEAT_SECONDS
    handshake_timeout_seconds: float = limits.HANDSHAKE_TIMEOUT_SECONDS
    shutdown_grace_seconds: float = limits.SHUTDOWN_SECONDS
    consumer_timeout: int = limits.CONSUMER_TIMEOUT_MS
    default_queue_type: str = "classic"
    memory_high_watermark: float | int = limits.MEMORY_HIGH_WATERMARK
    disk_free_limit: float | int = limits.DISK_FREE_LIMIT_BYTES
    stage_user_limit: int = 0
    stage_vhost_limit: int = 0
    storage: str = ""
    storage_schema: str = "harebell"
    storage_lease_ms: int = limits.STORAGE_LEASE_MS
    storage_address: str = ""
    storage_stores: int = 1
    storage_cluster_port: int = 0
    durability: str = "fsync"
    durability_interval_ms: int = limits.DURABILITY_INTERVAL_MS
    segment_bytes: int = limits.SEGMENT_BYTES
    stream_segment_bytes: int = limits.STREAM_SEGMENT_BYTES
    message_max_bytes: int = limits.MESSAGE_MAX_BYTES
    load_definitions: Path | None = None
    definitions_import_backend: str = "local_filesystem"
    definitions_https_url: str | None = None
    definitions_tls_ca: str | None = None
    definitions_tls_cert: str | None = None
    definitions_tls_key: str | None = None
    definitions_tls_key_password: str | None = None
    definitions_tls_verify: str = "verify_peer"
    definitions_skip_if_unchanged: bool = False
    compat_product: str = COMPATIBLE_PRODUCT
    compat_version: str = COMPATIBLE_VERSION
    message_interceptors_incoming_set_header_timestamp_overwrite: bool | None = None
    message_interceptors_incoming_set_header_routing_node_overwrite: bool | None = None
    message_interceptors_outgoing_timestamp_enabled: bool = False
    log_level: str = "info"
    log_levels: dict[str, str] = {}
    log_console: bool = True
    log_console_stdio: str = "stderr"
    log_console_level: str | None = None
    log_console_formatter: str = "plaintext"
    log_console_time_format: str = "rfc3339_space"
    log_console_level_format: str = "lc"
    log_console_plaintext_format: str = PLAINTEXT
    log_console_json_field_map: str = ""
    log_dir: Path | None = None
    log_file: str | None = None
    log_file_level: str | None = None
    log_file_formatter: str = "plaintext"
    log_file_time_format: str = "rfc3339_space"
    log_file_level_format: str = "lc"
    log_file_plaintext_format: str = PLAINTEXT
    log_file_json_field_map: str = ""
    log_file_rotation_size: int = 0
    log_file_rotation_date: str = ""
    log_file_rotation_count: int = 10
    log_file_rotation_compress: bool = False
    log_files: dict[str, dict[str, Any]] = {}
    log_syslog: bool = False
    log_syslog_host: str = "localhost"
    log_syslog_port: int = 514
    log_syslog_transport: str = "udp"
    log_syslog_protocol: str = "rfc3164"
    log_syslog_identity: str = "harebell"
    log_syslog_facility: str = "daemon"
    log_syslog_level: str | None = None
    log_syslog_formatter: str = "plaintext"
    log_syslog_time_format: str = "rfc3339_space"
    log_syslog_level_format: str = "lc"
    log_syslog_plaintext_format: str = "$pid - $msg"
    log_syslog_json_field_map: str = ""
    log_journald: bool = False
    log_journald_level: str | None = None
    log_journald_socket: str = "/run/systemd/journal/socket"
    log_exchange: bool = False
    log_exchange_level: str | None = None
    log_exchange_formatter: str = "plaintext"
    log_exchange_time_format: str = "rfc3339_space"
    log_exchange_level_format: str = "lc"
    log_exchange_plaintext_format: str = PLAINTEXT
    log_exchange_json_field_map: str = ""
    loop: str = "auto"
    default_user: str = "guest"
    default_pass: str = "guest"  # noqa: S105  # the well-known default, accepted on loopback only
    default_pass_file: str | None = None
    default_vhost: str = "/"
    default_user_tags: tuple[str, ...] = ("administrator",)
    default_permissions_configure: str = ".*"
    default_permissions_write: str = ".*"
    default_permissions_read: str = ".*"
    default_users: dict[str, dict[str, Any]] = {}
    default_limits_vhosts: dict[str, dict[str, Any]] = {}
    default_policies_operator: dict[str, dict[str, Any]] = {}

    def __repr__(self) -> str:
        """Return all values; secrets are masked, so that the text may be logged."""
        shown = (
            f"{each.name}={'...' if each.secret else repr(getattr(self, each.name))}"
            for each in SETTINGS
        )
        return f"Config({', '.join(shown)})"


class Configuration(NamedTuple):
    """A configuration, and where it comes from.

    Args:
        config: the values.
        places: where the value of each key that was set is written, by key.
        warnings: what was read and has no effect, each as a sentence.
        files: the files that were read.
    """

    config: Config
    places: dict[str, ValueOrigin]
    warnings: list[str]
    files: list[Path]


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Config:
    """Read the configuration from all sources; the arguments are those of `read_configuration`.

    Raises:
        ConfigError: a source is invalid.
    """
    return read_configuration(flags, environ, config_file).config


def read_configuration(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Configuration:
    """Read the configuration from all sources, with the place of each value.

    Args:
        flags: values from the command line, by key; None for flags that were not given.
        environ: the environment; None for `os.environ`.
        config_file: a TOML file, or a file or directory of RabbitMQ; None for the ones that the
            environment names, if any, or those in /etc.

    Raises:
        ConfigError: a source is invalid.
    """
    from harebell.server.config.reading import Reading

    reading = Reading(os.environ if environ is None else environ)
    reading.read_files(config_file)
    reading.read_environment()
    reading.read_flags(flags or {})
    config = Config(**reading.values)
    _check_together(config)
    return Configuration(config, reading.places, reading.warnings, reading.files)


def default_password(config: Config) -> str:
    """Return the password of the default user, from its file if one is named.

    Raises:
        ConfigError: the file cannot be read.
    """
    if config.default_pass_file is None:
        return config.default_pass
    from harebell.server.config.reading import secret_of

    return secret_of(Path(config.default_pass_file), "default_pass_file")


def memory_bytes(high_watermark: float | int, machine_bytes: int | None = None) -> int:
    """Return the memory watermark in bytes.

    Args:
        high_watermark: a fraction of the memory (float) or bytes (int), as in `Config`.
        machine_bytes: the total memory in bytes; None to query the system.
    """
    if isinstance(high_watermark, int):
        return high_watermark
    total = machine_memory_bytes() if machine_bytes is None else machine_bytes
    return int(total * high_watermark)


def _check_together(config: Config) -> None:
    """Check the rules that involve more than one key."""
    if config.port is None and config.tls_port is None and not config.listen:
        raise ConfigError("port is none, and neither tls_port nor listen is set: set one of them")
    secure = [url for url in config.listen or () if url[0] == "amqps"]
    over_tls = config.management_tls_port or config.metrics_tls_port
    if config.tls_port is None and not secure and not over_tls:
        for name in ("tls_cert", "tls_key", "tls_ca", "tls_key_password_file", "tls_ciphers"):
            if getattr(config, name) is not None:
                raise ConfigError(f"{name} is set but tls_port is not: set tls_port to serve TLS")
    else:
        _check_tls(config)
    if config.tls_fail_if_no_peer_cert and (
        config.tls_ca is None or config.tls_verify == "verify_none"
    ):
        raise ConfigError(
            "tls_fail_if_no_peer_cert is true but certificates are not checked: set tls_ca, and "
            "tls_verify to verify_peer"
        )


def _check_tls(config: Config) -> None:
    for name in ("tls_cert", "tls_key"):
        if getattr(config, name) is None:
            keys = ("tls_port", "management_tls_port", "metrics_tls_port")
            served = [f"{key} is set" for key in keys if getattr(config, key) is not None]
            what = served[0] if served else "listen has amqps"
            raise ConfigError(f"{what} but {name} is not: TLS needs the PEM file")
    if config.tls_port == config.port not in (0, None) and config.tls_host in (None, config.host):
        raise ConfigError(
            f"port and tls_port are both {config.port}: AMQP and AMQP over TLS need two ports"
        )
